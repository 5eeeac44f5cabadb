"""Answer from retrieved chats after notes on them, in one reply (LongMemEval section 5.5, figure
13: Chain-of-Note)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.prompts import Constraint
from stages.prompts.longmemeval.answer_chats import CHATS, AnswerFromChats
from stages.prompts.parsing.passages import DATE, OPTIONS, QUESTION
from stages.text.excerpts import best_sentences
from stages.text.ranking import rank, terms

_ANSWER = re.compile(
    r"^[^\w\n]{0,9}(?:(?:so|the|my)\W{1,3}){0,2}(?:final\s)?answer[*_ ]{0,4}[:：]"
    r"|^(?:#{1,6}[ \t]{1,3}|[*_]{1,3})(?:final\s)?answer[*_]{0,3}[ \t]{0,9}$",  # a heading
    re.I | re.M,
)
_BOLD = re.compile(r"\A[*_]{1,3}(?=\s)")  # the end of **Answer:**
_PLACEHOLDER = re.compile(r"<[^<>]*\s[^<>]*>")  # of the prompt's form
_MOST_NOTES, _NOTE_WORDS = 10, 25  # so many fit the budget beside the answer
_EXPECTED_NOTES = 150  # words


@dataclass(frozen=True)
class AnswerWithNotes(AnswerFromChats):
    """Note what the chats say about the question, then answer it from the notes. Fields and value
    are `AnswerQuestion`'s; no reply is constrained, as notes are free text."""

    name: ClassVar[str] = "answer_chats_con"
    max_reply_tokens: ClassVar[int] = 800
    form: ClassVar[str | None] = None
    assumed: ClassVar[str] = f"{_EXPECTED_NOTES} words of notes, then as many as are asked for"

    def read(self, reply: str, is_cut: bool) -> int | str | None:
        """The text after the last line-opening `Answer:` that anything follows. None without one:
        which part of such a reply is notes would be a guess."""
        parts = [_stated(part) for part in _ANSWER.split(reply)[1:]]
        texts = [part for part in parts if not _PLACEHOLDER.fullmatch(part)]
        said = [text for text in texts if any(map(str.isalnum, text))]
        if not said:
            return None
        return super().read(f"Answer: {said[-1]}" if self.options else said[-1], is_cut)

    def legal(self, form: str) -> Constraint | None:
        return None

    def extractive(self) -> str:
        """A sentence of each of the ten chats that match the question best, then the answer."""
        texts = [passage.text for passage in self.passages]
        query = "\n".join([self.question, *self.options])
        wanted = set(terms(query))
        best = sorted(i for i in rank(texts, query)[:_MOST_NOTES] if wanted & set(terms(texts[i])))
        notes = [f"- {best_sentences([texts[i]], query, _NOTE_WORDS)}" for i in best]
        answer = super().extractive().removeprefix("Answer: ")
        return "\n".join(["Notes:", *(notes or ["- nothing on it"]), f"Answer: {answer}"])

    def expected(self) -> str:
        notes = " ".join(["note"] * _EXPECTED_NOTES)
        return f"{notes}\nAnswer: {super().expected().removeprefix('Answer: ')}"

    @classmethod
    def samples(cls) -> tuple["AnswerWithNotes", ...]:
        return (
            cls(CHATS, QUESTION, (), answer_words=8104, asked_at=DATE),
            cls(CHATS, QUESTION, OPTIONS, answer_words=8104, asked_at=DATE),
            cls(CHATS, QUESTION, (), answer_words=None),
            cls((), QUESTION, (), answer_words=8104, asked_at=DATE),
        )

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        return {}


def _stated(part: str) -> str:
    """A part of a reply without the end of what was bold from before it."""
    text = _BOLD.sub("", part).strip()
    return text.removesuffix("**") if text.count("**") == 1 else text
