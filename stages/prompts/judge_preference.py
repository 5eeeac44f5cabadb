"""Does an answer heed what the user likes? LongMemEval A.4, "single-session-preference"."""

from dataclasses import dataclass
from typing import ClassVar

from stages.prompts.verdicts import AGREES_IN_PART, agreement
from stages.prompts.yes_or_no import YesOrNo


@dataclass(frozen=True)
class JudgePreference(YesOrNo):
    """`reference` says what the user would like to read; not all of it must be met."""

    name: ClassVar[str] = "judge_preference"

    def is_right(self) -> bool:
        return agreement(self.answer, self.reference) >= AGREES_IN_PART
