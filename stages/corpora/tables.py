"""A folder with documents.jsonl or documents.parquet and questions.jsonl or questions.parquet.

Documents have `text`; optional are document_id, title and metadata (an object or JSON text); other
columns are kept in metadata. For the questions, which may be absent, see questions.py.
"""

from collections.abc import Iterator
from typing import Literal

from upath import UPath

from pipeline.errors import UsageError
from pipeline.rows import Document
from stages.corpora.checks import BadInputError, label_of, metadata_of, text_of
from stages.corpora.corpus import FileCorpus
from stages.corpora.loaded import Loaded, MadeIds, bad_document, document_of
from stages.corpora.questions import QuestionFile
from stages.corpora.row import Row
from stages.corpora.rows import rows_of

_COLUMNS = frozenset({"document_id", "title", "text", "metadata"})


class TablesCorpus(FileCorpus):
    """A folder; the formats of either table may differ."""

    format: Literal["tables"]

    def load(self) -> Iterator[Loaded]:
        """One Loaded a document, in file order, then the questions that no document took.

        A document whose id is taken is bad_input under another id; the questions are the first's.
        Raises UsageError where a file is missing, doubled, unreadable or without rows.
        """
        documents = _file(self.path, "documents")
        if documents is None:
            raise UsageError(
                f"{self.path}: no documents.jsonl or documents.parquet here; set corpus.path=..."
            )
        asked = _file(self.path, "questions")
        questions = QuestionFile(rows_of([asked]) if asked else ())
        given = {row.given_id("document_id") for row in rows_of([documents])}
        ids = MadeIds(given | questions.document_ids)
        for row in rows_of([documents]):
            yield _loaded(self, row, ids, questions)
        yield from questions.take_rest(ids)


def _file(folder: UPath, name: str) -> UPath | None:
    found = [path for end in ("jsonl", "parquet") if (path := folder / f"{name}.{end}").is_file()]
    if len(found) > 1:
        raise UsageError(f"{folder}: both {found[0].name} and {found[1].name}; keep one")
    return found[0] if found else None


def _loaded(corpus: FileCorpus, row: Row, ids: MadeIds, questions: QuestionFile) -> Loaded:
    value = row.value or {}
    document_id, wrong = ids.of_row(row, "document_id", value.get("title"), value.get("text"))
    if wrong:
        return Loaded(bad_document(document_id, row.detail(wrong)), ())
    document = _document(corpus, row, document_id)
    num_chars = None if document.problem else len(document.text)
    return Loaded(document, questions.take(document_id, num_chars))


def _document(corpus: FileCorpus, row: Row, document_id: str) -> Document:
    value = row.value or {}
    try:
        text, title = text_of(value, "text"), label_of(value, "title") or ""
        return document_of(corpus, document_id, text, title, metadata_of(value, _COLUMNS))
    except BadInputError as wrong:
        return bad_document(document_id, row.detail(wrong))
