"""A folder with documents.jsonl or documents.parquet and questions.jsonl or questions.parquet.

Documents have `text`; optional are document_id, title and metadata (an object or JSON text); other
columns are kept in metadata. Ids are made from title and text. The questions, which may be absent,
are read as question_file.py describes.
"""

from collections.abc import Iterator
from typing import Literal

from pipeline.core.errors import UsageError
from pipeline.core.rows import Document
from stages.corpora.reading.corpus import FileCorpus, Loaded, document_or_bad
from stages.corpora.reading.corpus_row import label_of, metadata_of, text_of
from stages.corpora.reading.files import one_of, rows_of
from stages.corpora.reading.ids import Ids
from stages.corpora.reading.questions import QuestionFile, Value

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
        documents = one_of(self.path, "documents", "jsonl", "parquet")
        if documents is None:
            raise UsageError(
                f"{self.path}: no documents.jsonl or documents.parquet here; set corpus.path=..."
            )
        asked = one_of(self.path, "questions", "jsonl", "parquet")
        questions = QuestionFile(rows_of([asked]) if asked else ())
        ids = Ids()
        for row in rows_of([documents]):
            value = row.value or {}
            found = ids.of_row(row, "document_id", value.get("title"), value.get("text"))
            document = document_or_bad(row, found, self._document)
            yield Loaded(document, () if found[1] else questions.take(document))
        yield from questions.take_rest(ids)

    def _document(self, value: Value, document_id: str) -> Document:
        text, title = text_of(value, "text"), label_of(value, "title") or ""
        return self.document(document_id, text, title, metadata_of(value, _COLUMNS))
