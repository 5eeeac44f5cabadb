"""A judge of a user's own: its rubric, its prompt and its parser."""

from dataclasses import dataclass
from typing import ClassVar

from stages.judge.answer_rater import AnswerRater, Rubrics
from stages.prompts.judging.yes_or_no import YesOrNo


@dataclass(frozen=True)
class JudgeFluent(YesOrNo):
    """Whether the answer is fluent English."""

    name: ClassVar[str] = "judge_fluent"

    def is_right(self) -> bool:
        return self.answer.endswith(".")


class RateFluent(AnswerRater):
    name = "rate"
    kind = "fluent"
    rubrics: ClassVar[Rubrics] = {"fluent": JudgeFluent}
