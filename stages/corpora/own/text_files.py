"""A document or a folder of documents: .txt, .md, .html, .pdf, .epub, .docx, gzip or not; with
questions.

A document's id and title are its path in the folder, without the suffix (`letters/may`) unless
several documents would have the same (`may.pdf`, `may.txt`). Its metadata has the front matter of
Markdown, and `missing`: what of the file is not in the text. Questions are in questions.jsonl,
.json, .csv, .tsv or .parquet in the folder, read as reading/questions.py describes; they name a
document by its id or by its path with the suffix. A single file has no questions.
"""

import gzip
import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import distributions
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Literal

import yaml
from pydantic import Field
from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.core.registry import hint, is_ours
from pipeline.core.rows import Document, Question
from pipeline.core.settings import YAML_LOADER, sha
from pipeline.files.model_hash import cache_content, cached_content
from pipeline.files.storage import is_remote, refuse_unreachable_path
from pipeline.store.shards.layout import FILE as WAREHOUSE
from pipeline.store.shards.layout import FOLDERS
from stages.corpora.reading import values
from stages.corpora.reading.corpus import Address, FileCorpus, Loaded, bad_document
from stages.corpora.reading.files import decoded_text, one_of, read_whole, refuse_binary, rows_of
from stages.corpora.reading.questions import QuestionFile
from stages.corpora.reading.values import BadInputError, Ids, Row, name_of
from stages.extract.extracted import EXTRACTORS, Extracted, UnreadableError
from stages.extract.isolated import Extractor

_ENDS = ("jsonl", "json", "csv", "tsv", "parquet")  # of a file of questions
_VERSION = 6  # of the corpora of documents: raise it where a file becomes another text
_HEX_DIGITS = 16  # of a question's id
_MOST_LEFT_OUT = 100  # each is a row; a folder of source code may have ten thousand
_TEXTS = (".txt", ".md", ".markdown")
_FRONT_MATTER = re.compile(r"\A---[^\S\n]*\n(.*?\n)(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)\s*", re.DOTALL)
_MOST_CHARS = 2**16  # more is no front matter
_CACHE = "texts"  # the folder of extracted texts in the user's cache
_LIBRARIES = ("pypdfium2", "pdfplumber", "pdfminer.six", "mammoth", "lxml", "html-to-markdown")


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of a folder; `name` is its path from there. `wrong`: why it cannot be read;
    `left_out`: why it is no document."""

    file: UPath
    name: str
    wrong: str | None = None
    left_out: str | None = None
    document_id: str = ""


class TextCorpus(FileCorpus):
    """A folder of documents, or one document."""

    format: Literal["text"]
    version: ClassVar[int] = _VERSION

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per file, sorted by name, sub-folders included; a file that is no
        document is skipped and says why. Raises UsageError where no document can be read, or the
        question file holds no question."""
        file = one_of(self.path, "questions", *_ENDS) if self.path.is_dir() else None
        questions, ids = QuestionFile(rows_of([file]) if file else ()), Ids()
        files = _list_files(self.path, [f"questions.{end}" for end in _ENDS])
        for listed, loaded in _documents_of(self, _with_ids(files, ids)):
            also = None if listed.left_out else name_of(listed.name)
            yield replace(loaded, questions=questions.take(loaded.document, also))
        yield from questions.take_rest(ids)


class AskCorpus(FileCorpus):
    """One question, "" for none, and the documents it is asked of: the corpus of `gistmill ask`.
    Documents have the names and rows of TextCorpus, so that what its runs made is not made again.
    `path`: the first of `paths`."""

    format: Literal["asked"]
    version: ClassVar[int] = _VERSION
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
        return {f.document_id: name_of(f.name) for f in self._files() if not f.left_out}

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
        """Yield one Loaded per document; one that can be read has the question, if there is one."""
        for listed, loaded in _documents_of(self, self._files()):
            if self.question and not loaded.document.why_unusable():
                question = Question(
                    document_id=listed.document_id,
                    question_id=sha([listed.document_id, self.question], _HEX_DIGITS),
                    question=self.question,
                )
                loaded = replace(loaded, questions=(question,))
            yield loaded

    def _files(self) -> list[ListedFile]:
        """The files of all paths, each once; those with the same name are named by their whole
        path."""
        files: dict[str, ListedFile] = {}
        for path in self.paths:
            for listed in _list_files(path):
                file = listed.file if is_remote(listed.file) else listed.file.resolve()
                files.setdefault(str(file), listed)
        times = Counter(name_of(listed.name) for listed in files.values())
        unlike = (
            replace(listed, name=str(listed.file)) if times[name_of(listed.name)] > 1 else listed
            for listed in files.values()
        )
        return _with_ids([*unlike], Ids())


def _list_files(path: UPath, without: Collection[str] = ()) -> list[ListedFile]:
    """The one file, or the files of a folder and its sub-folders, by name.

    Left out are files of other kinds, hidden ones, and links to a folder that is read anyway, so
    that circular links end; a warehouse is read without its own folders. After 100 files that are
    left out one entry stands for the rest. Raises UsageError where the folder has no document.
    """
    if not path.is_dir():
        return [ListedFile(path, path.name)]
    files = [listed for listed in _walk(path, "", set()) if listed.name not in without]
    files.sort(key=lambda listed: name_of(listed.name))
    left_out = [listed.name for listed in files if listed.left_out]
    if len(left_out) == len(files):
        first = ", ".join(left_out[:3])
        kinds = f"; files of other kinds: {len(files)} ({first})" if files else ""
        why = f"no {' '.join(_suffixes())} in this folder{kinds}; name another"
        raise UsageError(f"{path}: {why}")
    if rest := left_out[_MOST_LEFT_OUT:]:
        unnamed, why = {*rest}, f"{len(rest)} more that are left out ({', '.join(rest[:3])} ...)"
        files = [listed for listed in files if listed.name not in unnamed]
        why += "; move them to be rid of this line"
        files.append(ListedFile(path, "(others)", left_out=why))
    return files


def _walk(folder: UPath, prefix: str, targets: set[UPath]) -> Iterator[ListedFile]:
    """Yield the files below a folder. `targets`: the folder and those that links led to."""
    whole = prefix.rstrip("/") or str(folder)
    if not is_remote(folder) and (folder.is_symlink() or not prefix):
        target = folder.resolve()
        if any(target.is_relative_to(other) or other.is_relative_to(target) for other in targets):
            why = "a link to a folder that is read under another name; delete it"
            yield ListedFile(folder, whole, left_out=why)
            return
        targets.add(target)
    try:
        kinds = {file.name: (file, file.is_dir()) for file in folder.iterdir()}
    except OSError as error:
        yield ListedFile(folder, whole, wrong=f"{error.strerror}; fix or delete it")
        return
    if WAREHOUSE in kinds:
        kinds = {name: kind for name, kind in kinds.items() if name not in FOLDERS}
    for name, (file, is_folder) in sorted(kinds.items()):
        path = prefix + name
        if name.startswith("."):
            yield ListedFile(file, path, left_out="hidden; rename it to have it read")
        elif is_folder:
            yield from _walk(file, f"{path}/", targets)
        elif _suffix_of(name):
            yield ListedFile(file, path)
        else:
            why = f"none of {' '.join(_suffixes())}; rename or convert it to be read"
            if name == WAREHOUSE:
                why = "its folder is a warehouse, whose own folders are not read; name another"
            yield ListedFile(file, path, left_out=why)


def _with_ids(files: list[ListedFile], ids: Ids) -> list[ListedFile]:
    """The files with ids: their names without suffixes, unless two would be the same. Files that
    are left out claim theirs last and keep their whole names."""
    documents = [listed for listed in files if not listed.left_out]
    names = [name_of(_stem(listed.name)) for listed in documents]
    longer: list[str] = []
    while longer != names:  # a whole name may be another file's name without its suffix
        names, times = longer or names, Counter(longer or names)
        longer = [
            name_of(listed.name) if times[name] > 1 else name
            for listed, name in zip(documents, names, strict=True)
        ]
    left_out = [listed for listed in files if listed.left_out]
    wanted = [*names, *(name_of(listed.name) for listed in left_out)]
    with_ids: dict[str, ListedFile] = {}
    for listed, document_id in zip([*documents, *left_out], wanted, strict=True):
        row, wrong = Row(listed.file, 1, None), listed.wrong
        if (first := ids.claim(document_id, row)) is not None:
            document_id = ids.of_place(row)
            other = first.removesuffix(":1")
            wrong = f"its document_id would be that of {other}; rename or delete it"
        with_ids[listed.name] = replace(listed, document_id=document_id, wrong=wrong)
    return [with_ids[listed.name] for listed in files]


def _stem(name: str) -> str:
    """The name without its suffix."""
    suffix = _suffix_of(name)
    if suffix is None:  # a single file of any name
        return name.removesuffix(PurePath(name).suffix)
    is_packed = name.lower().endswith(".gz")
    return name[: -len(suffix) - 3 * is_packed] or name


def _suffixes() -> tuple[str, ...]:
    """The endings of readable files, with those of plugins' extractors."""
    return (*_TEXTS, *(f".{ending}" for ending in EXTRACTORS))


def _suffix_of(name: str) -> str | None:
    """The ending of a readable file, before `.gz` and in small letters; None for other files."""
    lower = name.lower().removesuffix(".gz")
    return next((suffix for suffix in _suffixes() if lower.endswith(suffix)), None)


def _documents_of(
    corpus: FileCorpus, files: Iterable[ListedFile]
) -> Iterator[tuple[ListedFile, Loaded]]:
    """Yield each file with its document. Raises UsageError where no document can be read."""
    unreadable: list[tuple[ListedFile, Loaded]] = []
    with Extractor() as extractor:
        pairs = ((listed, _loaded(corpus, listed, extractor)) for listed in files)
        for pair in pairs:
            unreadable.append(pair)
            if not pair[1].document.why_unusable():
                yield from unreadable
                yield from pairs
                return
    bad = [loaded.document.detail for _, loaded in unreadable if loaded.document.problem]
    raise UsageError(f"{corpus.path}: no document in it can be read: {bad[0]}")


def _loaded(corpus: FileCorpus, listed: ListedFile, extractor: Extractor) -> Loaded:
    name, document_id = name_of(listed.name), listed.document_id
    if listed.left_out:
        detail = f"{name}: {listed.left_out}"
        return Loaded(Document(document_id=document_id, skipped=True, detail=detail), ())
    try:
        if listed.wrong:
            raise BadInputError(listed.wrong)
        extracted = text_of_file(listed.file, extractor)
        missing = {"missing": extracted.missing} if extracted.missing else {}
        metadata = values.json_text({**extracted.metadata, **missing})
        document = corpus.document(document_id, extracted.text, document_id, metadata)
    except (BadInputError, UnreadableError) as wrong:
        return Loaded(bad_document(document_id, f"{name}: {wrong}"), ())
    except OSError as error:
        why = f"{error.strerror}; fix or delete it"
        return Loaded(bad_document(document_id, f"{name}: {why}"), ())
    if extracted.note:
        document = replace(document, detail=f"{name}: {extracted.note}")
    return Loaded(document, (), f"{name}: {extracted.missing}" if missing else None)


def text_of_file(file: UPath, extractor: Extractor) -> Extracted:
    """The text of a file by its suffix; an unknown suffix is plain text. Raises BadInputError,
    UnreadableError or OSError where no text can be read."""
    suffix, content = _suffix_of(file.name) or ".txt", read_whole(file)
    if suffix in _TEXTS:
        decoded = decoded_text(content)
        plain = suffix == ".txt"
        text = Extracted(decoded.text) if plain else without_front_matter(decoded.text)
        return replace(text, note=decoded.note)
    if suffix in (".html", ".htm", ".xhtml"):
        refuse_binary(content)
    extracted = _extracted_once(suffix[1:], content, extractor)
    return replace(extracted, text=values.without_lone_surrogates(extracted.text))


def without_front_matter(text: str) -> Extracted:
    """Markdown without its front matter (YAML between two lines `---`), which is the metadata."""
    matter = _FRONT_MATTER.match(text[:_MOST_CHARS])
    with suppress(yaml.YAMLError, ValueError, RecursionError, BadInputError):
        metadata = yaml.load(matter[1], YAML_LOADER) if matter else None
        if matter and isinstance(metadata, dict):
            values.json_text(metadata)  # such as a date as a key cannot be written
            return Extracted(text[matter.end() :], metadata=metadata)
    return Extracted(text)


def _extracted_once(kind: str, content: bytes, extractor: Extractor) -> Extracted:
    """The text of a file, from the user's cache if this `_VERSION` has extracted it before with the
    same libraries. Results of plugins are not cached."""
    if not is_ours(EXTRACTORS[kind]):
        return extractor.extract(kind, content)
    made_by = [kind, _VERSION, _versions()]
    entry = f"{sha([hashlib.sha256(content).hexdigest(), made_by], 32)}.json.gz"
    if (packed := cached_content(_CACHE, entry)) is not None:
        with suppress(OSError, EOFError, zlib.error, ValueError, TypeError):  # damaged
            return Extracted(*json.loads(gzip.decompress(packed)))
    extracted = extractor.extract(kind, content)
    row = [extracted.text, extracted.missing, {**extracted.metadata}, extracted.note]
    cache_content(_CACHE, entry, gzip.compress(json.dumps(row).encode(), 1, mtime=0))
    return extracted


@cache
def _versions() -> list[list[str]]:
    return [[name, each.version] for name in _LIBRARIES for each in distributions(name=name)]
