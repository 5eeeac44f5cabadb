"""Answer the question from the context that the reader is shown."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, ClassVar, Literal

from pipeline.core.prompts import Constraint, Prompt
from pipeline.core.reply_forms import plain_text
from stages.prompts.parsing.passages import DATE, MEMORY, OPTIONS, QUESTION, TEXT, Passage
from stages.prompts.parsing.replies import is_hedged, one_of, settled
from stages.text.excerpts import best_sentences, sentences
from stages.text.ranking import relevance, terms
from stages.text.words import num_words, word_spans

# A letter in brackets, or one whose surroundings show that it is no word: "A man" and "U.S." are.
_LETTER = (
    r"(?:[(\[]\s*(?P<mark>[A-Za-z])\s*[)\]]|(?P<bare>[A-Za-z])"
    r"(?=\s*(?:\Z|[\n:;)\]]|\.(?!\w)|,|\s[-–—]\s)|\s+(?:because|since|as|is)\b"
    r"|(?<![AaIi])\s+[A-Z]))"
    r"(?!\s*(?:,|/|&|\band\b|\bor\b|\bnor\b)\s*[(\[]?[A-HJ-Z]\b)"  # two options are no answer
)
_IS = r"\s*(?i:is\b|would be\b|should be\b|:|=)[\s:]*(?i:(?:option|choice|letter)\s+)?"
_OPTIONS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rf"\b(?i:answer(?:\s+(?:choice|option|letter)|\s+to\s+th\w+\s+question)?){_IS}{_LETTER}",
        rf"\b(?i:option|choice){_IS}{_LETTER}",
        rf"\A{_LETTER}",
        r"^[ \t]*[(\[]?(?P<mark>[A-Z])[)\].]{0,2}[ \t]*$",
    )
)
_DENIED = re.compile(r"\b(?i:not|nor|neither)\s+(?i:option\s+)?[(\[]?[A-Z]\b")
_MENTIONED = re.compile(r"\(([A-Z])\)|\b[Oo]ption\s+([A-Z])\b")


OUT_OF_RANGE: Literal["out_of_range"] = "out_of_range"
_BRIEF = 40  # words of a brief answer, where the prompt names no number


@dataclass(frozen=True)
class AnswerQuestion(Prompt[int | str]):
    """Answer the question from the passages (none for a closed-book answer).

    The value: of a free-form question the answer's text; of one with options the index of the
    option, or "out_of_range" for a letter of none.
    """

    name: ClassVar[str] = "answer"
    max_reply_tokens: ClassVar[int] = 512
    form: ClassVar[str | None] = "Answer: ({})"  # of a question with options
    is_whole: ClassVar[bool] = True
    assumed: ClassVar[str] = "as many words as are asked for"
    passages: tuple[Passage, ...]
    question: str
    options: tuple[str, ...]
    answer_words: int | None  # about how long a free-form answer should be; null: brief
    asked_at: str = ""  # the date of the question, where it has one

    def read(self, reply: str, is_cut: bool) -> int | str | None:
        return parse_option(reply, len(self.options)) if self.options else reply.strip() or None

    def is_legal(self, value: int | str) -> bool:
        return not self.options or value != OUT_OF_RANGE

    def legal(self, form: str) -> Constraint | None:
        return one_of(form, ascii_uppercase[: len(self.options)]) if self.options else None

    def extractive(self) -> str:
        """The option or the sentences that match the question best."""
        texts = [passage.text for passage in self.passages]
        if self.options:
            return f"Answer: ({ascii_uppercase[self._best_option(texts)]})"
        words = self.answer_words or _BRIEF
        return best_sentences(texts, self.question, words) or _unread(self.question, words)

    def _best_option(self, texts: Sequence[str]) -> int:
        """The option that, with the question, one sentence speaks of most; else the longest."""
        options = self.options[: len(ascii_uppercase)]
        found = [sentence.text for text in texts for sentence in sentences(text)]
        match = relevance(found, self.question)
        scores = []
        for option in options:
            # By its number of terms, or the longest option would always win.
            own = relevance(found, option) / max(1, len(terms(option)))
            scores.append(float((own + match).max(initial=0.0)) if own.any() else 0.0)
        merit = [(score, len(option)) for score, option in zip(scores, options, strict=True)]
        return merit.index(max(merit))

    def expected(self) -> str:
        return (
            "Answer: (A)" if self.options else " ".join(["answer"] * (self.answer_words or _BRIEF))
        )

    @classmethod
    def samples(cls) -> tuple["AnswerQuestion", ...]:
        return (
            cls(MEMORY, QUESTION, OPTIONS, answer_words=8104),
            cls(MEMORY, QUESTION, (), answer_words=8104),
            cls(TEXT, QUESTION, (), answer_words=8104),
            cls(MEMORY, QUESTION, (), answer_words=None),
            cls(MEMORY, QUESTION, (), answer_words=8104, asked_at=DATE),
            cls((), QUESTION, (), answer_words=8104),
            cls((), QUESTION, OPTIONS, answer_words=8104),
        )

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        """The letters of the sample question's options."""
        return {ascii_uppercase[index]: index for index in range(len(OPTIONS))}

    def shown(self) -> Sequence[Any]:
        """All fields, but the length asked of a letter."""
        of_length = () if self.options else (self.answer_words,)
        return (self.passages, self.question, self.options, self.asked_at, *of_length)


def _unread(question: str, answer_words: int) -> str:
    """An honest reply without a text, its question cut to fit."""
    lead = "Nothing read says:"
    words = word_spans(question)[: max(1, answer_words - num_words(lead))]
    return f"{lead} {question[: words[-1][1]].strip()}" if words else "Nothing was read."


def parse_option(reply: str, num_options: int) -> int | Literal["out_of_range"] | None:
    """The option chosen, from 0: `Answer: (C)`, `The answer is C`, `(C) ...`, `C.`, `C`.

    First `Answer:` counts, then a letter that opens the reply, then one alone on its line, then
    the only option mentioned; "one might think the answer is (D)" only mentions it, and two that
    differ are None. "out_of_range": a letter, but of no option.
    """
    letter = _option_letter(plain_text(reply))
    if letter is None:
        return None
    index = ord(letter) - ord("A")
    return index if index < num_options else OUT_OF_RANGE


def _option_letter(text: str) -> str | None:
    found = [list(pattern.finditer(text)) for pattern in _OPTIONS]
    stated = [[_named(f) for f in some if not is_hedged(text, f)] for some in found]
    if any(stated) or _DENIED.search(text):
        return settled(*stated)
    mentioned = [bracketed or bare for bracketed, bare in _MENTIONED.findall(text)]
    return settled([*(_named(f) for some in found for f in some), *mentioned])


def _named(found: re.Match[str]) -> str:
    named = found.groupdict()
    return str(named["mark"] or named["bare"]).upper()
