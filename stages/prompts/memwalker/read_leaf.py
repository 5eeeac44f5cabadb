"""Answer from a segment, or go back from it (MemWalker section 3, the leaf prompt)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, ClassVar

from pipeline.core.prompts import Constraint, Prompt
from stages.prompts.memwalker.actions import (
    ANSWER,
    EXPECTED_REASON,
    REVERT,
    legal_actions,
    parse_action,
)
from stages.prompts.parsing.passages import DATE, OPTIONS, QUESTION, Passage
from stages.prompts.readagent.answer import (
    OUT_OF_RANGE,
    AnswerQuestion,
    free_answer,
    parse_option,
)
from stages.text.ranking import terms

LeafReply = tuple[int] | tuple[int, int | str]
"""An action; with -2 the option's index or "out_of_range", or the text of a free-form answer."""
_ANSWER_CHARS = 1000  # of a constrained free-form answer
_TO_ANSWER = re.compile(r"\baction\W{0,8}2\b", re.IGNORECASE)
_ANSWER = re.compile(r"\banswer[*_]*\s*[:=][*_]*\s*(?P<answer>\S.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class ReadLeaf(Prompt[LeafReply]):
    """Can the question be answered from this segment? If so, the answer; an action that is not
    legal is a value, too."""

    name: ClassVar[str] = "read_leaf"
    max_reply_tokens: ClassVar[int] = 512
    version: ClassVar[int] = 1
    form: ClassVar[str | None] = "Action: {}"
    is_whole: ClassVar[bool] = True
    assumed: ClassVar[str] = "the first segment read has the answer"
    segment: str
    question: str
    options: tuple[str, ...]
    reasoning: bool  # whether it is asked for reasons before the action (table 3)
    answer_words: int | None  # about how long a free-form answer should be; null: brief
    working_memory: str = ""  # summaries of nodes visited before
    asked_at: str = ""  # the date of the question, where it has one
    num_invalid: int | None = None  # replies to this very question without a legal action

    def read(self, reply: str, is_cut: bool) -> LeafReply | None:
        """None where no action is stated, or -2 without an answer that can be read."""
        action = parse_action(reply, is_cut)
        if action is None or action != ANSWER:
            return None if action is None else (action,)
        text = answer_text(reply)
        if not self.options:
            return (ANSWER, text) if text else None
        option = parse_option(f"Answer: {text}", len(self.options)) if text else None
        return None if option is None else (ANSWER, option)

    def is_legal(self, value: LeafReply) -> bool:
        return value[0] in (REVERT, ANSWER) and (not self.options or value[-1] != OUT_OF_RANGE)

    def legal(self, form: str) -> Constraint:
        letters = "|".join(ascii_uppercase[: len(self.options)])
        answer = f"\\(({letters})\\)" if self.options else f"[^\\n]{{1,{_ANSWER_CHARS}}}"
        return legal_actions(form, f"{REVERT}|{ANSWER}\\nAnswer: {answer}", self.reasoning)

    def extractive(self) -> str:
        """An answer where the segment shares a term with the question."""
        shared = set(terms(self.segment)) & set(terms(self.question))
        says = f"The text {'speaks' if shared else 'does not speak'} of what is asked."
        reason = f"Reasoning: {says}\n" if self.reasoning else ""
        if not shared:
            return f"{reason}Action: {REVERT}"
        passage = Passage("page", None, self.segment)
        prompt = AnswerQuestion((passage,), self.question, self.options, self.answer_words)
        answer = prompt.extractive().removeprefix("Answer: ")
        return f"{reason}Action: {ANSWER}\nAnswer: {answer}"

    def expected(self) -> str:
        prompt = AnswerQuestion((), self.question, self.options, self.answer_words)
        answer = prompt.expected().removeprefix("Answer: ")
        return f"{EXPECTED_REASON if self.reasoning else ''}Action: {ANSWER}\nAnswer: {answer}"

    @classmethod
    def samples(cls) -> tuple["ReadLeaf", ...]:
        text, memory = "The bell {{ rings }}.\n\n{% twice %} <3>", "The village \\n {# wakes #} up."
        return (
            cls(text, QUESTION, OPTIONS, True, None),
            cls(text, QUESTION, (), True, 84, memory, DATE, 2748),
            cls(text, QUESTION, (), False, None, memory),
        )

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        """The values of the sample question, which has options."""
        letters = {f"{ANSWER}\nAnswer: ({ascii_uppercase[i]})": (ANSWER, i)
                   for i in range(len(OPTIONS))}  # fmt: skip
        return {str(REVERT): (REVERT,), **letters}


def answer_text(reply: str) -> str:
    """The text that follows `Answer:` after the action -2; "" without one."""
    action = _TO_ANSWER.search(reply)
    found = _ANSWER.search(reply, action.end() if action else 0)
    return free_answer(found["answer"].strip().strip("#")) if found else ""
