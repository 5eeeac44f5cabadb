"""Surrogate questions, more concrete than the one asked (MemoRAG section 2: surrogate queries)."""

import re
from dataclasses import dataclass
from typing import ClassVar

from stages.prompts.memorag.from_memory import LinesFromMemory, numbered
from stages.text.pieces import relevant_sentences
from stages.text.ranking import terms
from stages.text.words import word_spans

_NUM_QUESTIONS, _SENTENCE_WORDS = 3, (8, 25)
_ASKED_WORDS, _ADDED_WORDS = 12, 5  # of each: three such lines fit the budget


@dataclass(frozen=True)
class ClueQuestions(LinesFromMemory):
    """Which more concrete questions together lead to the answer? The value: one a line."""

    name: ClassVar[str] = "clue_questions"
    max_reply_tokens: ClassVar[int] = 128

    def extractive(self) -> str:
        """The question, each time with the longest words that one of the three best sentences adds
        to it; the question itself where none adds a word."""
        query, words = self.query(), word_spans(self.question)[:_ASKED_WORDS]
        asked = " ".join(self.question[: words[-1][1] if words else 0].split()).rstrip("?？")
        known = set(terms(query))
        lines = []
        for best in relevant_sentences(self.texts(), query, _NUM_QUESTIONS, _SENTENCE_WORDS):
            if added := _added(best, known):
                lines.append(f"{asked}: {', '.join(added)}?")
                known.update(terms(best))
        return numbered(lines or ([f"{asked}?"] if asked else []))


def _added(sentence: str, known: set[str]) -> list[str]:
    """The longest words with terms that are not known, in the order of the sentence. In Chinese a
    word is all up to the next sign."""
    words = dict.fromkeys(re.findall(r"\w+", sentence))
    new = [word for word in words if not known.issuperset(terms(word))]
    longest = sorted(new, key=lambda word: -len(word))[:_ADDED_WORDS]
    return [word for word in new if word in longest]
