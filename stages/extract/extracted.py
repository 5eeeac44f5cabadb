"""What extractors return and raise."""

from dataclasses import dataclass

EXTRA = "pip install 'gistmill[documents]'"


class UnreadableError(Exception):
    """A file without a text that can be read: why, and what to do."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a file, blank lines between paragraphs; `missing`: what of it is not in the text,
    or null."""

    text: str
    missing: str | None = None
