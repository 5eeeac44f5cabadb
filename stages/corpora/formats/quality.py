"""QuALITY in its published JSON lines (github.com/nyu-mll/quality), raw or htmlstripped.

A line holds an article and one writer's questions; lines of the same article_id become one
document. Labels count from 1 in the files and are absent in the test split. A question without an
id has one made from article_id, question and options.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import ClassVar, Literal

from upath import UPath

from pipeline.core.rows import Document, Question
from stages.corpora.reading.asked import Asked, Value
from stages.corpora.reading.corpus import FileCorpus
from stages.corpora.reading.corpus_files import files_of, row_at, rows_of
from stages.corpora.reading.corpus_row import Row, rows_within
from stages.corpora.reading.ids import Ids
from stages.corpora.reading.loaded import Loaded, document_or_bad, question_or_bad
from stages.corpora.reading.row_checks import (
    BadInputError,
    index_of,
    json_text,
    label_of,
    text_of,
    texts_of,
)
from stages.text.article_text import article_text

Place = tuple[UPath, int, int]  # a file, a line in it and the byte where that line starts
_ABOUT = ("author", "year", "source", "topic", "url")


class QualityCorpus(FileCorpus):
    """One of the published files, or a folder of them."""

    papers: ClassVar[tuple[str, ...]] = ("quality",)
    format: Literal["quality"]

    splits: ClassVar[tuple[str, ...]] = ("train", "dev", "test")

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per article_id, its questions in line order; reads every line twice.

        Of a folder, the *.jsonl and QuALITY*.{train,dev,test} are read, with `split` those of that
        name. Writers' copies of an article may differ: the first readable one is used. Raises
        UsageError where no line can be read.
        """
        document_ids, question_ids = Ids(), Ids()
        for places in _articles(self.path, self.split).values():
            rows = [row_at(*place) for place in places]
            found = document_id, _ = document_ids.of_given(rows[0], "article_id")
            document = _first_readable(
                document_or_bad(row, found, partial(_document, self, row.value or {}))
                for row in rows
            )
            questions = (q for row in rows for q in _questions(row, document_id, question_ids))
            yield Loaded(document, tuple(questions))


def _articles(path: UPath, split: str | None) -> dict[str | Place, list[Place]]:
    """The places of each article's lines in file order; a line without article_id is alone."""
    articles: dict[str | Place, list[Place]] = {}
    for row in rows_of(files_of(path, *_patterns(split))):
        place = (row.file, row.line, row.start)
        articles.setdefault(row.given_id("article_id") or place, []).append(place)
    return articles


def _patterns(split: str | None) -> list[str]:
    """Patterns of file names: QuALITY.v1.0.1.htmlstripped.dev ends in its split, or in .jsonl."""
    splits = [split] if split else QualityCorpus.splits
    return [*(["*.jsonl"] if split is None else []), *(f"*.{s}" for s in splits),
            *(f"*{s}.jsonl" for s in splits)]  # fmt: skip


def _first_readable(documents: Iterator[Document]) -> Document:
    """The first document that can be read, else the first, which has the first line's fault."""
    first = next(documents)
    return first if not first.problem else next((d for d in documents if not d.problem), first)


def _document(corpus: FileCorpus, value: Value, document_id: str) -> Document:
    about = {key: value[key] for key in _ABOUT if value.get(key) is not None}
    text = article_text(text_of(value, "article"))
    return corpus.document(document_id, text, label_of(value, "title") or "", json_text(about))


def _questions(row: Row, document_id: str, ids: Ids) -> Iterator[Question]:
    """The questions of one line."""
    about = {key: (row.value or {}).get(key) for key in ("writer_id", "set_unique_id")}
    for entry in rows_within(row, "questions"):
        value = entry.value or {}
        content = (document_id, value.get("question"), value.get("options"))
        found = ids.of_row(entry, "question_unique_id", *content)
        asked = replace(_ASKED, metadata=partial(_metadata, about))
        yield question_or_bad(entry, document_id, found, partial(asked.read, document_id))


def _metadata(about: Value, value: Value) -> str:
    known = {"difficult": value.get("difficult"), **about}
    return json_text({key: fact for key, fact in known.items() if fact is not None})


def _options(value: Value) -> tuple[str, ...]:
    options = texts_of(value, "options")
    if not options:
        raise BadInputError("no `options`; add them")
    return options


_ASKED = Asked(
    question="question",
    options=_options,
    right=lambda value, num_options: index_of(
        value, "gold_label", first=1, num_options=num_options
    ),
)
