"""Is the newest fact in an answer? LongMemEval A.4, "knowledge-update"."""

from dataclasses import dataclass
from typing import ClassVar

from stages.prompts.verdicts import holds
from stages.prompts.yes_or_no import YesOrNo


@dataclass(frozen=True)
class JudgeKnowledgeUpdate(YesOrNo):
    """Yes: the updated answer is there, whether or not an outdated one stands beside it."""

    name: ClassVar[str] = "judge_knowledge_update"

    def is_right(self) -> bool:
        return holds(self.answer, self.reference)
