"""Prints the trace of a question, its calls, and the memory of a document, page by page."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from textwrap import indent, shorten
from typing import Any

from jobs.config.options import ReadOptions
from jobs.output.print_tables import Part, Verbatim, counted, print_json, print_parts
from jobs.trace.trace import Section, Trace, stored_id, trace
from pipeline.core.errors import UsageError
from pipeline.core.registry import load_plugins, plugin_folders
from pipeline.core.rows import Line, RawText, columns_line, titled
from pipeline.core.sql_files import sql_beside
from pipeline.store.shards.layout import SHARED
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)
_ABOUT = ("page_index", "turn", "reference_index", "attempt")
_TEXT_CHARS = 400  # of a text such as a page's; --full prints all of it
Row = Mapping[str, Any]


def sent_lines(calls: Sequence[Row]) -> Iterator[str]:
    """The lines of calls (rows of `calls`), under a heading for each stage."""
    for stage, group in groupby(calls, lambda call: call["stage"]):
        of_stage = list(group)
        yield f"\nCALLS OF {stage} ({len(of_stage)})"
        for call in of_stage:
            yield from (indent(line, "  ") for line in _call_lines(call))


def _call_lines(call: Row) -> Iterator[str]:
    def quoted(text: str) -> str:
        return indent(text, "  | ", lambda line: True)

    about = ", ".join(f"{name} {call[name]}" for name in _ABOUT if call[name] is not None)
    yield f"\n{call['prompt']} ({about}) to {call['engine']}, request {call['request_sha']}"
    if call["messages"] is None:
        yield "what was sent was not kept"
    else:
        legal = {name: value for name, value in (call["constraint"] or {}).items() if value}
        constrained = "".join(f", constrained to {name} {value}" for name, value in legal.items())
        degrees = call["temperature"]
        temperature = "the server's temperature" if degrees is None else f"temperature {degrees:g}"
        most = f"at most {call['max_reply_tokens']} tokens of reply"
        yield f"{temperature}, seed {call['seed']}, {most}{constrained}"
        for message in call["messages"]:
            yield f"{message['role']}:"
            yield quoted(message["content"])
    if call["thinking"]:
        yield "thinking:"
        yield quoted(call["thinking"])
    yield f"reply ({call['finish_reason']}, {call['reply_tokens']} tokens):"
    yield quoted(call["reply"])


def show_trace(options: ReadOptions, question_id: str, full: bool, prompts: bool) -> None:
    """Print the trace of a question. Unless `full`, texts are cut, and a memory is printed as a
    heading for each of its parts, with the rows that have a problem. With `prompts`, every call is
    printed as it was sent."""
    load_plugins(plugin_folders(options.plugins))
    of_question = trace(options, question_id, prompts)
    if options.as_json:
        print_json(of_question.as_json())
    else:
        print_parts(Verbatim(text) for text in _texts(of_question, full) if text)


def _texts(of_question: Trace, full: bool) -> Iterator[str]:
    yield "\n".join(_question_lines(of_question.question))
    for memory, sections in of_question.memories.items():
        if memory != SHARED:
            yield f"MEMORY {memory}"
        yield from (_text(lines, full) for lines in _memory_lines(sections, full))
        yield _text(sent_lines(of_question.memory_calls(memory)), full)
    if of_question.memories and not full:
        document_id = of_question.question["document_id"]
        yield f"gistmill show {document_id} prints a memory, --full all of them here"
    if not of_question.methods:
        yield "no method has answered it"
    has_repeats = any(repeat for _, repeat in of_question.methods)
    for (method, repeat), sections in of_question.methods.items():
        title = f"== {method}" + (f" (repeat {repeat})" if has_repeats else "")
        lines: list[Line] = []
        for section in sections:
            if section.record is not None:
                lines += section.record.trace_all(section.rows)
            else:
                lines += [f"{section.stage}: {columns_line(row)}" for row in section.rows]
        yield f"{title}\n{_text(lines, full, '  ')}"
        yield _text(sent_lines(of_question.method_calls(method, repeat)), full, "  ")


def _question_lines(question: dict[str, Any]) -> Iterator[str]:
    yield f"QUESTION {question['question_id']} of document {question['document_id']}"
    yield f"  {question['question']}"
    if question["problem"]:
        yield f"  problem: {question['problem']} {question['detail'] or ''}".rstrip()
    for index, option in enumerate(question["options"]):
        right = " <- right" if index == question["answer_index"] else ""
        yield f"  ({chr(65 + index)}) {option}{right}"
    yield from (f"  reference: {reference}" for reference in question["references"])
    for text in question["evidence_texts"]:
        yield f"  evidence: {shorten(text, _TEXT_CHARS)}"


def _memory_lines(sections: Sequence[Section], full: bool) -> Iterator[Sequence[Line]]:
    """Of each step a heading and its rows; unless `full`, only rows that have a problem. Tables
    whose rows other tables show (`Record.shows`) are left out."""
    shown = {table for section in sections if section.record for table in section.record.shows}
    for section in sections:
        if section.record in shown:
            continue
        for _, group in groupby(section.rows, lambda row: row["step_id"]):
            rows = list(group)
            title = f"{section.table.upper()} ({len(rows)} rows)"
            bad = [row for row in rows if row.get("problem")]
            if section.record is None:
                yield titled(title, rows if full else bad, lambda row: [columns_line(row)])
                continue
            lines = section.record.trace_all(rows)
            if lines and not full:
                head = lines[0] if isinstance(lines[0], str) else title
                lines = titled(head, bad, section.record.trace)
            yield lines


def _text(lines: Iterable[Line], full: bool, margin: str = "") -> str:
    cut = [
        line.lead + (line.text if full else shorten(line.text, _TEXT_CHARS))
        if isinstance(line, RawText)
        else line
        for line in lines
    ]
    return "\n".join(indent(line, margin) for line in cut).lstrip("\n")


def shown_document(options: ReadOptions, document_id: str) -> dict[str, Any]:
    """One of a document's `memories` in the run, by default the shared one, or else the first.
    `pages` are the chosen ones of all `num_pages`, each with its `texts`; `above` are the texts
    over several pages that include a chosen one, the longest first. Raises UsageError if the run
    has no such document, memory or page."""
    with options.opened() as (folder, connection):
        run = folder.path.name
        document_id = stored_id(connection, "document", document_id)
        connection.execute("set variable document = ?", [document_id])
        (document,) = query(connection, _SQL["document"])
        if why := document["detail"]:
            raise UsageError(f"{document_id}: was not read: {why}")
        memories = [row["memory"] for row in query(connection, _SQL["memories"])]
        if not memories:
            raise UsageError(
                f"{document_id}: run={run} has no pages of it; make them with gistmill run ... "
                "methods=none"
            )
        memory = options.memory or (SHARED if SHARED in memories else memories[0])
        if memory not in memories:
            has = f"not of {document_id}, which has {', '.join(memories)}"
            raise UsageError(f"memory={memory}: {has}")
        connection.execute("set variable memory = ?", [memory])
        pages = query(connection, _SQL["texts"])
        chosen = _chosen(pages, options.page, document_id)
        above = query(connection, _SQL["of_several"])
        return {
            "run": run,
            "document_id": document_id,
            "title": document["title"],
            "num_words": document["num_words"],
            "memory": memory,
            "memories": memories,
            "num_pages": len(pages),
            "pages": chosen,
            "above": [text for text in above if any(_is_of(text, page) for page in chosen)],
            "left_out": query(connection, "from left_out"),
        }


def document_parts(shown: Row) -> Iterator[Part]:
    """A heading and a text for each text of `shown_document`; a text over several pages stands
    before the first page of them that is shown."""
    further = [name for name in shown["memories"] if name != shown["memory"]]
    more = f"; it has memory={' and memory='.join(further)}, too" if further else ""
    size = f"{counted(shown['num_words'], 'word')}, {counted(shown['num_pages'], 'page')}"
    yield f"{shown['document_id']}: {size} (memory {shown['memory']} of run {shown['run']}{more})"
    above = list(shown["above"])
    for page in shown["pages"]:
        for text in [text for text in above if _is_of(text, page)]:
            above.remove(text)
            pages = f"pages {text['page_index']} to {text['last_page_index']}"
            yield from _headed(f"{pages} · {text['heading']}", text)
        for number, text in enumerate(page["texts"]):
            of_page = f"page {page['page_index']}"
            yield from _headed(of_page if number == 0 else f"{text['heading']} of {of_page}", text)


def _headed(heading: str, text: Row) -> Iterator[str]:
    words = [] if text["num_words"] is None else [counted(text["num_words"], "word")]
    yield ", ".join(filter(None, [heading, *words, text["problem"]]))
    yield (text["text"] or "-").strip()


def _chosen(pages: Sequence[Row], wanted: str | None, document_id: str) -> tuple[Row, ...]:
    """The pages that `wanted` names: `3`, `0..4`; all if it is None."""
    if wanted is None:
        return tuple(pages)
    span = re.fullmatch(r"(\d{1,9})(?:\.\.(\d{1,9}))?", wanted)
    if not span:
        raise UsageError(f"page={wanted}: write page=3 or page=0..4")
    first, last = int(span[1]), int(span[2] or span[1])
    if chosen := tuple(page for page in pages if first <= page["page_index"] <= last):
        return chosen
    numbers = [page["page_index"] for page in pages]
    raise UsageError(f"page={wanted}: {document_id} has pages {numbers[0]} to {numbers[-1]}")


def _is_of(text: Row, page: Row) -> bool:
    return bool(text["page_index"] <= page["page_index"] <= text["last_page_index"])
