"""Is the right answer in an answer, give or take a day? LongMemEval A.4, "temp-reasoning"."""

import re
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from stages.prompts.verdicts import holds
from stages.prompts.yes_or_no import YesOrNo

_COUNT = re.compile(r"\b\d+(?=\s+(?:day|week|month)s?\b)", re.IGNORECASE)


@dataclass(frozen=True)
class JudgeTemporal(YesOrNo):
    """As the generic rubric, but counts of days, weeks or months may be off by one."""

    name: ClassVar[str] = "judge_temporal"

    def is_right(self) -> bool:
        counts = (_COUNT.sub(partial(_moved, by), self.reference) for by in (-1, 0, 1))
        return any(holds(self.answer, reference) for reference in counts)


def _moved(by: int, count: re.Match[str]) -> str:
    return str(int(count[0]) + by)
