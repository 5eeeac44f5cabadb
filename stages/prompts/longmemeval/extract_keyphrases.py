"""The keyphrases of a chat, a key to find it by (LongMemEval section 5.3, figure 11)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from stages.prompts.longmemeval.chat_fields import OfChat, user_sentences
from stages.prompts.parsing.lines import parse_lines
from stages.text.pieces import spread_pieces
from stages.text.ranking import terms, weights

_SEPARATOR = re.compile("[;；]")
_LABEL = re.compile(
    r"\A[^\n;:：]{0,80}\bkey[ -]?(?:phrase|word|term)s?\b[^\n;:：]{0,80}[:：][*_]{0,2}\s*",
    re.IGNORECASE,
)
_NUM_PHRASES, _PHRASE_WORDS, _PHRASE_CHARS = 8, 3, 40
_NONE = "NONE"


@dataclass(frozen=True)
class ExtractKeyphrases(OfChat[tuple[str, ...]]):
    """Ask what the chat is about, in keyphrases. The value: each as written; () for none."""

    name: ClassVar[str] = "extract_keyphrases"
    max_reply_tokens: ClassVar[int] = 100
    assumed: ClassVar[str] = f"{_NUM_PHRASES} phrases of two words"

    def read(self, reply: str, is_cut: bool) -> tuple[str, ...] | None:
        """The texts between semicolons or line ends, without labels and list markers. The last
        one of a cut reply is incomplete, so it counts only where it is the only one."""
        return parse_lines(_SEPARATOR.sub("\n", _LABEL.sub("", reply.lstrip())), is_cut)

    def extractive(self) -> str:
        """The runs of words without stop words of most weight, of those that the user states."""
        stated = user_sentences(self.chat) or [self.chat]
        weight = weights(stated)
        found = dict.fromkeys(phrase for text in stated for phrase in _phrases(text))
        merit = {phrase: sum(weight.get(term, 0.0) for term in terms(phrase)) for phrase in found}
        return _listed(sorted(merit, key=lambda phrase: -merit[phrase])[:_NUM_PHRASES])

    def expected(self) -> str:
        return _listed(spread_pieces([self.chat], _NUM_PHRASES, 2))


def _phrases(text: str) -> Iterator[str]:
    """The runs of at most three neighbouring words that are no stop words."""
    run: list[str] = []
    for word in re.findall(r"\w+|[^\w\s]", text):
        is_content = bool(terms(word)) and len(word) <= _PHRASE_CHARS
        if run and (not is_content or len(run) == _PHRASE_WORDS):
            yield " ".join(run)
            run = []
        if is_content:
            run.append(word)
    if run:
        yield " ".join(run)


def _listed(phrases: list[str]) -> str:
    clean = (" ".join(_SEPARATOR.sub(" ", phrase).split()) for phrase in phrases)
    return "; ".join(phrase for phrase in clean if any(map(str.isalnum, phrase))) or _NONE
