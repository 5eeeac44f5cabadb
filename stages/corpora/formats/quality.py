"""QuALITY in its published JSON lines (github.com/nyu-mll/quality), raw or htmlstripped.

A line holds an article and one writer's questions; lines of the same article_id become one
document. Labels count from 1 in the files and are absent in the test split. A question without an
id gets one made from article_id, question and options.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pipeline.core.rows import Document, Question
from stages.corpora.reading.corpus import FileCorpus, Loaded, document_or_bad
from stages.corpora.reading.corpus_row import (
    BadInputError,
    Ids,
    Row,
    Value,
    choice_of,
    json_text,
    label_of,
    present,
    rows_within,
    text_of,
    texts_of,
)
from stages.corpora.reading.files import files_of, rows_of
from stages.corpora.reading.questions import QuestionLayout
from stages.text.article_text import article_text

_ABOUT = ("author", "year", "source", "topic", "url")
_OF_LINE = ("writer_id", "set_unique_id")  # keys of a line that its questions keep


class QualityCorpus(FileCorpus):
    """One of the published files, or a folder of them."""

    papers: ClassVar[tuple[str, ...]] = ("quality",)
    licences: ClassVar[Mapping[str, str]] = {
        "QuALITY": "CC BY 4.0; each article has its own, in its row"
    }
    format: Literal["quality"]

    splits: ClassVar[tuple[str, ...]] = ("train", "dev", "test")

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per article_id, its questions in line order; all are in memory. In a
        folder, *.jsonl and QuALITY*.{train,dev,test} are read; with `split`, those of that name.
        Writers' copies of an article may differ: the first readable one is used. Raises UsageError
        where no line can be read."""
        articles: dict[Any, list[Row]] = {}  # by id or, without one, by place
        for row in self.rows():
            key = row.given_id("article_id") or (row.file, row.line)
            articles.setdefault(key, []).append(row)
        document_ids, question_ids = Ids(), Ids()
        for rows in articles.values():
            given = document_id, _ = document_ids.of_given(rows[0], "article_id")
            copies = (document_or_bad(row, given, self._document) for row in rows)
            document = next(copies)
            if document.problem:
                document = next((copy for copy in copies if not copy.problem), document)
            questions = (q for row in rows for q in _questions(row, document_id, question_ids))
            yield Loaded(document, tuple(questions))

    def _document(self, value: Value, document_id: str) -> Document:
        text = article_text(text_of(value, "article"))
        title, about = label_of(value, "title") or "", json_text(present(value, _ABOUT))
        return self.document(document_id, text, title, about)

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
    options = texts_of(value, "options")
    if not options:
        raise BadInputError("no `options`; add them")
    return options


_QUESTION = QuestionLayout(
    question="question",
    options=_options,
    right=lambda value, num_options: choice_of(value, "gold_label", 1, num_options),
    metadata=lambda value: json_text(present(value, ("difficult", *_OF_LINE))),
)
