"""Shared by the prompts that ask a model with a text in its memory what to search the text for
(MemoRAG section 2). Their texts begin with the same words, for the prefix cache."""

from dataclasses import dataclass
from typing import ClassVar, Generic, Self, TypeVar

from pipeline.core.prompts import Prompt
from stages.prompts.parsing.lines import parse_lines
from stages.prompts.parsing.passages import DATE, MEMORY, OPTIONS, QUESTION, TEXT, Passage
from stages.text.pieces import spread_pieces

T = TypeVar("T")
NO_LINE = "NONE"  # the legal reply without a line
# Typical are three lines: about what the paper's examples have (tables 1 to 4), each longer.
_LINES, _LINE_WORDS = 3, 12
TYPICAL_LINES = f"{_LINES} lines of {_LINE_WORDS} words"


@dataclass(frozen=True)
class FromMemory(Prompt[T], Generic[T]):
    """Base class: the memory, a text or its gists, and the question about it."""

    passages: tuple[Passage, ...]
    question: str
    options: tuple[str, ...]
    asked_at: str = ""  # the date of the question, where it has one

    def texts(self) -> list[str]:
        """The texts of the passages."""
        return [passage.text for passage in self.passages]

    def query(self) -> str:
        """The question and its options."""
        return "\n".join([self.question, *self.options])

    @classmethod
    def samples(cls) -> tuple[Self, ...]:
        return (
            cls(MEMORY, QUESTION, ()),
            cls(MEMORY, QUESTION, OPTIONS, asked_at=DATE),
            cls(TEXT, QUESTION, OPTIONS),
        )


@dataclass(frozen=True)
class LinesFromMemory(FromMemory[tuple[str, ...]]):
    """Base class of those whose value are lines, each to be searched for; () for none."""

    assumed: ClassVar[str] = TYPICAL_LINES

    def read(self, reply: str, is_cut: bool) -> tuple[str, ...] | None:
        return parse_lines(reply, is_cut)

    def expected(self) -> str:
        return typical_lines([*self.texts(), self.query()])


def numbered(lines: list[str]) -> str:
    """The lines that have a letter or digit as a numbered list; NONE without any."""
    said = [line for line in lines if any(map(str.isalnum, line))]
    return "\n".join(f"{number}. {line}" for number, line in enumerate(said, 1)) or NO_LINE


def typical_lines(texts: list[str]) -> str:
    """Three lines of twelve words from `texts`."""
    return numbered(spread_pieces(texts, _LINES, _LINE_WORDS))
