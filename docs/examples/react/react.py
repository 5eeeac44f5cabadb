"""ReAct (Yao et al. 2023, arXiv 2210.03629): think, then search, read a page or answer, in turn."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase

from pydantic import PositiveInt

from gistmill.plugin import (
    Answer,
    AnswerFromContext,
    Ask,
    Asked,
    Context,
    Page,
    Prompt,
    Question,
    Subject,
    UnitRows,
    best_sentences,
    ranking,
    raw_pages,
)

_ACTION = re.compile(r"^\W*(search|read|answer)\s*:\W*(\w[^\n]*)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class ChooseAction(Prompt[tuple[str, str, str]]):
    """Which action next? The value: the reply up to its first action, the action, its text."""

    name = "react"
    version = 1
    max_reply_tokens = 300
    question: str
    options: tuple[str, ...]
    steps: tuple[str, ...]  # before: each reply up to its action, and what came of it
    steps_left: int  # with this one

    def read(self, reply: str, is_cut: bool) -> tuple[str, str, str] | None:
        found = _ACTION.search(reply)
        return (reply[: found.end()], found[1].lower(), found[2].strip("* ")) if found else None

    def extractive(self) -> str:
        """Search for the question, read the first page found, answer by a sentence of it."""
        if not self.steps:
            return f"Search: {self.question}"
        if len(self.steps) == 1 and (page := re.search(r"Page (\d+):", self.steps[0])):
            return f"Read: {page[1]}"
        if self.options:
            best = ranking("plus_on_stems", self.options, self.steps[-1])[0][0]
            return f"Answer: ({ascii_uppercase[best]})"
        return f"Answer: {best_sentences([self.steps[-1]], self.question, 40)}"

    def expected(self) -> str:
        return f"I do not know yet where the text says so.\n{self.extractive()}"

    @classmethod
    def samples(cls) -> tuple["ChooseAction", ...]:
        return (cls("Who rang <5> it?", ("Ann", "Bob"), ("Page 3: {{ rings }}",), 8105),)


class ActInTurn(AnswerFromContext):
    """Its own answer, or no_answer; a search finds `top_k` pages by BM25 on stems."""

    kind = "react"
    version = 1
    reads = (Page,)
    prompts = (ChooseAction,)
    asks_in_turn = True
    max_steps: PositiveInt
    top_k: PositiveInt

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        return raw_pages(rows, used, self.first_page)

    async def answer_with_room(
        self, empty: Answer, rows: UnitRows, question: Question, ask: Ask
    ) -> Answer:
        steps: tuple[str, ...] = ()
        read: list[int] = []
        for turn in range(self.max_steps):
            prompt = ChooseAction(question.question, question.options, steps, self.max_steps - turn)
            asked = await ask(prompt, Subject(question_id=question.question_id, turn=turn))
            if not asked.has_reply:
                return replace(empty, problem=asked.problem)
            said, action, text = asked.value or (asked.raw, "", "")
            if action == "answer":
                context = self.context(rows, question, read)
                tokens = await ask.part_tokens(context.parts)
                value = self.prompt(question, context).read(text, False)
                own: Asked[int | str] = Asked(value, "unparseable" if value is None else None, text)
                read_from = self.with_context(empty, context, tokens)
                return self.answered(read_from, question, own)
            read += _page(rows[Page], action, text)
            steps += (f"{said}\n{self._result(rows[Page], action, text)}",)
        return replace(empty, problem="no_answer")

    def _result(self, pages: Sequence[Page], action: str, text: str) -> str:
        texts = [page.text or "" for page in pages]
        if action == "search":
            best = ranking("plus_on_stems", texts, text)[: self.top_k]
            return "\n".join(f"Page {n}: {best_sentences([texts[n]], text, 25)}" for n, _ in best)
        for number in _page(pages, action, text):
            return texts[number]
        return f"(That was no step. There are pages 0 to {len(pages) - 1}.)"


def _page(pages: Sequence[Page], action: str, text: str) -> list[int]:
    """The page to read, if there is one of that number."""
    number = re.search(r"\d+", text) if action == "read" else None
    return [int(number[0])] if number and int(number[0]) < len(pages) else []
