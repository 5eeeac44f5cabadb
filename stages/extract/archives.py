"""Zip archives, which EPUB and Word files are, read within bounds."""

import io
import zipfile
import zlib
from posixpath import dirname, normpath
from unicodedata import normalize
from urllib.parse import unquote

from stages.extract.extracted import UnreadableError

_MOST_BYTES = 2**27  # of an archive's text, unpacked: XML takes ten times that in memory
_OLE = b"\xd0\xcf\x11\xe0"
_IS_UTF_8 = 0x800  # of a file's flags: its name is UTF-8, else code page 437


class Archive:
    """The files of a zip archive by name. Raises UnreadableError for what is none, or too much."""

    def __init__(self, content: bytes, kind: str) -> None:
        self._left = _MOST_BYTES
        self._kind = kind
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            if content.startswith(_OLE):
                raise UnreadableError(
                    f"no {kind} but an old Word file, or an encrypted one; save it as .docx "
                    "without a password"
                ) from None
            raise UnreadableError(f"damaged, or no {kind} ({error}); fetch it again") from None
        self.names = frozenset(self._zip.namelist())
        self._keys = {info.filename: _key(_written(info)) for info in self._zip.infolist()}
        self._by_key = {key: name for name, key in reversed(self._keys.items())}

    def named(self, href: str) -> str | None:
        """The name of the file that a link leads to, whatever its case, slashes, escapes and
        fragment; None where there is none."""
        path, query = href.partition("#")[0], href.partition("?")[0]
        for exact in (unquote(path), path, href):
            if normpath(exact) in self.names:
                return normpath(exact)
        found = (self._by_key.get(_key(unquote(written))) for written in (path, query, href))
        return next(filter(None, found), None)

    def folder(self, name: str) -> str:
        """The folder that a file is in, as links may name it."""
        return dirname(self._keys.get(name, ""))

    def root_of(self, path: str) -> str | None:
        """The folder in the archive that the path leads from, "" for its top; None without one."""
        own = f"/{_key(path)}"
        found = (key.removesuffix(own[1:]) for key in self._by_key if f"/{key}".endswith(own))
        return min(found, key=len, default=None)

    def read(self, name: str) -> bytes | None:
        """The content of a file; None where there is none, or it is damaged."""
        if name not in self.names:
            return None
        try:
            with self._zip.open(name) as file:
                found = file.read(self._left + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError):
            return None
        self._left -= len(found)
        if self._left < 0:
            raise UnreadableError(
                f"over {_MOST_BYTES // 2**20} MiB of text when unpacked, which no document has"
            )
        return found

    def refuse_large(self, suffixes: tuple[str, ...]) -> None:
        """Raise UnreadableError where the files with these suffixes are too large together, for a
        library that reads them by itself."""
        for name in self.names:
            if name.endswith(suffixes):
                self.read(name)


def _written(info: zipfile.ZipInfo) -> str:
    """The name of a file, also where it is UTF-8 without saying so."""
    if info.flag_bits & _IS_UTF_8:
        return info.filename
    try:
        return info.filename.encode("cp437").decode()
    except UnicodeError:
        return info.filename


def _key(name: str) -> str:
    """The form that all names of a file in links have in common."""
    path = normpath(unquote(name).replace("\\", "/").strip()).lstrip("./")
    return normalize("NFC", path).casefold()
