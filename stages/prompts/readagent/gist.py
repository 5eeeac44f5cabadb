"""Shorten one page to its gist (ReadAgent section 3.1: "shorten", never "summarize")."""

from dataclasses import dataclass
from typing import ClassVar

from pipeline.core.prompts import Prompt
from stages.text.excerpts import gist

SHARE = 0.15  # of a page's words, as gists of the paper's and our own runs have


@dataclass(frozen=True)
class ShortenPage(Prompt[str]):
    """Shorten one page to its gist. The value is the gist, stripped."""

    name: ClassVar[str] = "gist"
    max_reply_tokens: ClassVar[int] = 512
    is_whole: ClassVar[bool] = True
    assumed: ClassVar[str] = f"{100 * SHARE:.0f}% of the page"
    page: str

    def extractive(self) -> str:
        return gist(self.page)

    def expected(self) -> str:
        return self.page[: max(1, round(SHARE * len(self.page)))]

    @classmethod
    def samples(cls) -> tuple["ShortenPage", ...]:
        return (cls("The bell {{ rings }}.\n\n{% twice %} <3>"),)
