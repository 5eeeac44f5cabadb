"""Shorten one chunk of a text to its gist (MemoRAG-Lite, whose memory is the gists of chunks of
4,096 tokens)."""

from dataclasses import dataclass
from typing import ClassVar

from pipeline.core.prompts import Prompt
from stages.text.excerpts import best_sentences, gist
from stages.text.words import num_words

_SHARE = 0.1  # of a chunk's words: the budget is an eighth of its tokens


@dataclass(frozen=True)
class ShortenChunk(Prompt[str]):
    """Shorten one chunk to its gist. The value is the gist, stripped."""

    name: ClassVar[str] = "gist_chunk"
    max_reply_tokens: ClassVar[int] = 512
    is_whole: ClassVar[bool] = True
    assumed: ClassVar[str] = f"{100 * _SHARE:.0f}% of the chunk"
    chunk: str

    def extractive(self) -> str:
        """The most central sentences; of a short chunk a gist as of a page, which has 40 words."""
        words = round(_SHARE * num_words(self.chunk))
        return best_sentences([self.chunk], "", words) if words > 40 else gist(self.chunk)

    def expected(self) -> str:
        return self.chunk[: max(1, round(_SHARE * len(self.chunk)))].strip()

    @classmethod
    def samples(cls) -> tuple["ShortenChunk", ...]:
        return (cls("The bell {{ rings }}.\n\n{% twice %} <3>"),)
