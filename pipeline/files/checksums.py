"""Checksums in the files of a warehouse: each holds the sha256 of its other bytes.

In Parquet it is the key `gistmill.sha256` of the footer; in JSON, `sha256`, the last key of the
object; in YAML a comment, the last line. Files of earlier versions have none.
"""

import hashlib
import re

PARQUET_KEY = "gistmill.sha256"
BLANK = "0" * 64  # in the place of a checksum, when it is made
# The key, and how Thrift's compact protocol begins a text of 64 bytes.
_IN_PARQUET = PARQUET_KEY.encode() + b"\x18\x40"
_IN_TEXT = re.compile(rb'(?:,"sha256":"|# sha256: )(.{64})(?:"(\})|\n)\Z', re.DOTALL)
_LONGEST_END = 100  # of a text, with its checksum
_WRONG = "does not match its checksum"


def with_checksum(text: bytes) -> bytes:
    """The text of a JSON object that is not empty, or of YAML, with its checksum."""
    checksum = hashlib.sha256(text).hexdigest().encode()
    if text.endswith(b"}"):
        return text[:-1] + b',"sha256":"' + checksum + b'"}'
    return text + b"# sha256: " + checksum + b"\n"


def without_checksum(text: bytes) -> bytes:
    """The text that `with_checksum` was given. Raises ValueError unless it is still that; a text
    without a checksum is taken as it is."""
    found = _IN_TEXT.search(text, max(0, len(text) - _LONGEST_END))
    if not found:
        return text
    before = text[: found.start()] + (found[2] or b"")
    if hashlib.sha256(before).hexdigest().encode() != found[1]:
        raise ValueError(_WRONG)
    return before


def with_parquet_checksum(content: bytes) -> bytes:
    """The content of a Parquet file whose footer has BLANK under PARQUET_KEY, with its checksum."""
    start = content.rindex(_IN_PARQUET) + len(_IN_PARQUET)
    checksum = hashlib.sha256(content).hexdigest().encode()
    return content[:start] + checksum + content[start + len(checksum) :]


def check_parquet(content: bytes) -> bool:
    """True if a Parquet file has a checksum. Raises ValueError if that is another one than its
    content has."""
    start = content.rfind(_IN_PARQUET) + len(_IN_PARQUET)
    if start < len(_IN_PARQUET):
        return False
    end, bytes_of = start + len(BLANK), memoryview(content)
    found = hashlib.sha256(bytes_of[:start])
    found.update(BLANK.encode())
    found.update(bytes_of[end:])
    if found.hexdigest().encode() != bytes_of[start:end]:
        raise ValueError(_WRONG)
    return True
