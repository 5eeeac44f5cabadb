"""QMSum in its published JSON (github.com/Yale-LILY/QMSum, data/ALL), a meeting per line or file.

The text has one line per turn, `speaker: content`, so that a turn is a paragraph. The format has no
ids: a meeting's is made from its turns before cleaning, a question's from that and the query.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, ClassVar, Literal

from pipeline.core.rows import Question, Span
from stages.corpora.reading.corpus import FileCorpus, Loaded, bad_document
from stages.corpora.reading.corpus_row import (
    BadInputError,
    Row,
    json_text,
    kind_of,
    list_of,
    optional_text,
    rows_within,
    shown,
    text_of,
    whole_number,
)
from stages.corpora.reading.files import files_of, rows_of, split_of
from stages.corpora.reading.ids import Ids
from stages.corpora.reading.questions import Asked, Value, single
from stages.text.words import merged

_TAG = re.compile(r"\{[^{}]*\}")  # {vocalsound}, {disfmarker}, {gap}...
_LINE_BREAK = re.compile(r"\s*[\r\n]\s*")
Turns = Sequence[tuple[int, int]] | None  # start and end character of each turn; None: unknown
_KINDS = {"general_query_list": "general", "specific_query_list": "specific"}


class QMSumCorpus(FileCorpus):
    """A jsonl file, the json file of one meeting, or a folder of either (data/ALL has both)."""

    papers: ClassVar[tuple[str, ...]] = ("qmsum",)
    licences: ClassVar[Mapping[str, str]] = {"QMSum": "MIT"}
    format: Literal["qmsum"]
    clean: Literal["none", "tags"]  # tags: remove {vocalsound} and the like

    splits: ClassVar[tuple[str, ...]] = ("train", "val", "test")

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per meeting; general queries come first.

        Of a folder, *.jsonl are read, or *.json where there are none; with `split` the file or
        folder of that name. A meeting with a turn that cannot be read is bad_input as a whole; its
        queries are kept. Raises UsageError where no line can be read.
        """
        document_ids, question_ids = Ids(), Ids()
        for row in self.rows():
            yield self._meeting(row, document_ids, question_ids)

    def rows(self) -> Iterator[Row]:
        """The rows of one kind of file only: a folder may hold the same meetings in both."""
        path = split_of(self.path, self.split, "jsonl", "json")
        patterns = ("*.jsonl",) if any(path.glob("*.jsonl")) else ("*.jsonl", "*.json")
        return rows_of(files_of(path, *patterns))

    def _meeting(self, row: Row, document_ids: Ids, question_ids: Ids) -> Loaded:
        meeting = row.value or {}
        document_id, wrong = _document_id(row, meeting, document_ids)
        turns: Turns = None
        try:
            if wrong:
                raise BadInputError(wrong)
            lines = _lines(meeting, self.clean)
            turns = _tile(lines)
            metadata = json_text({"topics": _topics(meeting)})
            document = self.document(document_id, "\n".join(lines), metadata=metadata)
        except BadInputError as error:
            document = bad_document(document_id, row.detail(error))
        # A meeting that occurred in an earlier file had its queries there.
        asked = () if wrong else _questions(row, document_id, turns, question_ids)
        return Loaded(document, tuple(asked))


def _document_id(row: Row, meeting: Value, ids: Ids) -> tuple[str, str | None]:
    turns = meeting.get("meeting_transcripts")
    return ids.of_content(row, turns) if isinstance(turns, list) else (ids.of_place(row), row.wrong)


def _lines(meeting: Value, clean: Literal["none", "tags"]) -> list[str]:
    lines = []
    for index, turn in enumerate(list_of(meeting, "meeting_transcripts")):
        try:
            lines.append(_line(turn, clean))
        except BadInputError as wrong:
            raise BadInputError(f"meeting_transcripts[{index}]: {wrong}") from wrong
    return lines


def _line(turn: Any, clean: Literal["none", "tags"]) -> str:
    if not isinstance(turn, dict):
        raise BadInputError(f"{kind_of(turn)}, not an object; fix it")
    speaker, content = text_of(turn, "speaker"), text_of(turn, "content")
    if clean == "tags":
        content = " ".join(_TAG.sub(" ", content).split())
    # An empty turn keeps its line, as evidence counts turns, and its space, as ReadAgent's text.
    return _LINE_BREAK.sub(" ", f"{speaker.strip()}: {content.strip()}")


def _tile(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Start and end of each line in the text that joins them by newlines."""
    starts = accumulate((len(line) + 1 for line in lines), initial=0)
    return [(start, start + len(line)) for start, line in zip(starts, lines, strict=False)]


def _topics(meeting: Value) -> list[str]:
    """Names of the topics; only metadata, so malformed ones are left out."""
    topics = meeting.get("topic_list")
    entries = topics if isinstance(topics, list) else []
    names = (entry.get("topic") for entry in entries if isinstance(entry, dict))
    return [name for name in names if isinstance(name, str)]


def _questions(row: Row, document_id: str, turns: Turns, ids: Ids) -> Iterator[Question]:
    for key, kind in _KINDS.items():
        asked = _asked(kind, turns)
        for entry in rows_within(row, key):
            found = ids.of_row(entry, None, document_id, (entry.value or {}).get("query"))
            yield asked.read(entry, document_id, found)


def _asked(kind: str, turns: Turns) -> Asked:
    return Asked(
        question="query",
        references=lambda query: single(optional_text(query, "answer")),
        question_type=lambda query: kind,
        evidence=lambda query: _evidence(query, turns) if kind == "specific" else (),
    )


def _evidence(query: Value, turns: Turns) -> tuple[Span, ...]:
    """The spans of `relevant_text_span`, a list of pairs of first and last turn, both inclusive."""
    if turns is None or query.get("relevant_text_span") is None:
        return ()
    return merged(_characters(pair, turns) for pair in list_of(query, "relevant_text_span"))


def _characters(pair: Any, turns: Sequence[tuple[int, int]]) -> Span:
    numbers = [_turn(number) for number in pair] if isinstance(pair, list) else []
    match numbers:
        case [int(first), int(last)] if 0 <= first <= last < len(turns):
            return Span(turns[first][0], turns[last][1])
    raise BadInputError(
        f"`relevant_text_span` {shown(pair)} is no pair of first and last turn, "
        f"0 to {len(turns) - 1}; fix it"
    )


def _turn(number: Any) -> int | None:
    """The number of a turn, from 0; the published files write it as a string."""
    if isinstance(number, str) and number.isdecimal() and len(number) < 10:
        return int(number)
    return whole_number(number)
