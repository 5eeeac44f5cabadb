"""QMSum (github.com/Yale-LILY/QMSum, data/ALL) and QuALITY (github.com/nyu-mll/quality) in their
published JSON.

A meeting's text has one line per turn, `speaker: content`; a turn is a paragraph. QMSum has no ids:
the id of a meeting is made from its turns before cleaning, that of a question from the meeting's id
and the query.

A line of QuALITY, raw or htmlstripped, holds an article and one writer's questions; lines of the
same article_id become one document. Labels count from 1 and are absent in the test split. A
question without an id gets one made from article_id, question and options.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, ClassVar, Literal

from pipeline.core.rows import Document, Question, Span
from stages.corpora.reading import values
from stages.corpora.reading.corpus import FileCorpus, Loaded, bad_document, document_or_bad
from stages.corpora.reading.files import files_of, rows_of, split_of
from stages.corpora.reading.questions import QuestionLayout
from stages.corpora.reading.values import BadInputError, Ids, Row, Value, rows_within, single
from stages.text.article_text import article_text
from stages.text.words import merged

_TAG = re.compile(r"\{[^{}]*\}")  # {vocalsound}, {disfmarker}, {gap}...
_LINE_BREAK = re.compile(r"\s*[\r\n]\s*")
_KINDS = {"general_query_list": "general", "specific_query_list": "specific"}
_ABOUT = ("author", "year", "source", "topic", "url")
_OF_LINE = ("writer_id", "set_unique_id")  # keys of QuALITY's lines that questions keep


class QMSumCorpus(FileCorpus):
    """A jsonl file, the json file of one meeting, or a folder of either (data/ALL has both)."""

    papers: ClassVar[tuple[str, ...]] = ("qmsum",)
    licences: ClassVar[Mapping[str, str]] = {"QMSum": "MIT"}
    format: Literal["qmsum"]
    clean: Literal["none", "tags"]  # tags: remove {vocalsound} and the like
    splits: ClassVar[tuple[str, ...]] = ("train", "val", "test")

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per meeting; general queries come first. Of a folder, *.jsonl are read,
        or *.json where there are none. A meeting with a turn that cannot be read is bad_input as a
        whole; its queries are kept."""
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
            if wrong:  # an earlier file has the meeting, with its queries
                return Loaded(bad_document(document_id, row.detail(wrong)), ())
        else:
            document_id = document_ids.of_place(row)
        spans: list[Span] | None = None
        try:
            if row.value is None:
                raise BadInputError(row.wrong)
            lines = self._lines(meeting)
            starts = accumulate((len(line) + 1 for line in lines), initial=0)
            spans = [Span(at, at + len(line)) for at, line in zip(starts, lines, strict=False)]
            topics = meeting.get("topic_list")  # only metadata, so malformed ones are left out
            objects = [t for t in topics if isinstance(t, dict)] if isinstance(topics, list) else []
            names = [name for t in objects if isinstance(name := t.get("topic"), str)]
            metadata = values.json_text({"topics": names})
            document = self.document(document_id, "\n".join(lines), metadata=metadata)
        except BadInputError as error:
            document = bad_document(document_id, row.detail(error))
        return Loaded(document, tuple(_queries(row, document_id, spans, question_ids)))

    def _lines(self, meeting: Value) -> list[str]:
        lines = []
        key = "meeting_transcripts"
        turns = values.texts_within(meeting.get(key), key, "speaker", "content")
        for _, (speaker, content) in turns:
            if self.clean == "tags":
                content = " ".join(_TAG.sub(" ", content).split())
            # An empty turn keeps its line, as evidence counts turns, and its space, as ReadAgent's
            # text.
            lines.append(_LINE_BREAK.sub(" ", f"{speaker.strip()}: {content.strip()}"))
        return lines


def _queries(
    row: Row, document_id: str, turns: Sequence[Span] | None, ids: Ids
) -> Iterator[Question]:
    """`turns`: their spans in the text; None where they cannot be read."""
    for key, kind in _KINDS.items():
        layout = _query_layout(kind, turns if kind == "specific" else None)
        for entry in rows_within(row, key):
            given = ids.of_row(entry, None, document_id, (entry.value or {}).get("query"))
            yield layout.read(entry, document_id, given)


def _query_layout(kind: str, turns: Sequence[Span] | None) -> QuestionLayout:
    return QuestionLayout(
        question="query",
        references=lambda query: single(values.optional_text(query, "answer")),
        question_type=lambda query: kind,
        evidence=lambda query: _evidence(query, turns),
    )


def _evidence(query: Value, turns: Sequence[Span] | None) -> tuple[Span, ...]:
    """The spans of `relevant_text_span`, a list of pairs of first and last turn, both inclusive.
    The published files write the numbers as strings."""
    if turns is None or query.get("relevant_text_span") is None:
        return ()
    spans = []
    for pair in values.list_of(query, "relevant_text_span"):
        match [_turn(number) for number in pair] if isinstance(pair, list) else []:
            case [int(first), int(last)] if 0 <= first <= last < len(turns):
                spans.append(Span(turns[first].start_char, turns[last].end_char))
            case _:
                raise BadInputError(
                    f"`relevant_text_span` {values.shown(pair)} is no pair of first and last turn, "
                    f"0 to {len(turns) - 1}; fix it"
                )
    return merged(spans)


def _turn(number: Any) -> int | None:
    is_text = isinstance(number, str) and number.isdecimal() and len(number) < 10
    return int(number) if is_text else values.whole_number(number)


class QualityCorpus(FileCorpus):
    """One of the published files, or a folder of them."""

    papers: ClassVar[tuple[str, ...]] = ("quality",)
    licences: ClassVar[Mapping[str, str]] = {
        "QuALITY": "CC BY 4.0; each article has its own, in its row"
    }
    format: Literal["quality"]
    splits: ClassVar[tuple[str, ...]] = ("train", "dev", "test")

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per article_id, its questions in line order; all are in memory. Of the
        writers' copies of an article the first one is used."""
        articles: dict[Any, list[Row]] = {}  # by id or, without one, by place
        for row in self.rows():
            key = row.given_id("article_id") or (row.file, row.line)
            articles.setdefault(key, []).append(row)
        document_ids, question_ids = Ids(), Ids()
        for rows in articles.values():
            given = document_id, _ = document_ids.of_given(rows[0], "article_id")
            document = document_or_bad(rows[0], given, self._document)
            questions = (q for row in rows for q in _questions(row, document_id, question_ids))
            yield Loaded(document, tuple(questions))

    def _document(self, value: Value, document_id: str) -> Document:
        text = article_text(values.text_of(value, "article"))
        about = values.json_text(values.present(value, _ABOUT))
        return self.document(document_id, text, values.label_of(value, "title") or "", about)

    def rows(self) -> Iterator[Row]:
        """The lines; QuALITY.v1.0.1.htmlstripped.dev ends in its split, or in .jsonl."""
        splits = [self.split] if self.split else self.splits
        either = [*(f"*.{name}" for name in splits), *(f"*{name}.jsonl" for name in splits)]
        return rows_of(files_of(self.path, *(["*.jsonl"] if self.split is None else []), *either))


def _questions(row: Row, document_id: str, ids: Ids) -> Iterator[Question]:
    of_line = {key: (row.value or {}).get(key) for key in _OF_LINE}
    for entry in rows_within(row, "questions"):
        value = entry.value or {}
        content = (document_id, value.get("question"), value.get("options"))
        given = ids.of_row(entry, "question_unique_id", *content)
        whole = replace(entry, value={**value, **of_line}) if value else entry
        yield _QUESTION.read(whole, document_id, given)


def _options(value: Value) -> tuple[str, ...]:
    if options := values.texts_of(value, "options"):
        return options
    raise BadInputError("no `options`; add them")


_QUESTION = QuestionLayout(
    question="question",
    options=_options,
    right=lambda value, num_options: values.choice_of(value, "gold_label", 1, num_options),
    metadata=lambda value: values.json_text(values.present(value, ("difficult", *_OF_LINE))),
)
