"""Texts of files that were extracted before, in the user's cache folder: another question about a
folder of PDFs does not read them again."""

import gzip
import hashlib
import json
import zlib
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pipeline.core.settings import sha
from pipeline.files.user_cache import keep, kept
from stages import extract
from stages.extract.extracted import EXTRACTORS, Extracted
from stages.extract.isolated import Extractor

_KIND = "texts"
_LIBRARIES = ("pypdfium2", "pdfplumber", "pdfminer.six", "mammoth")


def extracted_once(kind: str, content: bytes, extractor: Extractor) -> Extracted:
    """The text of a file; one of the same content and kind is extracted once, until this code or
    its libraries change. What a plugin extracts is not kept. Raises as `Extractor.extract`."""
    if not EXTRACTORS[kind].__module__.startswith(f"{extract.__name__}."):
        return extractor.extract(kind, content)
    entry = f"{sha([kind, hashlib.sha256(content).hexdigest(), _code()], 32)}.json.gz"
    if (packed := kept(_KIND, entry)) is not None:
        with suppress(OSError, EOFError, zlib.error, ValueError, TypeError):  # damaged
            return Extracted(*json.loads(gzip.decompress(packed)))
    found = extractor.extract(kind, content)
    row = json.dumps([found.text, found.missing, {**found.metadata}, found.note])
    keep(_KIND, entry, gzip.compress(row.encode(), 1, mtime=0))
    return found


@cache
def _code() -> str:
    """A hash of the modules that extract and the versions of its libraries."""
    files = sorted(Path(extract.__file__).parent.glob("*.py"))
    sources = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return sha([sources, [_version(name) for name in _LIBRARIES]], 32)


def _version(name: str) -> str | None:
    with suppress(PackageNotFoundError):
        return version(name)
    return None
