"""LongMemEval A.4: a rubric per type of question, each answered yes or no."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from stages.prompts.judging.verdicts import AGREES_IN_PART, agreement, holds
from stages.prompts.judging.yes_or_no import YesOrNo
from stages.tables.answers import Rubric


@dataclass(frozen=True)
class JudgeGeneric(YesOrNo):
    """A.4, "other question types". Yes: all of the right answer is there, or all the steps to it; a
    part of it is not enough."""

    name: ClassVar[str] = "judge_generic"

    def is_right(self) -> bool:
        return holds(self.answer, self.reference)


_NEGATION = re.compile(
    r"\b(?:not|no|never|cannot|unable|unknown|insufficient)\b|n['’]t\b", re.IGNORECASE
)


@dataclass(frozen=True)
class JudgeAbstention(YesOrNo):
    """Questions with `_abs` in their id. Yes: the answer says that it cannot be given. `reference`
    explains why the chats do not hold it."""

    name: ClassVar[str] = "judge_abstention"

    def is_right(self) -> bool:
        return bool(_NEGATION.search(self.answer))


@dataclass(frozen=True)
class JudgeKnowledgeUpdate(YesOrNo):
    """A.4, "knowledge-update". Yes: the updated answer is there; an outdated one may be, too."""

    name: ClassVar[str] = "judge_knowledge_update"

    def is_right(self) -> bool:
        return holds(self.answer, self.reference)


@dataclass(frozen=True)
class JudgePreference(YesOrNo):
    """A.4, "single-session-preference". `reference` says what the user would like to read; not all
    of it must be met."""

    name: ClassVar[str] = "judge_preference"

    def is_right(self) -> bool:
        return agreement(self.answer, self.reference) >= AGREES_IN_PART


_COUNT = re.compile(r"\b\d+(?=\s+(?:day|week|month)s?\b)", re.IGNORECASE)


@dataclass(frozen=True)
class JudgeTemporal(YesOrNo):
    """A.4, "temp-reasoning". As the generic rubric, but counts of days, weeks or months may be off
    by one."""

    name: ClassVar[str] = "judge_temporal"

    def is_right(self) -> bool:
        counts = (_COUNT.sub(partial(_moved, by), self.reference) for by in (-1, 0, 1))
        return any(holds(self.answer, reference) for reference in counts)


def _moved(by: int, count: re.Match[str]) -> str:
    return str(int(count[0]) + by)


# By a question's task, else its type; all others are generic (single-session-user and -assistant,
# multi-session; questions of other corpora).
_RUBRICS: Mapping[str | None, Rubric] = {
    "abstention": "abstention",
    "temporal-reasoning": "temporal",
    "knowledge-update": "knowledge_update",
    "single-session-preference": "preference",
}


def rubric_of(task: str | None, question_type: str | None) -> Rubric:
    """The rubric of LongMemEval's by which answers to a question are judged."""
    return _RUBRICS.get(task or question_type, "generic")
