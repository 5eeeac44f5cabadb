"""UltraDomain (MemoRAG): a jsonl file per domain; each row has a question and the whole book.

Fields: input, answers (a list of one), context, context_id, _id, label (the domain, which becomes
the questions' type; in some files `dataset`), and in some files meta (title, authors). `length`
counts the tokens of some model and is not used.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Literal

from pipeline.core.rows import Question
from stages.corpora.reading.corpus import FileCorpus
from stages.corpora.reading.corpus_files import files_of, rows_of
from stages.corpora.reading.grouped import Format, Text, itself, load_grouped
from stages.corpora.reading.loaded import Loaded
from stages.corpora.reading.row_checks import json_object, label_of, question_of, text_of, texts_of

_KEPT = ("_id", "input", "answers", "label", "dataset")


class UltraDomainCorpus(FileCorpus):
    """The file of a domain, or a folder of such files."""

    papers: ClassVar[tuple[str, ...]] = ("memorag",)
    format: Literal["ultradomain"]

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per book. Raises UsageError where no line can be read."""
        return load_grouped(self, partial(rows_of, files_of(self.path, "*.jsonl")), _FORMAT)


def _text(row: dict[str, Any]) -> Text:
    about = json_object(row, "meta")
    known = {"domain": _domain(row), "authors": about.get("authors")}
    metadata = {key: fact for key, fact in known.items() if fact}
    return Text(text_of(row, "context"), label_of(about, "title") or "", metadata)


def _domain(row: dict[str, Any]) -> str | None:
    return label_of(row, "label") or label_of(row, "dataset")


def _question(document_id: str, value: dict[str, Any], question_id: str) -> Question:
    return Question(
        document_id=document_id,
        question_id=question_id,
        question=question_of(value, "input"),
        references=texts_of(value, "answers"),
        question_type=_domain(value),
    )


_FORMAT = Format(
    document_id="context_id",
    question_id="_id",
    asks=("input",),
    text=_text,
    asked=partial(itself, _KEPT),
    question=_question,
)
