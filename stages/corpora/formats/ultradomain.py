"""UltraDomain (MemoRAG): a jsonl file per domain; each row has a question and the whole book.

Fields: input, answers (a list of one), context, context_id, _id, label (the domain, which becomes
the questions' type; in some files `dataset`), and in some files meta (title, authors). `length`
counts the tokens of some model and is not used.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

from stages.corpora.reading.asked import Asked, Value
from stages.corpora.reading.grouped import Layout, RowsCorpus, Text
from stages.corpora.reading.row_checks import json_object, label_of, text_of


def _text(row: Value) -> Text:
    meta = json_object(row, "meta")
    known = {"domain": _domain(row), "authors": meta.get("authors")}
    metadata = {key: fact for key, fact in known.items() if fact}
    return Text(text_of(row, "context"), label_of(meta, "title") or "", metadata)


def _domain(row: Value) -> str | None:
    return label_of(row, "label") or label_of(row, "dataset")


class UltraDomainCorpus(RowsCorpus):
    """The file of a domain, or a folder of such files."""

    papers: ClassVar[tuple[str, ...]] = ("memorag",)
    licences: ClassVar[Mapping[str, str]] = {"UltraDomain": "Apache-2.0"}
    format: Literal["ultradomain"]
    layout: ClassVar[Layout] = Layout(
        document_id="context_id",
        text=_text,
        without=("context", "meta"),
        makes_id=("input",),
        asked=Asked(
            question_id="_id", question="input", references="answers", question_type=_domain
        ),
    )
