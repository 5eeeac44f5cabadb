"""What a loader yields, and the ids and counts every loader makes the same way."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.records import Document, Question


@dataclass(frozen=True, slots=True)
class Loaded:
    """A document and its questions; every question's document_id is the document's.

    Questions for a document that is not there come with a Document of problem `bad_input`.
    """

    document: Document
    questions: tuple[Question, ...]


class MadeIds:
    """Ids for rows that have none: 8 hex of the content, `-2` for its second occurrence."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def make(self, *content: Any) -> str:
        """The id for `content` (JSON values), which must be uncleaned, as it is in the file."""
        text = json.dumps(content, ensure_ascii=True, sort_keys=True)
        made = hashlib.sha256(text.encode()).hexdigest()[:8]
        self._seen[made] += 1
        return made if self._seen[made] == 1 else f"{made}-{self._seen[made]}"


Paragraphs = str  # "lines", "blank_lines" or "auto"
_BREAKS = {"lines": re.compile(r"\n"), "blank_lines": re.compile(r"\n[^\S\n]*\n\s*")}


def paragraph_spans(text: str, how: Paragraphs) -> Sequence[tuple[int, int]]:
    """Half-open spans that tile `text`, one a paragraph, its trailing white space included.

    `lines`: every line is one (transcripts). `blank_lines`: they stand between blank lines.
    `auto`: blank_lines where the text has one, else lines. White space before the first word
    belongs to the first paragraph; a text without any word is one paragraph.
    """
    if how == "auto":
        how = "blank_lines" if _BREAKS["blank_lines"].search(text.strip()) else "lines"
    ends = [m.end() for m in _BREAKS[how].finditer(text)] + [len(text)]
    spans: list[tuple[int, int]] = []
    start = 0
    for end in ends:
        if text[start:end].strip():
            spans.append((start, end))
            start = end
        elif spans and end > start:
            spans[-1] = (spans[-1][0], end)
            start = end
    return spans or ([(0, len(text))] if text else [])
