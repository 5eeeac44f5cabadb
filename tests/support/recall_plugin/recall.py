"""Two stages of one kind, in turn: each asks its role's engine about the text of the one before."""

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from gistmill.plugin import (
    AnswerFromContext,
    Ask,
    Context,
    Gist,
    Passage,
    Prompt,
    Question,
    QuestionRow,
    Record,
    Stage,
    Subject,
    UnitRows,
    num_words,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection(QuestionRow):
    """What the memory engine says to a question."""

    table: ClassVar[str] = "recollections"
    key: ClassVar[tuple[str, ...]] = ("question_id",)
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts(QuestionRow):
    """What the extractor takes out of it."""

    table: ClassVar[str] = "facts"
    key: ClassVar[tuple[str, ...]] = ("question_id",)
    text: str | None


@dataclass(frozen=True)
class _Of(Prompt[str]):
    version: ClassVar[int] = 1
    max_reply_tokens: ClassVar[int] = 50
    question: str
    text: str

    def read(self, reply: str, is_cut: bool) -> str | None:
        return reply.strip() or None

    def extractive(self) -> str:
        return " ".join(self.text.split()[:20])

    def expected(self) -> str:
        return self.extractive()

    @classmethod
    def samples(cls) -> tuple[Any, ...]:
        return (cls("Who rang {{ it }}?", "The bell <5> rings."),)


class RecallText(_Of):
    """What do you remember?"""

    name: ClassVar[str] = "recall"


class ExtractFacts(_Of):
    """Which facts are in it?"""

    name: ClassVar[str] = "facts"


class _AskAbout(Stage):
    prompt: ClassVar[type[_Of]]

    @abstractmethod
    def text(self, rows: UnitRows, question: Question) -> str:
        """What is asked about."""

    async def run(self, rows: UnitRows, ask: Ask) -> list[Record]:
        return list(await asyncio.gather(*(self._one(rows, q, ask) for q in rows.questions)))

    async def _one(self, rows: UnitRows, question: Question, ask: Ask) -> Record:
        prompt = self.prompt(question.question, self.text(rows, question))
        asked = await ask(prompt, Subject(question_id=question.question_id))
        return self.writes.about(question, text=asked.value, problem=asked.problem)


class Recall(_AskAbout):
    """From the gists, by the memory engine."""

    name: ClassVar[str] = "recall"
    version: ClassVar[int] = 1
    role = "memory"
    reads: ClassVar[tuple[type[Record], ...]] = (Gist,)
    writes: ClassVar[type[Record]] = Recollection
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (RecallText,)
    prompt: ClassVar[type[_Of]] = RecallText

    def text(self, rows: UnitRows, question: Question) -> str:
        return " ".join(gist.gist or "" for gist in rows[Gist])


class TakeFacts(_AskAbout):
    """From the recollection, by the extractor."""

    name: ClassVar[str] = "facts"
    version: ClassVar[int] = 1
    role = "extractor"
    reads: ClassVar[tuple[type[Record], ...]] = (Recollection,)
    writes: ClassVar[type[Record]] = Facts
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (ExtractFacts,)
    prompt: ClassVar[type[_Of]] = ExtractFacts

    def text(self, rows: UnitRows, question: Question) -> str:
        return " ".join(row.text or "" for row in rows.of(Recollection, question))


class AnswerFromFacts(AnswerFromContext):
    """From the facts alone."""

    kind: ClassVar[str] = "facts"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Facts,)

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        texts = [row.text or "" for row in rows.of(Facts, question)]
        passages = tuple(Passage("text", None, text) for text in texts)
        return Context(passages=passages, num_words=sum(map(num_words, texts)))
