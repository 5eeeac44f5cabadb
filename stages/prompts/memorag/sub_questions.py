"""Rewrite, take apart or disambiguate the question before a search (RQ-RAG, arXiv 2404.00610).

The paper trains a model to do this; here any model is asked to, by a prompt.
"""

import re
from dataclasses import dataclass
from typing import ClassVar

from pipeline.core.prompts import Prompt
from stages.prompts.memorag.from_memory import TYPICAL_LINES, numbered, typical_lines
from stages.prompts.parsing.lines import parse_lines
from stages.prompts.parsing.passages import DATE, OPTIONS, QUESTION

_MOST_PARTS = 4
_BETWEEN = re.compile(r"\s+and\s+|,(?!\d)|[;?，；？、]", re.IGNORECASE)  # not in 1,000


@dataclass(frozen=True)
class SubQuestions(Prompt[tuple[str, ...]]):
    """Which questions to search for instead of this one? No text is shown. The value: one a line,
    per thing asked or per reading."""

    name: ClassVar[str] = "sub_questions"
    max_reply_tokens: ClassVar[int] = 256
    assumed: ClassVar[str] = TYPICAL_LINES
    question: str
    options: tuple[str, ...]
    asked_at: str = ""  # the date of the question, where it has one

    def read(self, reply: str, is_cut: bool) -> tuple[str, ...] | None:
        return parse_lines(reply, is_cut)

    def extractive(self) -> str:
        """The question cut at "and", commas, semicolons and question marks, in four at most."""
        cut = _BETWEEN.split(self.question, maxsplit=_MOST_PARTS - 1)
        parts = [part for part in cut if any(char.isalnum() for char in part)]
        parts = parts if len(parts) > 1 else [self.question] * len(parts)
        return numbered([" ".join(part.split()) for part in parts])

    def expected(self) -> str:
        return typical_lines([self.question, *self.options])

    @classmethod
    def samples(cls) -> tuple["SubQuestions", ...]:
        return (cls(QUESTION, ()), cls(QUESTION, OPTIONS, asked_at=DATE))
