"""Shorten a page in the conversation that has just found its end, and so has shown it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.prompts import Prompt
from stages.prompts.readagent.break_point import BreakPoint, Labelled, PageEnd
from stages.prompts.readagent.break_point_follow_up import NextBreakPoint
from stages.prompts.readagent.gist import SHARE
from stages.text.excerpts import gist


@dataclass(frozen=True)
class ShortenShownPage(Prompt[str]):
    """Shorten the page whose end the reply before has named. The value is the gist, stripped."""

    name: ClassVar[str] = "gist_follow_up"
    follows: ClassVar[tuple[type[Prompt[Any]], ...]] = (BreakPoint, NextBreakPoint)
    max_reply_tokens: ClassVar[int] = 512
    is_whole: ClassVar[bool] = True
    assumed: ClassVar[str] = f"{100 * SHARE:.0f}% of the page"
    after: PageEnd
    ended: int  # the label that the page ends at
    page: str  # as the conversation has shown it; for engines without a model

    def earlier(self) -> tuple[Prompt[Any], str]:
        return self.after, str(self.ended)

    def extractive(self) -> str:
        return gist(self.page)

    def expected(self) -> str:
        return self.page[: max(1, round(SHARE * len(self.page)))]

    @classmethod
    def samples(cls) -> tuple["ShortenShownPage", ...]:
        window = BreakPoint(
            "", (Labelled("The bell {{ rings }}. {% twice %}", 7101), Labelled("Noon.", 7102))
        )
        return (cls(window, 7101, "The bell {{ rings }}. {% twice %}"),)

    def shown(self) -> Sequence[Any]:
        """All but the page, which the templates show in parts."""
        return (self.after, self.ended)
