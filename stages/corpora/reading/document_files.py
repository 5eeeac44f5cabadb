"""The documents in a folder, with reasons for files that are none; and the text of a file: plain
text of any encoding, Markdown, HTML, PDF, EPUB, Word; gzip or not."""

import gzip
import hashlib
import io
import json
import math
import re
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml
from upath import UPath

from pipeline.core.settings import YAML_LOADER, sha
from pipeline.files.model_hash import cache_content, cached_content
from pipeline.files.storage import is_remote
from pipeline.store.shards.layout import FILE as WAREHOUSE
from pipeline.store.shards.layout import FOLDERS
from stages import extract
from stages.corpora.reading.corpus_row import BadInputError, name_of, without_lone_surrogates
from stages.corpora.reading.files import (
    GZIP,
    GZIP_ERRORS,
    NotTextError,
    read_whole,
    refuse_binary,
)
from stages.extract.extracted import EXTRACTORS, Extracted, UnreadableError
from stages.extract.isolated import Extractor
from stages.text import encodings
from stages.text.encodings import Decoded

_MOST_LEFT_OUT = 100  # each is a row; a folder of source code may have ten thousand
_TEXTS = (".txt", ".md", ".markdown")
_OF_BOOKS = (".xhtml", ".html", ".htm", ".opf", ".xml", ".ncx", "mimetype")
_FRONT_MATTER = re.compile(r"\A---[^\S\n]*\n(.*?\n)(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)\s*", re.DOTALL)
_MOST_CHARS = 2**16  # more is no front matter
_KIND = "texts"  # of entries in the user's cache folder
_LIBRARIES = ("pypdfium2", "pdfplumber", "pdfminer.six", "mammoth", "lxml", "html-to-markdown")


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder, named by its path from the folder that is listed. `wrong`: why it cannot be
    read; `left_out`: why it is not considered."""

    file: UPath
    name: str
    wrong: str | None = None
    left_out: str | None = None


def suffixes() -> tuple[str, ...]:
    """File endings that can be read, including those of plugins' extractors."""
    return (*_TEXTS, *(f".{ending}" for ending in EXTRACTORS))


def suffix_of(name: str) -> str | None:
    """The one of `suffixes` that the name ends with, before a `.gz` and ignoring case."""
    lower = name.lower().removesuffix(".gz")
    return next((suffix for suffix in suffixes() if lower.endswith(suffix)), None)


def is_book(folder: UPath) -> bool:
    """True for an EPUB that is a folder instead of an archive, as some programs keep it."""
    is_named = folder.name.lower().endswith(".epub")
    return is_named and any((folder / name).exists() for name in ("mimetype", "META-INF"))


def walk(folder: UPath, without: Collection[str] = ()) -> list[Entry]:
    """The entries of a folder and its sub-folders, by name. `without`: names of files to ignore.
    Entries with `left_out` are hidden files and folders, links to a folder that is read anyway (so
    circular links end), and warehouses in sub-folders. If the folder is a warehouse itself, the
    warehouse's own folders are ignored. After 100 left-out entries, one last entry stands for the
    others."""
    walked = _walked(folder, "", {folder if is_remote(folder) else folder.resolve()})
    entries = [entry for entry in walked if entry.name not in without]
    entries.sort(key=lambda entry: name_of(entry.name))
    more = [entry for entry in entries if entry.left_out][_MOST_LEFT_OUT:]
    if not more:
        return entries
    named = ", ".join(entry.name for entry in more[:3])
    rest = f"{len(more)} more that are left out ({named} ...); move them to be rid of this line"
    last = Entry(folder, "(others)", left_out=rest)
    left = {entry.name for entry in more}
    return [*(entry for entry in entries if entry.name not in left), last]


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
        name = prefix + file.name
        if is_warehouse and file.name in FOLDERS:
            continue
        try:
            is_folder = file.is_dir() and not is_book(file)
        except OSError as error:
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
    """The text of a file by its suffix; an unknown suffix is plain text. gzip is decompressed.
    Raises BadInputError where no text can be read."""
    suffix = suffix_of(file.name) or ".txt"
    try:
        content = _archived(file) if is_book(file) else read_whole(file)
        if suffix in _TEXTS:
            read = decoded(content)
            extracted = (
                Extracted(read.text) if suffix == ".txt" else without_front_matter(read.text)
            )
            return replace(extracted, note=read.note)
        content = _unpacked(content)
        if suffix in (".html", ".htm", ".xhtml"):
            refuse_binary(content)
        extracted = extracted_once(suffix[1:], content, extractor)
        return replace(extracted, text=without_lone_surrogates(extracted.text))
    except UnreadableError as error:
        raise BadInputError(str(error)) from None
    except OSError as error:
        raise BadInputError(f"{error.strerror}; fix or delete it") from None


def _archived(folder: UPath) -> bytes:
    """A book's folder as a zip archive without pictures and fonts; equal files give equal bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for file in sorted(folder.rglob("*"), key=str):
            if file.name.lower().endswith(_OF_BOOKS) and not file.is_dir():
                name = str(file).removeprefix(str(folder)).strip("/")
                archive.writestr(zipfile.ZipInfo(name), read_whole(file))
    return content.getvalue()


def decoded(content: bytes) -> Decoded:
    """Decode a text file of any encoding, gzip or not. Raises BadInputError where the gzip is
    damaged, the file is no text, or its encoding is unknown."""
    content = _unpacked(content)
    try:
        refuse_binary(content)
        return encodings.decoded(content)
    except NotTextError as error:
        raise BadInputError(f"{error.strerror}; fix or delete it") from None
    except UnicodeError:
        raise BadInputError("text of no known encoding; save it as UTF-8 or delete it") from None


def _unpacked(content: bytes) -> bytes:
    try:
        return gzip.decompress(content) if content.startswith(GZIP) else content
    except GZIP_ERRORS as error:
        why = str(error).split("\n")[0]
        raise BadInputError(f"the gzip file is damaged ({why}); fetch it again") from None


def without_front_matter(text: str) -> Extracted:
    """Markdown without its front matter (YAML between two lines `---`), which becomes the metadata.
    The whole text where there is none, or one that is no YAML object."""
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
    """The text of a file, from the user's cache if the same content was extracted before by the
    same code and library versions. Results of plugins are not cached. Raises as
    `Extractor.extract`."""
    if not EXTRACTORS[kind].__module__.startswith(f"{extract.__name__}."):
        return extractor.extract(kind, content)
    entry = f"{sha([kind, hashlib.sha256(content).hexdigest(), _code()], 32)}.json.gz"
    if (packed := cached_content(_KIND, entry)) is not None:
        with suppress(OSError, EOFError, zlib.error, ValueError, TypeError):  # damaged
            return Extracted(*json.loads(gzip.decompress(packed)))
    extracted = extractor.extract(kind, content)
    row = [extracted.text, extracted.missing, {**extracted.metadata}, extracted.note]
    cache_content(_KIND, entry, gzip.compress(json.dumps(row).encode(), 1, mtime=0))
    return extracted


@cache
def _code() -> str:
    files = sorted(Path(extract.__file__).parent.glob("*.py"))
    sources = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    versions: list[str | None] = []
    for library in _LIBRARIES:
        try:
            versions.append(version(library))
        except PackageNotFoundError:
            versions.append(None)
    return sha([sources, versions], 32)
