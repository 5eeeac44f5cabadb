"""Images of the pages of PDFs, drawn from the file that a document came from, while that still has
the same text."""

import hashlib
from collections.abc import Callable
from threading import Lock

from pydantic import ValidationError

from pipeline.core.errors import UsageError
from pipeline.files.storage_retries import filesystem_errors
from stages.corpora.own.ask_corpus import AskCorpus
from stages.corpora.own.text_files import TextCorpus
from stages.corpora.reading.corpus import Corpus
from stages.corpora.reading.file_text import unpacked
from stages.corpora.reading.folders import Entry
from stages.corpora.reading.kept_texts import extracted_once
from stages.corpora.reading.opening import read_whole
from stages.corpora.reading.row_checks import BadInputError, without_lone_surrogates
from stages.extract.extracted import UnreadableError
from stages.extract.isolated import Extractor
from stages.text.encodings import without_c1

_SECONDS = 120.0  # in which a file is read again, or a page drawn


class PageImages:
    """Draws pages of the PDFs that a corpus has read, one at a time. Safe for threads. `corpus` is
    called when a page is first drawn."""

    def __init__(self, corpus: Callable[[], Corpus]) -> None:
        self._corpus = corpus
        self._lock = Lock()
        self._extractor = Extractor(_SECONDS)
        self._entries: dict[str, Entry] | None = None
        self._same: set[tuple[str, bytes]] = set()  # documents, and hashes of files of their text

    def close(self) -> None:
        with self._lock:
            self._extractor.__exit__(None, None, None)

    def image(self, document_id: str, text: str, index: int) -> dict[str, str]:
        """The `image` of a page as JPEG in base64, or the reason `why` there is none."""
        with self._lock:
            try:
                entry = self._entry(document_id)
            except _folder_errors():
                return {"why": "The folder that this PDF was read from is not there any more."}
            try:
                content = self._content(document_id, text, entry)
                return {"image": self._extractor.page_image(content, index)}
            except FileNotFoundError:
                why = "not there any more"
            except (UnreadableError, BadInputError) as error:
                why = str(error)
            except filesystem_errors() as error:
                why = getattr(error, "strerror", None) or str(error)
        return {"why": f"{entry.name}: {why}"}

    def _entry(self, document_id: str) -> Entry:
        """The file of a document. Raises as reading its folder does, and UsageError."""
        if self._entries is None:
            corpus = self._corpus()
            self._entries = corpus.entries() if isinstance(corpus, AskCorpus | TextCorpus) else {}
        if document_id not in self._entries:
            raise UsageError(f"{document_id}: no file")
        return self._entries[document_id]

    def _content(self, document_id: str, text: str, entry: Entry) -> bytes:
        """The bytes of the file. Raises UnreadableError where another text is in it."""
        content = unpacked(read_whole(entry.file))
        known = document_id, hashlib.sha256(content).digest()
        if known not in self._same:
            found = extracted_once("pdf", content, self._extractor).text
            if without_c1(without_lone_surrogates(found)) != text:
                raise UnreadableError("has changed since it was read")
            self._same.add(known)
        return content


def _folder_errors() -> tuple[type[Exception], ...]:
    """The errors of looking for a document's file."""
    return (UsageError, ValidationError, *filesystem_errors())
