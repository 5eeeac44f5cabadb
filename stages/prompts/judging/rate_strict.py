"""Does an answer agree with a reference? The strict rater of ReadAgent section 4.1."""

from dataclasses import dataclass
from typing import ClassVar

from stages.prompts.judging.verdicts import AGREES, agreement
from stages.prompts.judging.yes_or_no import YesOrNo


@dataclass(frozen=True)
class StrictRating(YesOrNo):
    """Does the answer agree with the reference? YES or NO"""

    name: ClassVar[str] = "rate_strict"
    max_reply_tokens: ClassVar[int] = 16
    replies: ClassVar[tuple[str, str]] = ("YES", "NO")

    def is_right(self) -> bool:
        return agreement(self.answer, self.reference) >= AGREES
