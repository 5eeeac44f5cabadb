"""One question from gists to verdicts, method by method, in a terminal."""

from collections.abc import Sequence
from textwrap import indent, shorten
from typing import Any

from jobs.options import ReadOptions
from jobs.tables import print_json, print_line
from pipeline.errors import UsageError
from pipeline.store import connect, query

_PAGE_CHARS = 400  # of a page read again; all of it with --full


def trace(options: ReadOptions, question_id: str) -> dict[str, Any]:
    """The question, its document's gists, and per method what was looked up, read, answered,
    rated and scored, as JSON values. Raises UsageError where the run has no such question."""
    with connect(options.warehouse, options.run) as connection:
        connection.execute("set variable question = ?", [question_id])
        found = query(connection, _QUESTION)
        if not found:
            raise UsageError(f"{question_id}: no such question in the run; {_like(connection)}")
        connection.execute("set variable document = ?", [found[0]["document_id"]])
        methods = [m for m in query(connection, _METHODS) if _wanted(m["method"], options.method)]
        if options.method and not methods:
            raise UsageError(f"method={options.method}: none such has looked at {question_id}")
        return {
            "question": found[0],
            "gists": query(connection, _GISTS),
            "methods": [_method(connection, m["method"], m["repeat"]) for m in methods],
        }


def _wanted(name: str, prefix: str | None) -> bool:
    return prefix is None or name.startswith(prefix)


def _like(connection: Any) -> str:
    near = query(
        connection,
        """select question_id from questions
        order by jaro_winkler_similarity(question_id, getvariable('question')) desc, question_id
        limit 3""",
    )
    return "like it are " + ", ".join(row["question_id"] for row in near)


def _method(connection: Any, method: str, repeat: int) -> dict[str, Any]:
    connection.execute("set variable method = ?", [method])
    connection.execute("set variable repeat = ?", [repeat])
    (answer,) = query(connection, _ANSWER) or [{}]
    return {
        "method": method,
        "repeat": repeat,
        "lookups": query(connection, _LOOKUPS),
        "pages": query(connection, _PAGES),
        "answer": answer,
        "ratings": query(connection, _RATINGS),
        "scores": {row["metric"]: row["value"] for row in query(connection, _SCORES)},
    }


_MINE = """question_id = getvariable('question') and method = getvariable('method')
  and repeat = getvariable('repeat')"""
_QUESTION = """
select q.*, d.title, d.num_words as document_words,
  list_transform(evidence, lambda s: substring(d.text, s.start_char + 1, s.end_char - s.start_char))
    as evidence_texts
from questions q join documents d using (document_id) where question_id = getvariable('question')"""
_METHODS = """
select l.method, l.repeat from lookups l where question_id = getvariable('question')
group by all order by all"""
_GISTS = """
select page_index, chosen_by, p.num_words as page_words, g.num_words as gist_words, gist, g.problem
from gists g join pages p using (document_id, page_index)
where document_id = getvariable('document') order by page_index"""
_LOOKUPS = f"""
select turn, requested, used, dropped, problem from lookups where {_MINE} order by turn"""
_ANSWER = f"""
select answer, answer_index, page_indexes, context_spans, num_context_words, compression_rate,
  problem, detail, skipped from answers where {_MINE}"""
_PAGES = f"""
select page_index, text from pages where document_id = getvariable('document') and list_contains(
  (select page_indexes from answers where {_MINE}), page_index) order by page_index"""
_RATINGS = f"""
select rater, reference_index, strict, permissive, problem from ratings
where {_MINE} and not skipped order by rater, reference_index"""
_SCORES = f"""
select metric, value from scores where {_MINE} and value is not null order by metric"""


def show_trace(options: ReadOptions, question_id: str, full: bool, as_json: bool) -> None:
    """Print what `trace` finds; raw pages are cut to a few lines unless `full`."""
    found = trace(options, question_id)
    if as_json:
        print_json(found)
        return
    _show_question(found["question"])
    if found["gists"]:
        print_line(f"\nGIST MEMORY ({len(found['gists'])} pages)")
    for gist in found["gists"]:
        words = f"{gist['page_words']} -> {gist['gist_words']} words"
        problem = f", {gist['problem']}" if gist["problem"] else ""
        print_line(f"  <Page {gist['page_index']}> ({words}{problem}) {gist['gist'] or '-'}")
    if not found["methods"]:
        print_line("\nno method has looked at it")
    for method in found["methods"]:
        _show_method(method, found["question"], full)


def _show_question(question: dict[str, Any]) -> None:
    print_line(f"QUESTION {question['question_id']} of document {question['document_id']}")
    print_line(f"  {question['question']}")
    if question["problem"]:
        print_line(f"  problem: {question['problem']} {question['detail'] or ''}".rstrip())
    for index, option in enumerate(question["options"]):
        right = " <- right" if index == question["answer_index"] else ""
        print_line(f"  ({chr(65 + index)}) {option}{right}")
    for reference in question["references"]:
        print_line(f"  reference: {reference}")
    for text in question["evidence_texts"]:
        print_line(f"  evidence: {shorten(text, _PAGE_CHARS)}")


def _show_method(method: dict[str, Any], question: dict[str, Any], full: bool) -> None:
    repeat = f" (repeat {method['repeat']})" if method["repeat"] else ""
    print_line(f"\n== {method['method']}{repeat}")
    for turn in method["lookups"]:
        print_line(f"  look-up {turn['turn']}: {_turn(turn)}")
    for page in method["pages"]:
        text = page["text"] if full else shorten(page["text"], _PAGE_CHARS)
        print_line(indent(f"<Page {page['page_index']}> {text}", "  "))
    answer = method["answer"]
    if answer.get("skipped"):
        print_line("  skipped: the method does not apply to this question")
        return
    if answer.get("num_context_words") is not None:
        rate = answer["compression_rate"]
        print_line(f"  context: {answer['num_context_words']} words, compression {rate:.1f}%")
    print_line(f"  answer: {answer.get('answer') or '-'}")
    if answer.get("problem"):
        print_line(f"  problem: {answer['problem']} {answer['detail'] or ''}".rstrip())
    if answer.get("answer_index") is not None:
        right = answer["answer_index"] == question["answer_index"]
        print_line(f"  {'right' if right else 'wrong'}")
    _show_verdicts(method["ratings"], method["scores"])


def _turn(turn: dict[str, Any]) -> str:
    dropped = [f"{drop['page_index']} ({drop['reason']})" for drop in turn["dropped"]]
    parts = [f"asked for {turn['requested']}", f"read {turn['used']}"]
    parts += [f"dropped {', '.join(dropped)}"] if dropped else []
    parts += [f"problem {turn['problem']}"] if turn["problem"] else []
    return ", ".join(parts)


def _show_verdicts(ratings: Sequence[dict[str, Any]], scores: dict[str, float]) -> None:
    for rating in ratings:
        verdicts = f"strict {rating['strict'] or '-'}, permissive {rating['permissive'] or '-'}"
        problem = f" ({rating['problem']})" if rating["problem"] else ""
        print_line(
            f"  {rating['rater']} on reference {rating['reference_index']}: {verdicts}{problem}"
        )
    if scores:
        print_line(
            "  scores: " + ", ".join(f"{name} {value:.1f}" for name, value in scores.items())
        )
