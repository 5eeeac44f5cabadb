"""What a loader yields, and the ids every loader makes the same way."""

import hashlib
import json
from collections import Counter
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
