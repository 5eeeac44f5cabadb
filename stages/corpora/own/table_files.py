"""A folder with documents.jsonl or documents.parquet and questions.jsonl or questions.parquet.

Documents have `text`; optional are document_id, title and metadata (an object or JSON text); other
columns are kept in metadata. Ids are made from title and text. The questions, which may be absent,
are read as question_file.py describes.
"""

from collections.abc import Iterator
from typing import Literal

from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.core.rows import Document
from stages.corpora.reading.corpus import FileCorpus
from stages.corpora.reading.corpus_files import is_there, rows_of
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.ids import Ids
from stages.corpora.reading.loaded import Loaded, bad_document
from stages.corpora.reading.question_file import QuestionFile
from stages.corpora.reading.row_checks import BadInputError, label_of, metadata_of, text_of

_COLUMNS = frozenset({"document_id", "title", "text", "metadata"})


class TablesCorpus(FileCorpus):
    """A folder; one table may be JSON lines and the other Parquet."""

    format: Literal["tables"]

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per document, in file order, then the questions without a document.

        Where an id is used twice, the second document is bad_input and the first has the questions.
        Raises UsageError where documents are missing, or a table is unreadable, has no rows or is
        there both as JSON lines and as Parquet.
        """
        documents = _file(self.path, "documents")
        if documents is None:
            raise UsageError(
                f"{self.path}: no documents.jsonl or documents.parquet here; set corpus.path=..."
            )
        asked = _file(self.path, "questions")
        questions = QuestionFile(rows_of([asked]) if asked else ())
        ids = Ids()
        for row in rows_of([documents]):
            yield _loaded(self, row, ids, questions)
        yield from questions.take_rest(ids)


def _file(folder: UPath, name: str) -> UPath | None:
    found = [path for end in ("jsonl", "parquet") if is_there(path := folder / f"{name}.{end}")]
    if len(found) > 1:
        raise UsageError(f"{folder}: both {found[0].name} and {found[1].name}; keep one")
    return found[0] if found else None


def _loaded(corpus: FileCorpus, row: Row, ids: Ids, questions: QuestionFile) -> Loaded:
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
        return corpus.document(document_id, text, title, metadata_of(value, _COLUMNS))
    except BadInputError as wrong:
        return bad_document(document_id, row.detail(wrong))
