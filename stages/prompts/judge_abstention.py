"""Does an answer say that it cannot be given? LongMemEval's questions with `_abs` in their id."""

import re
from dataclasses import dataclass
from typing import ClassVar

from stages.prompts.yes_or_no import YesOrNo

_NEGATION = re.compile(
    r"\b(?:not|no|never|cannot|unable|unknown|insufficient)\b|n['’]t\b", re.IGNORECASE
)


@dataclass(frozen=True)
class JudgeAbstention(YesOrNo):
    """`reference` explains why the chats do not hold the answer."""

    name: ClassVar[str] = "judge_abstention"

    def is_right(self) -> bool:
        return bool(_NEGATION.search(self.answer))
