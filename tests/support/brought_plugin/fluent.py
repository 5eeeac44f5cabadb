"""A judge of a user's own: its rubric, its prompt and its parser."""

from dataclasses import dataclass
from typing import ClassVar

from gistmill.plugin import AnswerRater, YesOrNo


@dataclass(frozen=True)
class JudgeFluent(YesOrNo):
    """Whether the answer is fluent English."""

    name: ClassVar[str] = "judge_fluent"
    version: ClassVar[int] = 1

    def is_right(self) -> bool:
        return self.answer.endswith(".")


class RateFluent(AnswerRater):
    name = "rate"
    kind = "fluent"
    version = 1
    rubrics: ClassVar = {"fluent": JudgeFluent}
