"""Zip archives, which EPUB and Word files are, read within bounds."""

import io
import zipfile
import zlib
from posixpath import normpath

from stages.extract.extracted import UnreadableError

_MOST_BYTES = 2**27  # of an archive's text, unpacked: XML takes ten times that in memory
_OLE = b"\xd0\xcf\x11\xe0"


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

    def read(self, name: str) -> bytes | None:
        """The content of a file; None where there is none, or it is damaged."""
        name = normpath(name)
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
