"""Write a corpus with its questions corrected, as rows of one's own:

    python contrib/literaryqa/corrected.py CORRECTIONS OUT corpus=narrativeqa corpus.path=FOLDER
    gistmill run corpus=tables corpus.path=OUT ...

CORRECTIONS is a file of JSON lines, or a folder of them: rows by `question_id` with `question`,
`references` or both, and perhaps what they replace (`replaces`: the text, or the list); questions
without one stay as they are. Or LiteraryQA's annotations of NarrativeQA's books (arXiv 2510.13494;
SapienzaNLP/LiteraryQA, data/annotations), which are all that is asked: what they lack is left
out. The originals are in the questions' metadata.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import gistmill
from gistmill.plugin import Question

Row = Mapping[str, Any]


def main() -> None:
    """Write documents.jsonl and questions.jsonl; print which corrections fit no question."""
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    source, out, *words = sys.argv[1:]
    corpus = gistmill.config(*words).corpus
    corpus.check()
    rows = list(_rows(Path(source)))
    if not rows:
        sys.exit(f"{source}: no rows of corrections")
    key = "document_id" if "qas" in rows[0] else "question_id"
    left, misfits = {row[key]: row for row in rows}, list[str]()
    Path(out).mkdir(parents=True)
    with (Path(out) / "documents.jsonl").open("w") as texts, (
        Path(out) / "questions.jsonl").open("w") as asked:  # fmt: skip
        for loaded in corpus.load():
            document = loaded.document
            questions = [question for question in loaded.questions if not question.problem]
            if document.problem or document.skipped:
                continue
            if key == "question_id":
                made = [*_by_id(questions, left, misfits)]
            elif book := left.pop(document.document_id, None):
                made = [*_annotated(book, questions, misfits)]
            else:
                continue
            text = {"document_id": document.document_id, "title": document.title,
                    "text": document.text, "metadata": document.metadata}  # fmt: skip
            texts.write(json.dumps(text) + "\n")
            asked.writelines(json.dumps(row) + "\n" for row in made)
    if left:
        misfits.append(
            f"{len(left)} rows are of no {key} of the corpus, such as {next(iter(left))}"
        )
    if misfits:
        print(*misfits, sep="\n", file=sys.stderr)


def _rows(source: Path) -> Iterator[Row]:
    for file in sorted(source.glob("*.jsonl")) if source.is_dir() else [source]:
        with file.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.strip())


def _by_id(
    questions: Sequence[Question], left: dict[str, Row], misfits: list[str]
) -> Iterator[Row]:
    """The questions' rows. Removes the used corrections from `left`."""
    for question in questions:
        row = left.pop(question.question_id, {})
        references, was = row.get("references"), row.get("replaces")
        references = [references] if isinstance(references, str) else references
        now = question.question if isinstance(was, str) else list(question.references)
        if was is not None and was != now:
            misfits.append(f"{question.question_id}: replaces {was!r}, the corpus has {now!r}")
            row, references = {}, None
        if references and question.options:
            misfits.append(f"{question.question_id}: has options; its references are its answer")
            references = None
        yield corrected(question, row.get("question"), references)


def corrected(
    question: Question, text: str | None, references: Sequence[str] | None
) -> dict[str, Any]:
    """The question's row with this text and these references; None keeps the corpus's."""
    was: dict[str, Any] = {}
    if text is not None and text != question.question:
        was["original_question"] = question.question
    if references is not None and (*references,) != question.references:
        was["original_references"] = question.references
    return {
        "document_id": question.document_id,
        "question_id": question.question_id,
        "question": text or question.question,
        "references": references or question.references,
        "options": question.options,
        "answer_index": question.answer_index,
        "question_type": question.question_type,
        "asked_at": question.asked_at,
        "evidence": [(span.start_char, span.end_char) for span in question.evidence],
        "metadata": {**json.loads(question.metadata), **was},
    }


def _annotated(book: Row, questions: Sequence[Question], misfits: list[str]) -> Iterator[Row]:
    """The rows of those questions that a book's annotations cover."""
    paired = pair(book["qas"], questions)
    for number, own in enumerate(book["qas"]):
        if number not in paired:
            misfits.append(f"{book['document_id']}: no question is that of {own['question']!r}")
    for number, place in sorted(paired.items(), key=lambda one: one[1]):
        own, question = book["qas"][number], questions[place]
        text = own["question"].strip() if own["is_question_modified"] else None
        yield corrected(question, text, _references(own, question))


def pair(qas: Sequence[Row], questions: Sequence[Question]) -> dict[int, int]:
    """The index of each annotation's question; NarrativeQA has no ids that link them.

    1. An annotation that was not reworded belongs to the question with the same letters and digits;
       where a question is asked twice, to the one with most of its answers.
    2. A reworded one belongs to the remaining question with most of its unmodified answers, at
       least one; of several, to the one worded most alike.
    3. Where all answers were modified, too, it belongs to the only question left between those of
       its neighbors, as both are in the same order.
    """
    same, alike = dict[tuple[int, int], float](), dict[tuple[int, int], float]()
    for number, own in enumerate(qas):
        for place, question in enumerate(questions):
            num_kept = _num_kept(own, question)
            if own["is_question_modified"] and num_kept:
                alike[number, place] = num_kept + _likeness(own["question"], question.question) / 2
            elif own["is_question_modified"]:
                continue
            elif _plain(own["question"]) == _plain(question.question):
                same[number, place] = num_kept
    found = dict[int, int]()
    for scored in (same, alike):  # the highest score first, the earlier of equal ones
        for number, place in sorted(scored, key=lambda one: scored[one], reverse=True):
            if number not in found and place not in found.values():
                found[number] = place
    return found | dict(_between(found, qas, len(questions)))


def _between(
    found: Mapping[int, int], qas: Sequence[Row], num_questions: int
) -> Iterator[tuple[int, int]]:
    """Pairs of a reworded annotation and a question that are each the only one left between two
    known neighbors."""
    gaps = dict[tuple[int, int], list[int]]()
    for number in set(range(len(qas))) - found.keys():
        before = [place for n, place in sorted(found.items()) if n < number]
        after = [place for n, place in sorted(found.items()) if n > number]
        first, end = before[-1] + 1 if before else 0, after[0] if after else num_questions
        gaps.setdefault((first, end), []).append(number)
    for (first, end), (number, *others) in gaps.items():
        free = [place for place in range(first, end) if place not in found.values()]
        if len(free) == 1 and not others and qas[number]["is_question_modified"]:
            yield number, free[0]


def _num_kept(own: Row, question: Question) -> int:
    """The number of unmodified answers that are among the question's references."""
    theirs = {*map(_plain, question.references)} - {""}
    pairs = zip(own["answers"], own["is_answer_modified"], strict=True)
    return sum(not changed and _plain(answer) in theirs for answer, changed in pairs)


def _references(own: Row, question: Question) -> list[str]:
    """The answers; unmodified ones as the corpus writes them."""
    was, found = question.references, []
    for place, answer in enumerate(own["answers"]):
        same = [w for w in (*was[place : place + 1], *was) if _plain(w) == _plain(answer)]
        is_kept = same and not own["is_answer_modified"][place]
        found.append(same[0] if is_kept else answer.strip())
    return found


def _plain(text: str) -> str:
    """Only letters and digits, which no tokenization changes."""
    return "".join(filter(str.isalnum, text.casefold()))


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one.casefold(), other.casefold(), autojunk=False).ratio()


if __name__ == "__main__":
    try:
        main()
    except gistmill.UsageError as error:
        sys.exit(str(error))
