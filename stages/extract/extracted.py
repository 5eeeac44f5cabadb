"""The result of extractors, and the errors that they raise."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

EXTRA = "pip install 'gistmill[documents]'"
# Bytes of one text, line, cell or entry of a list, decompressed: 50 times the largest book known
# here. What is larger is a gzip bomb or a file without an end, and would take all memory.
MOST_BYTES = 2**28
TOO_LARGE = f"over {MOST_BYTES // 2**20} MiB in one piece, which no document is"


class UnreadableError(Exception):
    """A file without a text that can be read: why, and what to do."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a file, blank lines between paragraphs; `missing`: what of it is not in the text,
    or None; `metadata`: what else the file says of itself, and `page_starts`: the characters at
    which the first paragraph of each page of a PDF begins."""

    text: str
    missing: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
