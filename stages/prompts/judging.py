"""Prompts that judge an answer: the strict and the permissive rater of ReadAgent section 4.1, and
LongMemEval's rubric for each type of question (A.4)."""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

from pipeline.core.prompts import Constraint, Prompt
from pipeline.core.reply_forms import plain_text
from stages.prompts.replies import one_of, settled, verdicts_stated
from stages.tables.answers import Rubric
from stages.text.ranking import terms

Verdict = Literal["yes", "partially", "no"]
Strict = Literal["yes", "no"]
AGREES = 0.5  # F1 of terms, from which the extractive engine says yes
AGREES_IN_PART = 0.2
SAMPLE = ("Who rang {{ it }}?", "The sexton <1>.", "Nobody; {% no %}.")
_VERDICT = re.compile(
    r"\A\W*(?:(?:final\s+)?(?:answer|verdict|rating|judge?ment)\s*(?:is\b|:)\W*)?"
    r"(?P<first>yes|no|partial(?:ly)?|partly)\b"
    r"(?:[^\w.!;:]*\b(?:and|or|but|nor)?[^\w.!;:]*\b(?P<second>yes|no)\b)?",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_STATED = re.compile(
    r"\W*(?:(?:(?:my|the|so)\s+)?(?:final\s+)?(?:verdict|rating|judge?ment)\s*(?:is\b|:)|(?:final\s+)?"
    r"answer\s*:|(?:yes|no|partial(?:ly)?|partly|yes,?\s+partially)\W*\Z)",
    re.IGNORECASE,
)
_ASSESSED = re.compile(
    r"\W{0,9}(?:(?:so|thus|therefore|hence|overall)\W{1,3})?(?:it|this|that|(?:the|this)\s+(?:(?:models?|given"
    r"|candidates?|students?|assistants?|systems?|provided|generated)\s+){0,2}(?:answer|response|reply))"
    r"\s+is\s+(?P<not>not\s+)?(?P<part>part(?:ial)?ly\s+)?(?:(?P<right>correct|right)|incorrect|wrong)\b"
    r"(?=\W*\Z|,?\s+(?:because|since|as)\b(?!.*\b(?:but|if|only|except|though|although|unless)\b))",
    re.IGNORECASE,
)
_INCOMPLETE = re.compile(r"\b(?:missing|misses|lacks|incomplete|however)\b", re.IGNORECASE)
_PARTIAL = re.compile(r"\b(?:partial(?:ly)?|partly|in\s+part)\b", re.IGNORECASE)
_ONLY_PARTIAL = re.compile(r"\W+(?:but\s+)?(?:only\s+)?part(?:ial|ly)", re.IGNORECASE)


def parse_verdict(reply: str) -> Verdict | None:
    """The verdict of a reply: `Yes`, `Yes, partially` or `No`.

    The first word decides; a yes whose first sentence says "partially" is partial. "Yes and no" is
    neither, nor is a reply that states another verdict later ("Final verdict: NO"). A reply that
    begins otherwise states it in a line or sentence: "The answer is no.", "The answer is correct."
    """
    text = plain_text(reply)
    sentences = _SENTENCE.split(text)
    if not _VERDICT.match(text):
        stated = [_verdict(said) for said in verdicts_stated(text)]
        assessed = [] if _INCOMPLETE.search(text) else map(_assessed, sentences)
        return settled([v for v in (*stated, *assessed) if v])
    later = [_verdict(sentence) for sentence in sentences[1:] if _STATED.match(sentence)]
    first = _verdict(text)
    return first if not {*later} - {first, None} else None


def parse_strict(reply: str) -> Strict | None:
    """As `parse_verdict`, but None for a partial verdict."""
    verdict = parse_verdict(reply)
    return None if verdict == "partially" else verdict


def _verdict(text: str) -> Verdict | None:
    found = _VERDICT.match(text)
    if found is None:
        return None
    first, second = found["first"].lower(), (found["second"] or "").lower()
    if first not in ("yes", "no"):
        return None if second == "no" else "partially"
    if second not in ("", first):
        return None
    if first == "yes":
        return "partially" if _PARTIAL.search(re.split(r"[.!?\n]", text)[0]) else "yes"
    return None if _ONLY_PARTIAL.match(text, found.end()) else "no"


def _assessed(sentence: str) -> Verdict | None:
    """The verdict of a sentence that calls the answer correct or incorrect."""
    found = _ASSESSED.match(sentence)
    if found is None or (found["part"] and (found["not"] or not found["right"])):
        return None
    if found["part"]:
        return "partially"
    return "no" if bool(found["not"]) == bool(found["right"]) else "yes"


def agreement(answer: str, reference: str) -> float:
    """F1 of the terms, 0 to 1."""
    made, wanted = _terms_of(answer, reference)
    shared = sum((Counter(made) & Counter(wanted)).values())
    return 2 * shared / (len(made) + len(wanted)) if shared else 0.0


def holds(answer: str, reference: str) -> bool:
    """True if every term of the reference is in the answer, however often."""
    made, wanted = _terms_of(answer, reference)
    return bool(wanted) and {*wanted} <= {*made}


def _terms_of(answer: str, reference: str) -> tuple[list[str], list[str]]:
    """The terms of both; all words where either has only stop words."""
    made, wanted = terms(answer), terms(reference)
    if made and wanted:
        return made, wanted
    return re.findall(r"\w+", answer.lower()), re.findall(r"\w+", reference.lower())


@dataclass(frozen=True)
class YesOrNo(Prompt[Strict]):
    """Base class of judges' prompts. `reference` is the right answer, or a text that the rubric
    defines."""

    max_reply_tokens: ClassVar[int] = 10  # of judges: the authors' evaluate_qa.py
    version: ClassVar[int] = 1
    replies: ClassVar[tuple[str, str]] = ("yes", "no")
    form: ClassVar[str | None] = "{}"
    question: str
    answer: str
    reference: str

    def read(self, reply: str, is_cut: bool) -> Strict | None:
        return parse_strict(reply)

    def legal(self, form: str) -> Constraint:
        return one_of(form, self.replies)

    def extractive(self) -> str:
        return self.replies[0 if self.is_right() else 1]

    @abstractmethod
    def is_right(self) -> bool:
        """The extractive engine's verdict, by the words of the answer."""

    def expected(self) -> str:
        return self.replies[1]

    @classmethod
    def samples(cls) -> tuple[Self, ...]:
        return (cls(*SAMPLE),)

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        return dict(zip(cls.replies, ("yes", "no"), strict=True))


@dataclass(frozen=True)
class StrictRating(YesOrNo):
    """Does the answer agree with the reference? YES or NO"""

    name: ClassVar[str] = "rate_strict"
    max_reply_tokens: ClassVar[int] = 16
    replies: ClassVar[tuple[str, str]] = ("YES", "NO")

    def is_right(self) -> bool:
        return agreement(self.answer, self.reference) >= AGREES


_REPLIES: Mapping[str, Verdict] = {"Yes": "yes", "Yes, partially": "partially", "No": "no"}


@dataclass(frozen=True)
class PermissiveRating(Prompt[Verdict]):
    """Does the answer agree with the reference? Yes; Yes, partially; No"""

    name: ClassVar[str] = "rate_permissive"
    max_reply_tokens: ClassVar[int] = 16
    version: ClassVar[int] = 1
    form: ClassVar[str | None] = "{}"
    question: str
    answer: str
    reference: str

    def read(self, reply: str, is_cut: bool) -> Verdict | None:
        return parse_verdict(reply)

    def legal(self, form: str) -> Constraint:
        return one_of(form, _REPLIES)

    def extractive(self) -> str:
        share = agreement(self.answer, self.reference)
        if share >= AGREES:
            return "Yes"
        return "Yes, partially" if share >= AGREES_IN_PART else "No"

    def expected(self) -> str:
        return "Yes, partially"

    @classmethod
    def samples(cls) -> tuple["PermissiveRating", ...]:
        return (cls(*SAMPLE),)

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        return _REPLIES


@dataclass(frozen=True)
class JudgeGeneric(YesOrNo):
    """A.4, "other question types". Yes: all of the right answer is there, or all the steps to it; a
    part of it is not enough."""

    name: ClassVar[str] = "judge_generic"

    def is_right(self) -> bool:
        return holds(self.answer, self.reference)


_NEGATION = re.compile(
    r"\b(?:not|no|never|cannot|unable|unknown|insufficient)\b|n['’]t\b", re.IGNORECASE
)


@dataclass(frozen=True)
class JudgeAbstention(YesOrNo):
    """Questions with `_abs` in their id. Yes: the answer says that it cannot be given. `reference`
    explains why the chats do not hold it."""

    name: ClassVar[str] = "judge_abstention"

    def is_right(self) -> bool:
        return bool(_NEGATION.search(self.answer))


@dataclass(frozen=True)
class JudgeKnowledgeUpdate(YesOrNo):
    """A.4, "knowledge-update". Yes: the updated answer is there; an outdated one may be, too."""

    name: ClassVar[str] = "judge_knowledge_update"

    def is_right(self) -> bool:
        return holds(self.answer, self.reference)


@dataclass(frozen=True)
class JudgePreference(YesOrNo):
    """A.4, "single-session-preference". `reference` says what the user would like to read; not all
    of it must be met."""

    name: ClassVar[str] = "judge_preference"

    def is_right(self) -> bool:
        return agreement(self.answer, self.reference) >= AGREES_IN_PART


_COUNT = re.compile(r"\b\d+(?=\s+(?:day|week|month)s?\b)", re.IGNORECASE)


@dataclass(frozen=True)
class JudgeTemporal(YesOrNo):
    """A.4, "temp-reasoning". As the generic rubric, but counts of days, weeks or months may be off
    by one."""

    name: ClassVar[str] = "judge_temporal"

    def is_right(self) -> bool:
        counts = (_COUNT.sub(partial(_moved, by), self.reference) for by in (-1, 0, 1))
        return any(holds(self.answer, reference) for reference in counts)


def _moved(by: int, count: re.Match[str]) -> str:
    return str(int(count[0]) + by)


# By a question's task, else its type; all others are generic (single-session-user and -assistant,
# multi-session; questions of other corpora).
_RUBRICS: Mapping[str | None, Rubric] = {
    "abstention": "abstention",
    "temporal-reasoning": "temporal",
    "knowledge-update": "knowledge_update",
    "single-session-preference": "preference",
}


def rubric_of(task: str | None, question_type: str | None) -> Rubric:
    """LongMemEval's rubric for a question, by its task, else by its type, else generic."""
    return _RUBRICS.get(task or question_type, "generic")
