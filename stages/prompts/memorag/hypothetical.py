"""A passage made up to answer the question, to search with in its place (HyDE, arXiv 2212.10496,
section 3)."""

import re
from dataclasses import dataclass
from itertools import cycle, islice
from typing import ClassVar

from pipeline.core.prompts import Prompt
from stages.prompts.parsing.passages import DATE, OPTIONS, QUESTION

_WORDS = 100
_ASKING = re.compile(r"\s*(?:who|whom|whose|what|which|when|where|why|how)\b\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Hypothetical(Prompt[str]):
    """Write a passage that could stand in the text and answers the question. No text is shown. The
    value is the passage, stripped; a cut one can be searched with, too."""

    name: ClassVar[str] = "hypothetical"
    max_reply_tokens: ClassVar[int] = 256
    assumed: ClassVar[str] = f"a passage of {_WORDS} words"
    question: str
    options: tuple[str, ...]
    asked_at: str = ""  # the date of the question, where it has one

    def extractive(self) -> str:
        """The question and its options as a statement: without a text or a model nothing else is
        known."""
        said = _ASKING.sub("", self.question, count=1).strip(" \t\n?？")
        return f"{said}: {' or '.join(self.options)}." if self.options else f"{said}."

    def expected(self) -> str:
        return " ".join(islice(cycle(self.extractive().split()), _WORDS))

    @classmethod
    def samples(cls) -> tuple["Hypothetical", ...]:
        return (cls(QUESTION, ()), cls(QUESTION, OPTIONS, asked_at=DATE))
