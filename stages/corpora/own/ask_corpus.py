"""Files and folders that are all asked one question, or none: the corpus of `gistmill ask`.

Documents are read and named as in the corpus `text`, and their rows are the same: what a run of
that corpus has made of them is not made again.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator
from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.core.registry import hint
from pipeline.core.rows import Document, Question
from pipeline.core.settings import sha
from pipeline.files.named_paths import refuse_unreachable_path
from pipeline.files.place import is_remote
from stages.corpora.own.text_files import DOCUMENTS_VERSION, documents_of, entries_of, ids_of
from stages.corpora.reading.corpus import Address, FileCorpus, Unhashed
from stages.corpora.reading.folders import Entry
from stages.corpora.reading.ids import Ids
from stages.corpora.reading.loaded import Loaded
from stages.corpora.reading.opening import refuse_no_file
from stages.corpora.reading.row_checks import name_of

_HEX_DIGITS = 16


def _to_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class AskCorpus(FileCorpus):
    """One question, "" for none, and the documents it is asked of. `path`: the first of `paths`."""

    format: Literal["asked"]
    version: ClassVar[int] = DOCUMENTS_VERSION
    paths: Annotated[tuple[Address, ...], BeforeValidator(_to_tuple), Unhashed()]
    question: Annotated[str, Unhashed()]

    def hashed(self) -> Mapping[str, Any]:
        """As in the corpus `text`, whose documents these are."""
        return {**super().hashed(), "format": "text"}

    def selection(self) -> Mapping[str, Any]:
        """With the names of the files: a folder that has lost one is that of another run."""
        return {**super().selection(), "files": sorted(self.named_files().values())}

    def named_files(self) -> dict[str, str]:
        """The names of the files that may be read, by the id of their document. Raises UsageError
        where there are none."""
        entries = _entries(self.paths)
        named = zip(entries, ids_of(entries, Ids()), strict=True)
        return {own: name_of(entry.name) for entry, (own, _) in named if not entry.left_out}

    def check(self) -> None:
        for path in self.paths:
            with refuse_unreachable_path(path, "FILE"):
                is_there = path.exists()
            if not is_there:
                raise UsageError(f"{path}: no such file or folder; {_nearest(path)}")
            if not path.is_dir():
                refuse_no_file(path, "name another")

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per document, with the question, if any, where it can be read.

        Raises UsageError where no document can be read.
        """
        for _, loaded in documents_of(self, _entries(self.paths), Ids()):
            document = loaded.document
            is_asked = self.question and not document.why_unusable()
            yield replace(loaded, questions=(self._asked(document),)) if is_asked else loaded

    def _asked(self, document: Document) -> Question:
        question_id = sha([document.document_id, self.question], _HEX_DIGITS)
        return Question(
            document_id=document.document_id, question_id=question_id, question=self.question
        )


def _nearest(path: UPath) -> str:
    folder = path.parent
    names = [file.name for file in folder.iterdir()] if folder.is_dir() else []
    return hint(path.name, sorted(names)) if names else "name one that is there"


def _entries(paths: tuple[UPath, ...]) -> list[Entry]:
    """The entries of all paths, each file once, however it is written; the whole path names those
    that have a name in common."""
    found: dict[str, Entry] = {}
    for entry in (entry for path in paths for entry in entries_of(path, (), "name another")):
        file = entry.file if is_remote(entry.file) else entry.file.resolve()
        found.setdefault(str(file), entry)
    times = Counter(name_of(entry.name) for entry in found.values())
    return [
        entry if times[name_of(entry.name)] == 1 else replace(entry, name=str(entry.file))
        for entry in found.values()
    ]
