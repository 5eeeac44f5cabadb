"""Which child of an inner node to visit next (MemWalker section 3, the triage prompt)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.prompts import Constraint, Prompt
from stages.prompts.memwalker.actions import (
    EXPECTED_REASON,
    REVERT,
    legal_actions,
    parse_action,
)
from stages.prompts.parsing.passages import DATE, QUESTION
from stages.text.ranking import rank

_ANSWER = re.compile(  # that is a number: "Answer: 2", not "Answer: 2 years"
    r"^\W{0,9}(?:(?:so|the|my|final|correct)\s+){0,3}answer\b(?=[\s:=]*(?:is\b)?\W{0,5}\d+\W{0,5}$)",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True)
class Triage(Prompt[int]):
    """Behind which summary is the answer? The value is its number from 0, or -1 to revert; one that
    is not legal here is a value, too."""

    name: ClassVar[str] = "triage"
    max_reply_tokens: ClassVar[int] = 512
    version: ClassVar[int] = 1
    form: ClassVar[str | None] = "Action: {}"
    assumed: ClassVar[str] = "the child in the middle"
    summaries: tuple[str, ...]  # of the children, in document order
    question: str
    reasoning: bool  # whether it is asked for reasons before the action (table 3)
    rejected: tuple[int, ...]  # numbers of summaries visited in vain
    may_revert: bool = False  # whether -1 is legal
    asked_at: str = ""  # the date of the question, where it has one
    num_invalid: int | None = None  # replies to this very question without a legal action

    def read(self, reply: str, is_cut: bool) -> int | None:
        """Where no action is named, an answer is one."""
        is_named = re.search(r"\baction\b", reply, re.IGNORECASE)
        return parse_action(reply if is_named else _ANSWER.sub("Action", reply), is_cut)

    def is_legal(self, value: int) -> bool:
        return value in self.actions()

    def actions(self) -> list[int]:
        """The legal actions."""
        left = [place for place in range(len(self.summaries)) if place not in self.rejected]
        return [*left, REVERT] if self.may_revert else left

    def legal(self, form: str) -> Constraint:
        return legal_actions(form, "|".join(map(str, self.actions())), self.reasoning)

    def extractive(self) -> str:
        """The summary left that shares most with the question, by BM25."""
        best = next(n for n in rank(self.summaries, self.question) if n not in self.rejected)
        reason = f"Reasoning: Summary {best} shares most with the question.\n"
        return f"{reason if self.reasoning else ''}Action: {best}"

    def expected(self) -> str:
        left = [action for action in self.actions() if action != REVERT]
        return f"{EXPECTED_REASON if self.reasoning else ''}Action: {left[len(left) // 2]}"

    @classmethod
    def samples(cls) -> tuple["Triage", ...]:
        summaries = ("The village \\n wakes up.", "The {{ bell }} rings.", "Nobody {# to #} <3>")
        return (
            cls(summaries, QUESTION, reasoning=True, rejected=()),
            cls(summaries, QUESTION, reasoning=False, rejected=(0, 2)),
            cls(summaries, QUESTION, True, (1,), may_revert=True, asked_at=DATE, num_invalid=2748),
        )

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        return {str(action): action for action in (0, 1, 2, REVERT)}
