"""Extractors by the ending of a file's name, their result, and the errors that they raise."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.core.registry import Registry, file_of

EXTRA = "pip install 'gistmill[documents]'"
_TEXTS = ("txt", "md", "markdown", "gz")
SOFT_HYPHEN = "\u00ad"  # shown only where a line ends, so no part of a word


class UnreadableError(Exception):
    """A file without a text that can be read: why, and what to do."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a file, blank lines between paragraphs; `missing`: what of it is not in the text,
    or None; `metadata`: what else the file says of itself; `note`: what is not certain of the text,
    and what to do."""

    text: str
    missing: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    note: str | None = None


Extract = Callable[[bytes], Extracted]
# By the ending of files' names.
EXTRACTORS: Registry[Extract] = Registry("reads files that end in .{}", "extractors")


def extractor(*endings: str) -> Callable[[Extract], Extract]:
    """Register the function that reads files whose names end so:

        @extractor("srt")
        def subtitles(content: bytes) -> Extracted:
            \"\"\"The lines of subtitles without their times.\"\"\"
            lines = content.decode().split("\\n")
            return Extracted("\\n".join(line for line in lines if "-->" not in line))

    It runs in a process of its own, which may crash: that costs one file. It raises UnreadableError
    for a file that has no text. Raises UsageError for an ending that another function reads.
    """

    def add(function: Extract) -> Extract:
        for ending in endings:
            if not re.fullmatch(r"[a-z0-9]+", ending) or ending in _TEXTS:
                why = f"{ending!r}: write small letters and digits, of no text file"
                raise UsageError(f"{file_of(function)}: the extractor of {why}")
            EXTRACTORS.add(ending, function)
        return function

    return add
