"""Where to end the next page, in the conversation that has found the end of the page before."""

from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.prompts import Prompt
from stages.prompts.readagent.break_point import BreakPoint, Labelled, PageEnd


@dataclass(frozen=True)
class NextBreakPoint(PageEnd):
    """Where to end the page that starts where the last one ended? The value is a label shown."""

    name: ClassVar[str] = "break_point_follow_up"
    follows: ClassVar[tuple[type[Prompt[Any]], ...]] = (BreakPoint,)
    after: PageEnd  # that found the end of the last page
    ended: int  # the label it ended at
    paragraphs: tuple[Labelled, ...]  # of the page's whole window
    num_shown: int  # of the first of these, which the conversation has shown
    following: str = ""  # what is shown of the text after the window; may be empty

    def earlier(self) -> tuple[Prompt[Any], str]:
        return self.after, str(self.ended)

    @classmethod
    def samples(cls) -> tuple["NextBreakPoint", ...]:
        rings, noon, dust = (
            Labelled("It rings.", 7100),
            Labelled("Noon.", 7101),
            Labelled("Dust.", 7102),
        )
        first = BreakPoint("", (Labelled("Dawn.", 7099), rings, noon))
        second = cls(first, 7099, (rings, noon, dust), num_shown=2)
        return (
            second,
            cls(second, 7100, (noon, dust), num_shown=2),
            cls(first, 7100, (noon, Labelled("{{ Dust }}", None), dust), 1, "Then <9> dusk.\n..."),
        )


NextBreakPoint.follows = (BreakPoint, NextBreakPoint)
