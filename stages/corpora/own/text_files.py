"""A document or a folder of documents: .txt, .md, .html, .pdf, .epub, .docx, gzip or not; with
questions.

A document's id and title are its path in the folder, without the suffix (`letters/may`) unless
several would have the same (`may.pdf`, `may.txt`). Its metadata has the front matter of Markdown,
and `missing`. Questions are in questions.jsonl, .json, .csv, .tsv or .parquet in the folder, read
as reading/questions.py describes; they name a document by its id or by its path with the suffix. A
single file has none.
"""

import gzip
import hashlib
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import yaml
from pydantic import Field
from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.core.registry import hint
from pipeline.core.rows import Document, Question
from pipeline.core.settings import YAML_LOADER, sha
from pipeline.files.model_hash import cache_content, cached_content
from pipeline.files.storage import is_remote, refuse_unreachable_path
from pipeline.store.shards.layout import FILE as WAREHOUSE
from pipeline.store.shards.layout import FOLDERS
from stages import extract
from stages.corpora.reading.corpus import Address, FileCorpus, Loaded, bad_document
from stages.corpora.reading.corpus_row import Ids, Row
from stages.corpora.reading.files import decoded_text, one_of, read_whole, refuse_binary, rows_of
from stages.corpora.reading.questions import QuestionFile
from stages.corpora.reading.values import BadInputError, json_text, name_of, without_lone_surrogates
from stages.extract.extracted import EXTRACTORS, Extracted, UnreadableError
from stages.extract.isolated import Extractor

_ENDS = ("jsonl", "json", "csv", "tsv", "parquet")
DOCUMENTS_VERSION = 6  # of corpora of documents, which may be PDFs, books or pages
_HEX_DIGITS = 16  # of a question's id
QUESTION_FILES = tuple(f"questions.{end}" for end in _ENDS)
_MOST_LEFT_OUT = 100  # each is a row; a folder of source code may have ten thousand
_TEXTS = (".txt", ".md", ".markdown")
_FRONT_MATTER = re.compile(r"\A---[^\S\n]*\n(.*?\n)(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)\s*", re.DOTALL)
_MOST_CHARS = 2**16  # more is no front matter
_CACHE = "texts"  # the folder of extracted texts in the user's cache
_LIBRARIES = ("pypdfium2", "pdfplumber", "pdfminer.six", "mammoth", "lxml", "html-to-markdown")


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, named by its path from the folder that is listed. `left_out`: why it is no
    document."""

    file: UPath
    name: str
    wrong: str | None = None
    left_out: str | None = None
    document_id: str = ""


class TextCorpus(FileCorpus):
    """A folder of documents, or one document."""

    format: Literal["text"]
    version: ClassVar[int] = DOCUMENTS_VERSION

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per file, sorted by name, sub-folders included; a file that is no
        document is skipped and says why. Raises UsageError where no document can be read, or the
        question file holds no question."""
        file = one_of(self.path, "questions", *_ENDS) if self.path.is_dir() else None
        questions, ids = QuestionFile(rows_of([file]) if file else ()), Ids()
        entries = _with_ids(entries_of(self.path, QUESTION_FILES), ids)
        for entry, loaded in _documents_of(self, entries):
            also = None if entry.left_out else name_of(entry.name)
            yield replace(loaded, questions=questions.take(loaded.document, also))
        yield from questions.take_rest(ids)


class AskCorpus(FileCorpus):
    """One question, "" for none, and the documents it is asked of: the corpus of `gistmill ask`.
    Documents have the names and rows of TextCorpus: what a run of that has made is not made again.
    `path`: the first of `paths`."""

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
        """The names of the files to read, by document_id."""
        return {e.document_id: name_of(e.name) for e in self._entries() if not e.left_out}

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
        """Yield one Loaded per document, with the question, if any, where the document can be
        read."""
        for entry, loaded in _documents_of(self, self._entries()):
            if self.question and not loaded.document.why_unusable():
                question = Question(
                    document_id=entry.document_id,
                    question_id=sha([entry.document_id, self.question], _HEX_DIGITS),
                    question=self.question,
                )
                loaded = replace(loaded, questions=(question,))
            yield loaded

    def _entries(self) -> list[Entry]:
        """The entries of all paths, each file once; those with the same name are named by the whole
        path."""
        entries: dict[str, Entry] = {}
        for entry in (e for path in self.paths for e in entries_of(path, (), "name another")):
            file = entry.file if is_remote(entry.file) else entry.file.resolve()
            entries.setdefault(str(file), entry)
        times = Counter(name_of(entry.name) for entry in entries.values())
        for key, entry in entries.items():
            if times[name_of(entry.name)] > 1:
                entries[key] = replace(entry, name=str(entry.file))
        return _with_ids([*entries.values()], Ids())


def entries_of(
    path: UPath, without: Collection[str] = (), advice: str = "set corpus.path=..."
) -> list[Entry]:
    """The files of a folder, or the one file. Raises UsageError, ending in `advice`, where the
    folder has no document."""
    if not path.is_dir():
        return [Entry(path, path.name)]
    entries = walk(path, without)
    if all(entry.left_out for entry in entries):
        named = ", ".join(entry.name for entry in entries[:3])
        others = f"; files of other kinds: {len(entries)} ({named})" if entries else ""
        raise UsageError(f"{path}: no {' '.join(suffixes())} in this folder{others}; {advice}")
    return entries


def _with_ids(entries: list[Entry], ids: Ids) -> list[Entry]:
    """The entries with ids: names without suffixes, unless two would be the same. Files that are
    left out claim theirs last and keep their whole names."""
    documents = [entry for entry in entries if not entry.left_out]
    names = [name_of(_stem(entry.name)) for entry in documents]
    longer: list[str] = []
    while longer != names:  # a whole name may be another file's name without its suffix
        names, times = longer or names, Counter(longer or names)
        longer = [
            name_of(entry.name) if times[name] > 1 else name
            for entry, name in zip(documents, names, strict=True)
        ]
    left_out = [entry for entry in entries if entry.left_out]
    wanted = [*names, *(name_of(entry.name) for entry in left_out)]
    named: dict[str, Entry] = {}
    for entry, document_id in zip([*documents, *left_out], wanted, strict=True):
        row, wrong = Row(entry.file, 1, None), entry.wrong
        if (first := ids.claim(document_id, row)) is not None:
            document_id = ids.of_place(row)
            other = first.removesuffix(":1")
            wrong = f"its document_id would be that of {other}; rename or delete it"
        named[entry.name] = replace(entry, document_id=document_id, wrong=wrong)
    return [named[entry.name] for entry in entries]


def _stem(name: str) -> str:
    suffix = suffix_of(name)
    if suffix is None:  # a single file of any name
        folder, slash, last = name.rpartition("/")
        return folder + slash + (last.rpartition(".")[0] or last)
    is_packed = name.lower().endswith(".gz")
    return name[: -len(suffix) - 3 * is_packed] or name


def _documents_of(corpus: FileCorpus, entries: Iterable[Entry]) -> Iterator[tuple[Entry, Loaded]]:
    """Yield the document of each entry. Raises UsageError where none can be read."""
    unreadable: list[tuple[Entry, Loaded]] = []
    with Extractor() as extractor:
        loaded = ((entry, _loaded(corpus, entry, extractor)) for entry in entries)
        for pair in loaded:
            unreadable.append(pair)
            if not pair[1].document.why_unusable():
                yield from unreadable
                yield from loaded
                return
    bad = [item.document.detail for _, item in unreadable if item.document.problem]
    raise UsageError(f"{corpus.path}: no document in it can be read: {bad[0]}")


def _loaded(corpus: FileCorpus, entry: Entry, extractor: Extractor) -> Loaded:
    name, document_id = name_of(entry.name), entry.document_id
    if entry.left_out:
        detail = f"{name}: {entry.left_out}"
        return Loaded(Document(document_id=document_id, skipped=True, detail=detail), ())
    try:
        if entry.wrong:
            raise BadInputError(entry.wrong)
        extracted = text_of_file(entry.file, extractor)
        missing = {"missing": extracted.missing} if extracted.missing else {}
        about = json_text({**extracted.metadata, **missing})
        document = corpus.document(document_id, extracted.text, document_id, about)
    except BadInputError as wrong:
        return Loaded(bad_document(document_id, f"{name}: {wrong}"), ())
    if extracted.note:
        document = replace(document, detail=f"{name}: {extracted.note}")
    return Loaded(document, (), f"{name}: {extracted.missing}" if missing else None)


def suffixes() -> tuple[str, ...]:
    """The endings of readable files, with those of plugins' extractors."""
    return (*_TEXTS, *(f".{ending}" for ending in EXTRACTORS))


def suffix_of(name: str) -> str | None:
    """The ending of a readable file, before `.gz` and in small letters."""
    lower = name.lower().removesuffix(".gz")
    return next((suffix for suffix in suffixes() if lower.endswith(suffix)), None)


def walk(folder: UPath, without: Collection[str] = ()) -> list[Entry]:
    """The entries of a folder and its sub-folders, by name. Left out are files of other kinds,
    hidden ones, links to a folder that is read anyway (so circular links end), and warehouses in
    sub-folders; of a warehouse itself its own folders. After 100 such entries, one stands for the
    others."""
    walked = _walked(folder, "", {folder if is_remote(folder) else folder.resolve()})
    entries = [entry for entry in walked if entry.name not in without]
    entries.sort(key=lambda entry: name_of(entry.name))
    if more := [entry.name for entry in entries if entry.left_out][_MOST_LEFT_OUT:]:
        named, unnamed = ", ".join(more[:3]), {*more}
        rest = f"{len(more)} more that are left out ({named} ...); move them to be rid of this line"
        entries = [entry for entry in entries if entry.name not in unnamed]
        entries.append(Entry(folder, "(others)", left_out=rest))
    return entries


def _walked(folder: UPath, prefix: str, read: set[UPath]) -> Iterator[Entry]:
    """`read`: the resolved folders that are already being read."""
    whole = prefix.rstrip("/") or str(folder)
    try:
        files = sorted(folder.iterdir(), key=lambda file: file.name)
    except OSError as error:
        yield Entry(folder, whole, wrong=f"{error.strerror}; fix or delete it")
        return
    is_warehouse = any(file.name == WAREHOUSE for file in files)
    if is_warehouse and prefix:
        yield Entry(folder, whole, left_out="a warehouse of gistmill; move it elsewhere")
        return
    for file in files:
        if is_warehouse and file.name in FOLDERS:
            continue
        name = prefix + file.name
        try:
            is_folder = file.is_dir()
        except OSError as error:  # such as of a mount that is broken
            yield Entry(file, name, wrong=f"{error.strerror}; fix or delete it")
            continue
        if is_folder and not file.name.startswith(".") and not _is_read_elsewhere(file, read):
            yield from _walked(file, f"{name}/", read)
        else:
            yield Entry(file, name, left_out=_left_out(file.name, is_folder))


def _left_out(name: str, is_folder: bool) -> str | None:
    if name.startswith("."):
        return "hidden; rename it to have it read"
    if is_folder:
        return "a link to a folder that is read under another name; delete it"
    if name == WAREHOUSE:
        return "its folder is a warehouse, whose own folders are not read; name another"
    kinds = " ".join(suffixes())
    return None if suffix_of(name) else f"none of {kinds}; rename or convert it to be read"


def _is_read_elsewhere(folder: UPath, read: set[UPath]) -> bool:
    """True for a link to a folder that is read under another name, or that contains one."""
    if is_remote(folder) or not folder.is_symlink():
        return False
    target = folder.resolve()
    if any(target.is_relative_to(other) or other.is_relative_to(target) for other in read):
        return True
    read.add(target)
    return False


def text_of_file(file: UPath, extractor: Extractor) -> Extracted:
    """The text of a file by its suffix; an unknown suffix is plain text. Raises BadInputError where
    no text can be read."""
    suffix = suffix_of(file.name) or ".txt"
    try:
        content = read_whole(file)
        if suffix in _TEXTS:
            read = decoded_text(content)
            plain = Extracted(read.text) if suffix == ".txt" else without_front_matter(read.text)
            return replace(plain, note=read.note)
        if suffix in (".html", ".htm", ".xhtml"):
            refuse_binary(content)
        extracted = extracted_once(suffix[1:], content, extractor)
        return replace(extracted, text=without_lone_surrogates(extracted.text))
    except UnreadableError as error:
        raise BadInputError(str(error)) from None
    except OSError as error:
        raise BadInputError(f"{error.strerror}; fix or delete it") from None


def without_front_matter(text: str) -> Extracted:
    """Markdown without its front matter (YAML between two lines `---`), which is the metadata."""
    matter = _FRONT_MATTER.match(text[:_MOST_CHARS])
    with suppress(yaml.YAMLError, ValueError, RecursionError):
        # Aliases can unfold to any size.
        if matter and not any(
            isinstance(event, yaml.AliasEvent) for event in yaml.parse(matter[1], YAML_LOADER)
        ):
            values = _plain(yaml.load(matter[1], YAML_LOADER))
            if isinstance(values, dict):
                return Extracted(text[matter.end() :], metadata=values)
    return Extracted(text)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(value[key]) for key in value}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def extracted_once(kind: str, content: bytes, extractor: Extractor) -> Extracted:
    """The text of a file, from the user's cache if the same code extracted the same content before.
    Results of plugins are not cached."""
    if not EXTRACTORS[kind].__module__.startswith(f"{extract.__name__}."):
        return extractor.extract(kind, content)
    entry = f"{sha([kind, hashlib.sha256(content).hexdigest(), _code()], 32)}.json.gz"
    if (packed := cached_content(_CACHE, entry)) is not None:
        with suppress(OSError, EOFError, zlib.error, ValueError, TypeError):  # damaged
            return Extracted(*json.loads(gzip.decompress(packed)))
    extracted = extractor.extract(kind, content)
    row = [extracted.text, extracted.missing, {**extracted.metadata}, extracted.note]
    cache_content(_CACHE, entry, gzip.compress(json.dumps(row).encode(), 1, mtime=0))
    return extracted


@cache
def _code() -> str:
    files = sorted(Path(extract.__file__).parent.glob("*.py"))
    sources = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    versions = [[name, found.version] for name in _LIBRARIES for found in distributions(name=name)]
    return sha([sources, versions], 32)
