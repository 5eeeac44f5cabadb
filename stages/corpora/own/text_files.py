"""A document or a folder of documents: .txt, .md, .html, .pdf, .epub, .docx; with questions.

A document's id and title are its path in the folder, without the suffix (`letters/may`) unless
several would have the same (`may.pdf`, `may.txt`). Its metadata has the front matter of Markdown,
and `missing`. Questions are in questions.jsonl, .json, .csv, .tsv or .parquet in the folder, read
as reading/questions.py describes; they name a document by its id or by its path with the suffix. A
single file has none.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.core.registry import hint
from pipeline.core.rows import Document, Question
from pipeline.core.settings import sha
from pipeline.files.storage import is_remote, refuse_unreachable_path
from stages.corpora.reading.corpus import Address, FileCorpus, Loaded, bad_document
from stages.corpora.reading.corpus_row import BadInputError, GivenId, Ids, Row, json_text, name_of
from stages.corpora.reading.document_files import (
    Entry,
    is_book,
    suffix_of,
    suffixes,
    text_of_file,
    walk,
)
from stages.corpora.reading.files import one_of, rows_of
from stages.corpora.reading.questions import QuestionFile
from stages.extract.isolated import Extractor

_ENDS = ("jsonl", "json", "csv", "tsv", "parquet")
DOCUMENTS_VERSION = 6  # of corpora of documents, which may be PDFs, books or pages
_HEX_DIGITS = 16  # of a question's id
QUESTION_FILES = tuple(f"questions.{end}" for end in _ENDS)


class TextCorpus(FileCorpus):
    """A folder of documents, or one document."""

    format: Literal["text"]
    version: ClassVar[int] = DOCUMENTS_VERSION

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per file, sorted by name, sub-folders included. A document that cannot
        be read or has no words is bad_input. A file that is no document is a skipped one that says
        why. Raises UsageError where no document can be read, or where the question file holds no
        question."""
        file = one_of(self.path, "questions", *_ENDS) if self.path.is_dir() else None
        questions = QuestionFile(rows_of([file]) if file else ())
        ids = Ids()
        for entry, loaded in documents_of(self, entries_of(self.path, QUESTION_FILES), ids):
            also = None if entry.left_out else name_of(entry.name)
            yield replace(loaded, questions=questions.take(loaded.document, also))
        yield from questions.take_rest(ids)


class AskCorpus(FileCorpus):
    """One question, "" for none, and the documents it is asked of: the corpus of `gistmill ask`.

    `path`: the first of `paths`. Documents are read and named as in TextCorpus, and their rows are
    the same: what a run of that corpus has made of them is not made again.
    """

    format: Literal["asked"]
    version: ClassVar[int] = DOCUMENTS_VERSION
    unhashed: ClassVar[frozenset[str]] = FileCorpus.unhashed | {"paths", "question"}
    paths: Annotated[tuple[Address, ...], Field(strict=False)]  # YAML has lists
    question: str

    def hashed(self) -> Mapping[str, Any]:
        """Equals that of format `text`, whose documents these are."""
        return {**super().hashed(), "format": "text"}

    def selection(self) -> Mapping[str, Any]:
        """Includes file names: a folder that has lost a file belongs to another run."""
        return {**super().selection(), "files": sorted(self.named_files().values())}

    def named_files(self) -> dict[str, str]:
        """The names of the files to read by document_id. Raises UsageError where there are none."""
        entries = _entries(self.paths)
        given = zip(entries, ids_of(entries, Ids()), strict=True)
        return {name: name_of(entry.name) for entry, (name, _) in given if not entry.left_out}

    def check(self) -> None:
        for path in self.paths:
            with refuse_unreachable_path(path, "FILE"):
                is_there = path.exists()
            if not is_there:
                files = path.parent.iterdir() if path.parent.is_dir() else ()
                names = sorted(file.name for file in files)
                advice = hint(path.name, names) if names else "name one that is there"
                raise UsageError(f"{path}: no such file or folder; {advice}")

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per document, with the question, if any, where the document can be read.
        Raises UsageError where no document can be read."""
        for _, loaded in documents_of(self, _entries(self.paths), Ids()):
            document_id = loaded.document.document_id
            if self.question and not loaded.document.why_unusable():
                question = Question(
                    document_id=document_id,
                    question_id=sha([document_id, self.question], _HEX_DIGITS),
                    question=self.question,
                )
                loaded = replace(loaded, questions=(question,))
            yield loaded


def _entries(paths: tuple[UPath, ...]) -> list[Entry]:
    """The entries of all paths, each file once even if it is named twice; entries with the same
    name are named by the whole path instead."""
    entries: dict[str, Entry] = {}
    for entry in (entry for path in paths for entry in entries_of(path, (), "name another")):
        file = entry.file if is_remote(entry.file) else entry.file.resolve()
        entries.setdefault(str(file), entry)
    times = Counter(name_of(entry.name) for entry in entries.values())
    return [
        entry if times[name_of(entry.name)] == 1 else replace(entry, name=str(entry.file))
        for entry in entries.values()
    ]


def entries_of(
    path: UPath, without: Collection[str] = (), advice: str = "set corpus.path=..."
) -> list[Entry]:
    """The files of a folder, except those in `without`; or the one file. Raises UsageError, ending
    in `advice`, where the folder has no document."""
    if not path.is_dir() or is_book(path):
        return [Entry(path, path.name)]
    entries = walk(path, without)
    if all(entry.left_out for entry in entries):
        named = ", ".join(entry.name for entry in entries[:3])
        others = f"; files of other kinds: {len(entries)} ({named})" if entries else ""
        raise UsageError(f"{path}: no {' '.join(suffixes())} in this folder{others}; {advice}")
    return entries


def documents_of(
    corpus: FileCorpus, entries: Sequence[Entry], ids: Ids
) -> Iterator[tuple[Entry, Loaded]]:
    """Yield the document of each entry, without questions, in order. Raises UsageError where none
    can be read."""
    waiting: list[tuple[Entry, Loaded]] = []
    is_any_read = False
    with Extractor() as extractor:
        for entry, given in zip(entries, ids_of(entries, ids), strict=True):
            waiting.append((entry, _loaded(corpus, entry, given, extractor)))
            is_any_read = is_any_read or not waiting[-1][1].document.why_unusable()
            if is_any_read:
                yield from waiting
                waiting.clear()
    if not is_any_read:
        bad = [loaded.document.detail for _, loaded in waiting if loaded.document.problem]
        raise UsageError(f"{corpus.path}: no document in it can be read: {bad[0]}")


def ids_of(entries: Sequence[Entry], ids: Ids) -> list[GivenId]:
    """The id of each entry, and why the entry cannot have it, or None. Ids are names without
    suffixes, unless two would be the same. Files that are left out claim theirs last and keep their
    whole names."""
    documents = [entry for entry in entries if not entry.left_out]
    names = [name_of(_stem(entry.name)) for entry in documents]
    longer: list[str] = []
    while longer != names:  # whole names, where two would be the same
        names, times = longer or names, Counter(longer or names)
        longer = [
            name_of(entry.name) if times[name] > 1 else name
            for entry, name in zip(documents, names, strict=True)
        ]
    given: dict[str, GivenId] = {}
    left_out = [entry for entry in entries if entry.left_out]
    wanted = [*names, *(name_of(entry.name) for entry in left_out)]
    for entry, document_id in zip([*documents, *left_out], wanted, strict=True):
        row, wrong = Row(entry.file, 1, None), None
        if (first := ids.claim(document_id, row)) is not None:
            document_id = ids.of_place(row)
            if not entry.left_out:
                first = first.removesuffix(":1")
                wrong = f"its document_id would be that of {first}; rename or delete it"
        given[entry.name] = document_id, wrong
    return [given[entry.name] for entry in entries]


def _stem(name: str) -> str:
    suffix = suffix_of(name)
    if suffix is None:  # a single file of any name
        folder, slash, last = name.rpartition("/")
        return folder + slash + (last.rpartition(".")[0] or last)
    is_packed = name.lower().endswith(".gz")
    return name[: -len(suffix) - 3 * is_packed] or name


def _loaded(corpus: FileCorpus, entry: Entry, given: GivenId, extractor: Extractor) -> Loaded:
    name, (document_id, wrong) = name_of(entry.name), given
    if entry.left_out:
        detail = f"{name}: {entry.left_out}"
        return Loaded(Document(document_id=document_id, skipped=True, detail=detail), ())
    try:
        if wrong := wrong or entry.wrong:
            raise BadInputError(wrong)
        extracted = text_of_file(entry.file, extractor)
        missing = {"missing": extracted.missing} if extracted.missing else {}
        about = json_text({**extracted.metadata, **missing})
        document = corpus.document(document_id, extracted.text, document_id, about)
        if extracted.note:
            document = replace(document, detail=f"{name}: {extracted.note}")
        return Loaded(document, (), f"{name}: {extracted.missing}" if missing else None)
    except BadInputError as wrong_text:
        return Loaded(bad_document(document_id, f"{name}: {wrong_text}"), ())
