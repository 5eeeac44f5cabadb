"""Shorten a gist once more (ReadAgent appendix E.2, iterative gisting)."""

from dataclasses import dataclass
from typing import ClassVar

from pipeline.core.prompts import Prompt
from stages.text.excerpts import best_sentences


@dataclass(frozen=True)
class ShortenGist(Prompt[str]):
    """Shorten a gist to at most `max_words` words. The value is the shorter gist, stripped."""

    name: ClassVar[str] = "regist"
    max_reply_tokens: ClassVar[int] = 512
    assumed: ClassVar[str] = "as many words as are asked for"
    gist: str
    max_words: int

    def extractive(self) -> str:
        most = max(1, 9 * self.max_words // 10)  # what it takes may be a tenth longer
        return best_sentences([self.gist], self.gist, most) or self.gist

    def expected(self) -> str:
        return " ".join(self.gist.split()[: self.max_words])

    @classmethod
    def samples(cls) -> tuple["ShortenGist", ...]:
        return (cls("The bell {{ rings }}. {% twice %} <3>", 2748),)
