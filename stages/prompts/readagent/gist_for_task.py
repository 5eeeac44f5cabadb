"""Shorten one page for a task that is known beforehand (ReadAgent appendix E.1, conditional)."""

from dataclasses import dataclass
from typing import ClassVar

from stages.prompts.readagent.gist import ShortenPage
from stages.text.excerpts import best_sentences
from stages.text.words import num_words

_SHARE = 0.15  # of a page's words


@dataclass(frozen=True)
class ShortenPageForTask(ShortenPage):
    """Shorten one page to what serves `task`. The value is the gist, stripped."""

    name: ClassVar[str] = "gist_for_task"
    task: str = ""

    def extractive(self) -> str:
        words = max(1, round(_SHARE * num_words(self.page)))
        return best_sentences([self.page], self.task, words) or super().extractive()

    @classmethod
    def samples(cls) -> tuple["ShortenPageForTask", ...]:
        return (cls("The bell {{ rings }}.\n\n{% twice %} <3>", "Find {# who #} rang it."),)
