"""The summary of a chat, a key to find it by (LongMemEval section 5.3, figure 11)."""

from dataclasses import dataclass
from typing import ClassVar

from stages.prompts.longmemeval.chat_fields import OfChat, user_sentences
from stages.text.excerpts import gist

_WORDS = 80


@dataclass(frozen=True)
class ExtractSummary(OfChat[str]):
    """Summarize the chat, above all what the user tells and asks. The value is the text, stripped;
    a cut one counts."""

    name: ClassVar[str] = "extract_summary"
    max_reply_tokens: ClassVar[int] = 500
    assumed: ClassVar[str] = f"{_WORDS} words"

    def extractive(self) -> str:
        """The gist of what the user states."""
        return gist(" ".join(user_sentences(self.chat))) or gist(self.chat) or "Nothing was said."

    def expected(self) -> str:
        return " ".join(self.chat.split()[:_WORDS]) or "Nothing was said."
