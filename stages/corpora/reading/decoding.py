"""Decode text files of any encoding, gzip or not."""

import gzip
import io
import zlib

from stages.corpora.reading.opening import NotTextError, encoding_of, refuse_binary, up_to_most
from stages.corpora.reading.row_checks import BadInputError

_GZIP = b"\x1f\x8b"
_HEAD_BYTES = 2**16


def decoded(content: bytes) -> str:
    """Decode a text file: UTF-16 or -32 with a byte order mark, UTF-8, or else Latin-1 (old
    Gutenberg).

    gzip is decompressed; lines end in a newline; byte order mark and NULs are removed. Raises
    BadInputError where the gzip is damaged or too large, or the file is no text.
    """
    content = unpacked(content)
    try:
        refuse_binary(content[:_HEAD_BYTES])
    except NotTextError as error:
        raise BadInputError(f"{error.strerror}; fix or delete it") from None
    try:
        text = content.decode(encoding_of(content) or "utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def unpacked(content: bytes) -> bytes:
    """The content of a gzip file, or of any other as it is.

    Raises BadInputError where the gzip is damaged or too large.
    """
    if not content.startswith(_GZIP):
        return content
    try:
        with gzip.open(io.BytesIO(content)) as packed:
            return up_to_most(packed)
    except NotTextError as error:
        raise BadInputError(f"{error.strerror}; fix or delete it") from None
    except (EOFError, OSError, zlib.error) as error:
        why = str(error).split("\n")[0]
        raise BadInputError(f"the gzip file is damaged ({why}); fetch it again") from None
