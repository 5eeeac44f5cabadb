"""The registry of extractors by file ending, their result, and their error."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.core.registry import Registry, file_of

EXTRA = "pip install pypdfium2 pdfplumber mammoth lxml html-to-markdown"
SOFT_HYPHEN = "\u00ad"  # shown only where a line ends, so no part of a word


class UnreadableError(Exception):
    """A file has no readable text; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a file, with blank lines between paragraphs. `missing`: parts of the file that
    are not in the text, or None; `metadata`: other facts that the file states; `note`: doubts
    about the text, and what to do."""

    text: str
    missing: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    note: str | None = None


Extract = Callable[[bytes], Extracted]
EXTRACTORS: Registry[Extract] = Registry("reads files that end in .{}", "extractors")


def extractor(*endings: str) -> Callable[[Extract], Extract]:
    """Register the function that reads files with these endings:

        @extractor("srt")
        def subtitles(content: bytes) -> Extracted:
            \"\"\"The lines of subtitles without their times.\"\"\"
            lines = content.decode().split("\\n")
            return Extracted("\\n".join(line for line in lines if "-->" not in line))

    It runs in a separate process; a crash there loses one file. It raises UnreadableError for a
    file that has no text. Raises UsageError for an ending that another function reads.
    """

    def add(function: Extract) -> Extract:
        for ending in endings:
            is_text = ending in ("txt", "md", "markdown", "gz")
            if is_text or not re.fullmatch(r"[a-z0-9]+", ending):
                why = f"{ending!r}: write small letters and digits, of no text file"
                raise UsageError(f"{file_of(function)}: the extractor of {why}")
            EXTRACTORS.add(ending, function)
        return function

    return add
