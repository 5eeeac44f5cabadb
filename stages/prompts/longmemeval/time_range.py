"""The range of days that a question is about (LongMemEval section 5.4, figure 12)."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.prompts import Prompt
from stages.prompts.parsing.json_replies import objects
from stages.prompts.parsing.passages import DATE, QUESTION
from stages.text.chat_text import day_of, days_in

TimeLimits = tuple[str, str]
"""First and last day, YYYY/MM/DD; "" where that end is open."""
NO_RANGE: TimeLimits = ("", "")
_NONE = re.compile(r"(?<!\w)(?:N/A|not applicable)(?!\w)", re.IGNORECASE)
_OPEN = {"", "n/a", "na", "none", "null", "not applicable"}
_NO_START = re.compile(r"\b(?:before|until|till|by|up to)\b", re.IGNORECASE)
_NO_END = re.compile(r"\b(?:after|since)\b", re.IGNORECASE)


@dataclass(frozen=True)
class TimeRange(Prompt[TimeLimits]):
    """In which days did that happen which the question asks about? The value: first and last day as
    YYYY/MM/DD, "" for an open end; `NO_RANGE` for N/A, where the question names no time.

    Free text: legal replies cannot be enumerated, as a first day after the last would be one.
    """

    name: ClassVar[str] = "time_range"
    max_reply_tokens: ClassVar[int] = 100  # ours; the authors' is not known
    question: str
    asked_at: str = ""  # the date of the question, where it has one
    with_examples: bool = False  # whether the prompt has ten of replies, of our own (appendix D)

    def read(self, reply: str, is_cut: bool) -> TimeLimits | None:
        """The days that the JSON object states, or `N/A` outside of one. None where a limit is no
        single day, where the first day is after the last, as either may be the wrong one, and where
        a reply says two things."""
        found, rest = objects(reply)
        said = {_limits(value) for value in found if "start" in value or "end" in value}
        if _NONE.search(rest) and "{" not in rest:  # of a cut object it may be one limit only
            said.add(NO_RANGE)
        return said.pop() if len(said) == 1 else None

    def extractive(self) -> str:
        """The first and the last day that the question states in full, else N/A; open to one side
        after "before" or "since"."""
        days = sorted(days_in(self.question))
        if not days:
            return "N/A"
        no_start = len(days) == 1 and _NO_START.search(self.question)
        no_end = len(days) == 1 and _NO_END.search(self.question)
        start, end = "" if no_start else days[0], "" if no_end and not no_start else days[-1]
        return _written(start, end)

    def expected(self) -> str:
        return _written("2023/05/01", "2023/05/31")

    @classmethod
    def samples(cls) -> tuple["TimeRange", ...]:
        dated = cls("What did I buy on 2023/05/02?", DATE, with_examples=True)
        return cls(QUESTION, DATE), cls(QUESTION), dated


def _written(start: str, end: str) -> str:
    said = ", ".join(f'"{key}": "{day}"' for key, day in (("start", start), ("end", end)) if day)
    return f"{{{said}}}"


def _limits(value: dict[str, Any]) -> TimeLimits | None:
    """None where a limit cannot be read."""
    start, end = (_limit(value.get(key)) for key in ("start", "end"))
    if start is None or end is None or (start and end and start > end):
        return None
    return start, end


def _limit(said: Any) -> str | None:
    """A day; "" where it is left open; None where it is neither."""
    if said is None or (isinstance(said, str) and said.strip().lower() in _OPEN):
        return ""
    return (day_of(said) if isinstance(said, str) else "") or None
