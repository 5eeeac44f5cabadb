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
    Ids,
    Row,
    Value,
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
from stages.corpora.reading.questions import QuestionLayout, single
from stages.text.words import merged

_TAG = re.compile(r"\{[^{}]*\}")  # {vocalsound}, {disfmarker}, {gap}...
_LINE_BREAK = re.compile(r"\s*[\r\n]\s*")
_KINDS = {"general_query_list": "general", "specific_query_list": "specific"}


class QMSumCorpus(FileCorpus):
    """A jsonl file, the json file of one meeting, or a folder of either (data/ALL has both)."""

    papers: ClassVar[tuple[str, ...]] = ("qmsum",)
    licences: ClassVar[Mapping[str, str]] = {"QMSum": "MIT"}
    format: Literal["qmsum"]
    clean: Literal["none", "tags"]  # tags: remove {vocalsound} and the like

    splits: ClassVar[tuple[str, ...]] = ("train", "val", "test")

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per meeting; general queries come first. Of a folder, *.jsonl are read,
        or *.json where there are none; with `split` the file or folder of that name. A meeting with
        a turn that cannot be read is bad_input as a whole; its queries are kept. Raises UsageError
        where no line can be read."""
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
        turns = meeting.get("meeting_transcripts")
        if isinstance(turns, list):
            document_id, wrong = document_ids.of_row(row, None, turns)
        else:
            document_id, wrong = document_ids.of_place(row), row.wrong
        spans: list[Span] | None = None
        try:
            if wrong:
                raise BadInputError(wrong)
            lines = self._lines(meeting)
            starts = accumulate((len(line) + 1 for line in lines), initial=0)
            spans = [Span(at, at + len(line)) for at, line in zip(starts, lines, strict=False)]
            topics = meeting.get("topic_list")  # only metadata, so malformed ones are left out
            objects = [t for t in topics if isinstance(t, dict)] if isinstance(topics, list) else []
            names = [name for t in objects if isinstance(name := t.get("topic"), str)]
            metadata = json_text({"topics": names})
            document = self.document(document_id, "\n".join(lines), metadata=metadata)
        except BadInputError as error:
            document = bad_document(document_id, row.detail(error))
        # A meeting that occurred in an earlier file had its queries there.
        questions = () if wrong else _questions(row, document_id, spans, question_ids)
        return Loaded(document, tuple(questions))

    def _lines(self, meeting: Value) -> list[str]:
        lines = []
        for index, turn in enumerate(list_of(meeting, "meeting_transcripts")):
            try:
                if not isinstance(turn, dict):
                    raise BadInputError(f"{kind_of(turn)}, not an object; fix it")
                speaker, content = text_of(turn, "speaker"), text_of(turn, "content")
            except BadInputError as wrong:
                raise BadInputError(f"meeting_transcripts[{index}]: {wrong}") from wrong
            if self.clean == "tags":
                content = " ".join(_TAG.sub(" ", content).split())
            # An empty turn keeps its line, as evidence counts turns, and its space, as ReadAgent's
            # text.
            lines.append(_LINE_BREAK.sub(" ", f"{speaker.strip()}: {content.strip()}"))
        return lines


def _questions(
    row: Row, document_id: str, turns: Sequence[Span] | None, ids: Ids
) -> Iterator[Question]:
    """`turns`: their spans in the text; None where they cannot be read."""
    for key, kind in _KINDS.items():
        layout = _layout(kind, turns if kind == "specific" else None)
        for entry in rows_within(row, key):
            given = ids.of_row(entry, None, document_id, (entry.value or {}).get("query"))
            yield layout.read(entry, document_id, given)


def _layout(kind: str, turns: Sequence[Span] | None) -> QuestionLayout:
    return QuestionLayout(
        question="query",
        references=lambda query: single(optional_text(query, "answer")),
        question_type=lambda query: kind,
        evidence=lambda query: _evidence(query, turns),
    )


def _evidence(query: Value, turns: Sequence[Span] | None) -> tuple[Span, ...]:
    """The spans of `relevant_text_span`, a list of pairs of first and last turn, both inclusive."""
    if turns is None or query.get("relevant_text_span") is None:
        return ()
    spans = []
    for pair in list_of(query, "relevant_text_span"):
        match [_turn(number) for number in pair] if isinstance(pair, list) else []:
            case [int(first), int(last)] if 0 <= first <= last < len(turns):
                spans.append(Span(turns[first].start_char, turns[last].end_char))
            case _:
                raise BadInputError(
                    f"`relevant_text_span` {shown(pair)} is no pair of first and last turn, "
                    f"0 to {len(turns) - 1}; fix it"
                )
    return merged(spans)


def _turn(number: Any) -> int | None:
    """The number of a turn, from 0; the published files write it as a string."""
    if isinstance(number, str) and number.isdecimal() and len(number) < 10:
        return int(number)
    return whole_number(number)
