"""Compress consecutive summaries that are too long for their node (MemWalker appendix A.1.1)."""

from dataclasses import dataclass
from typing import ClassVar

from pipeline.core.prompts import Prompt
from stages.text.excerpts import gist

_SHARE = 0.3  # of the summaries' words; the paper gives no length


@dataclass(frozen=True)
class CompressSummaries(Prompt[str]):
    """Compress each of the summaries. The value is one text of all of them, stripped."""

    name: ClassVar[str] = "compress"
    max_reply_tokens: ClassVar[int] = 512
    is_whole: ClassVar[bool] = True
    assumed: ClassVar[str] = f"{100 * _SHARE:.0f}% of the summaries"
    summaries: tuple[str, ...]

    def extractive(self) -> str:
        return gist("\n\n".join(self.summaries)) or self.summaries[0]

    def expected(self) -> str:
        text = "\n\n".join(self.summaries)
        return text[: max(1, round(_SHARE * len(text)))]

    @classmethod
    def samples(cls) -> tuple["CompressSummaries", ...]:
        return (cls(("The bell {{ rings }}.\n\n{% twice %} <3>", "Nobody {# admits #} it.")),)
