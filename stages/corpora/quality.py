"""QuALITY in its native JSON lines (github.com/nyu-mll/quality), raw or htmlstripped.

A line holds an article and one writer's questions; the lines of an article_id become one document.
Labels count from 1 in the files and are absent in the test split.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

from upath import UPath

from pipeline.rows import Document, Question
from stages.corpora.article_text import article_text
from stages.corpora.checks import (
    BadInputError,
    index_of,
    json_text,
    label_of,
    question_of,
    text_of,
    texts_of,
)
from stages.corpora.corpus import FileCorpus
from stages.corpora.loaded import Loaded, MadeIds, bad_document, document_of, question_or_bad
from stages.corpora.row import Row, rows_within
from stages.corpora.rows import files_of, row_at, rows_of

Place = tuple[UPath, int, int]  # a file, its line and the byte where that starts
_ABOUT = ("author", "year", "source", "topic", "url")


class QualityCorpus(FileCorpus):
    """A file, or a folder of the published ones."""

    format: Literal["quality"]

    splits: ClassVar[tuple[str, ...]] = ("train", "dev", "test")

    def load(self) -> Iterator[Loaded]:
        """One Loaded an article_id, its questions in line order; reads every line twice.

        Of a folder, the *.jsonl and QuALITY*.{train,dev,test} are read, with `split` those of that
        name. Writers' copies of an article may differ: the first that can be read is kept. Raises
        UsageError where no line can be read.
        """
        articles, document_ids, question_ids = _first_pass(self.path, self.split)
        for places in articles.values():
            rows = [row_at(*place) for place in places]
            text = (rows[0].value or {}).get("article")
            document_id, _ = document_ids.of_row(rows[0], "article_id", text)
            questions = (q for row in rows for q in _questions(row, document_id, question_ids))
            yield Loaded(_document(self, document_id, rows), tuple(questions))


def _first_pass(
    path: UPath, split: str | None
) -> tuple[dict[str | Place, list[Place]], MadeIds, MadeIds]:
    """The places of each article's lines in file order, and the ids given in the files."""
    articles: dict[str | Place, list[Place]] = {}
    question_ids: set[str | None] = set()
    for row in rows_of(files_of(path, *_names(split))):
        place = (row.file, row.line, row.start)
        articles.setdefault(row.given_id("article_id") or place, []).append(place)
        question_ids.update(
            entry.given_id("question_unique_id") for entry in rows_within(row, "questions")
        )
    return articles, MadeIds(k for k in articles if isinstance(k, str)), MadeIds(question_ids)


def _names(split: str | None) -> list[str]:
    """QuALITY.v1.0.1.htmlstripped.dev has no suffix of a format, its split is the suffix."""
    splits = [split] if split else QualityCorpus.splits
    return [*(["*.jsonl"] if split is None else []), *(f"*.{s}" for s in splits),
            *(f"*{s}.jsonl" for s in splits)]  # fmt: skip


def _document(corpus: FileCorpus, document_id: str, rows: Sequence[Row]) -> Document:
    """The document of the first line that has one, else a bad one with the first line's fault."""
    faults = []
    for row in rows:
        try:
            return _readable(corpus, document_id, row)
        except BadInputError as wrong:
            faults.append(row.detail(wrong))
    return bad_document(document_id, faults[0])


def _readable(corpus: FileCorpus, document_id: str, row: Row) -> Document:
    if row.value is None:
        raise BadInputError(row.wrong)
    if label_of(row.value, "article_id") is None:
        raise BadInputError("no `article_id`; add it")
    about = {key: row.value[key] for key in _ABOUT if row.value.get(key) is not None}
    text = article_text(text_of(row.value, "article"))
    return document_of(
        corpus, document_id, text, label_of(row.value, "title") or "", json_text(about)
    )


def _questions(row: Row, document_id: str, ids: MadeIds) -> Iterator[Question]:
    """The questions of one line; one without an id gets one made of its text and options."""
    about = {key: (row.value or {}).get(key) for key in ("writer_id", "set_unique_id")}
    for entry in rows_within(row, "questions"):
        value = entry.value or {}
        content = (document_id, value.get("question"), value.get("options"))
        made = ids.of_row(entry, "question_unique_id", *content)
        yield question_or_bad(entry, document_id, made, partial(_question, document_id, about))


def _question(
    document_id: str, about: dict[str, Any], value: dict[str, Any], question_id: str
) -> Question:
    options = texts_of(value, "options")
    if not options:
        raise BadInputError("no `options`; add them")
    right = index_of(value, "gold_label", first=1, num_options=len(options))
    known = {"difficult": value.get("difficult"), **about}
    return Question(
        document_id=document_id,
        question_id=question_id,
        question=question_of(value, "question"),
        options=options,
        references=() if right is None else (options[right],),
        answer_index=right,
        metadata=json_text({key: fact for key, fact in known.items() if fact is not None}),
    )
