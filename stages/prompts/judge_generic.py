"""Is the right answer in an answer? LongMemEval A.4, "other question types"."""

from dataclasses import dataclass
from typing import ClassVar

from stages.prompts.verdicts import holds
from stages.prompts.yes_or_no import YesOrNo


@dataclass(frozen=True)
class JudgeGeneric(YesOrNo):
    """Yes: all of the right answer is there, or all the steps to it; a part of it is not enough."""

    name: ClassVar[str] = "judge_generic"

    def is_right(self) -> bool:
        return holds(self.answer, self.reference)
