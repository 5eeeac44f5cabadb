"""Prompts that judge an answer: the strict and the permissive rater of ReadAgent section 4.1, and
LongMemEval's rubric for each type of question (A.4)."""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

from pipeline.core.reply_forms import plain_text
from stages.prompts.parsing import OneOf, settled, verdicts_stated
from stages.tables.answers import Rubric
from stages.text.ranking import terms

T = TypeVar("T")
Verdict = Literal["yes", "partially", "no"]
Strict = Literal["yes", "no"]
AGREES, AGREES_IN_PART = 0.5, 0.2  # F1 of terms, from which the extractive engine says so
_VERDICT = re.compile(
    r"(?i)\A\W*(?:(?:final\s+)?(?:answer|verdict|rating|judge?ment)\s*(?:is\b|:)\W*)?"
    r"(?P<first>yes|no|partial(?:ly)?|partly)\b"
    r"(?:[^\w.!;:]*\b(?:and|or|but|nor)?[^\w.!;:]*\b(?P<second>yes|no)\b)?"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_STATED = re.compile(
    r"(?i)\W*(?:(?:(?:my|the|so)\s+)?(?:final\s+)?(?:verdict|rating|judge?ment)\s*(?:is\b|:)|(?:final\s+)?"
    r"answer\s*:|(?:yes|no|partial(?:ly)?|partly|yes,?\s+partially)\W*\Z)"
)
_ASSESSED = re.compile(
    r"(?i)\W{0,9}(?:(?:so|thus|therefore|hence|overall)\W{1,3})?(?:it|this|that|(?:the|this)\s+(?:(?:models?|given"
    r"|candidates?|students?|assistants?|systems?|provided|generated)\s+){0,2}(?:answer|response|reply))"
    r"\s+is\s+(?P<not>not\s+)?(?P<part>part(?:ial)?ly\s+)?(?:(?P<right>correct|right)|incorrect|wrong)\b"
    r"(?=\W*\Z|,?\s+(?:because|since|as)\b(?!.*\b(?:but|if|only|except|though|although|unless)\b))"
)
_INCOMPLETE = re.compile(r"\b(?:missing|misses|lacks|incomplete|however)\b", re.IGNORECASE)
_PARTIAL = re.compile(r"\b(?:partial(?:ly)?|partly|in\s+part)\b", re.IGNORECASE)
_NEGATION = re.compile(r"(?i)\b(?:not|no|never|cannot|unable|unknown|insufficient)\b|n['’]t\b")
_COUNT = re.compile(r"\b\d+(?=\s+(?:day|week|month)s?\b)", re.IGNORECASE)
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


def _verdict(text: str) -> Verdict | None:
    match = _VERDICT.match(text)
    if match is None:
        return None
    first, second = match["first"].lower(), (match["second"] or "").lower()
    if first not in ("yes", "no"):
        return None if second == "no" else "partially"
    if second not in ("", first):
        return None
    if first == "yes":
        return "partially" if _PARTIAL.search(re.split(r"[.!?\n]", text)[0]) else "yes"
    return None if _ONLY_PARTIAL.match(text, match.end()) else "no"


def _assessed(sentence: str) -> Verdict | None:
    """The verdict of a sentence that calls the answer correct or incorrect."""
    match = _ASSESSED.match(sentence)
    if match is None or (match["part"] and (match["not"] or not match["right"])):
        return None
    if match["part"]:
        return "partially"
    return "no" if bool(match["not"]) == bool(match["right"]) else "yes"


def agreement(answer: str, reference: str) -> float:
    """F1 of the terms, 0 to 1."""
    said, wanted = _terms_of(answer, reference)
    shared = sum((Counter(said) & Counter(wanted)).values())
    return 2 * shared / (len(said) + len(wanted)) if shared else 0.0


def _holds(answer: str, reference: str) -> bool:
    """True if every term of the reference is in the answer, however often."""
    said, wanted = _terms_of(answer, reference)
    return bool(wanted) and {*wanted} <= {*said}


def _terms_of(answer: str, reference: str) -> tuple[Sequence[str], Sequence[str]]:
    """The terms of both; all words where either has only stop words."""
    said, wanted = terms(answer), terms(reference)
    if said and wanted:
        return said, wanted
    return re.findall(r"\w+", answer.lower()), re.findall(r"\w+", reference.lower())


@dataclass(frozen=True)
class _RatingPrompt(OneOf[T]):
    """Base class of prompts that show an answer and the right one."""

    fills = (("Who rang {{ it }}?", "The sexton <1>.", "Nobody; {% no %}."),)
    question: str
    answer: str
    reference: str


class YesOrNo(_RatingPrompt[Strict]):
    """Base class of judges' prompts. `reference` is the right answer, or a text that the rubric
    defines."""

    max_reply_tokens = 10  # of judges: the authors' evaluate_qa.py
    form_values: ClassVar[Mapping[str, Strict]] = {"yes": "yes", "no": "no"}

    def read(self, reply: str, is_cut: bool) -> Strict | None:
        verdict = parse_verdict(reply)
        return None if verdict == "partially" else verdict

    def extractive(self) -> str:
        yes, no = self.form_values
        return yes if self.is_right() else no

    @abstractmethod
    def is_right(self) -> bool:
        """The extractive engine's verdict, by the words of the answer."""

    def expected(self) -> str:
        return [*self.form_values][1]


class StrictRating(YesOrNo):
    """Does the answer agree with the reference? YES or NO. Asked by the stage `rate`."""

    name = "rate_strict"
    max_reply_tokens = 16
    form_values: ClassVar[Mapping[str, Strict]] = {"YES": "yes", "NO": "no"}

    def is_right(self) -> bool:
        return agreement(self.answer, self.reference) >= AGREES


class PermissiveRating(_RatingPrompt[Verdict]):
    """Does the answer agree with the reference? Yes; Yes, partially; No. Asked by the stage `rate`,
    together with the strict prompt."""

    name = "rate_permissive"
    max_reply_tokens = 16
    form_values: ClassVar[Mapping[str, Verdict]] = {
        "Yes": "yes",
        "Yes, partially": "partially",
        "No": "no",
    }

    def read(self, reply: str, is_cut: bool) -> Verdict | None:
        return parse_verdict(reply)

    def extractive(self) -> str:
        share = agreement(self.answer, self.reference)
        if share >= AGREES:
            return "Yes"
        return "Yes, partially" if share >= AGREES_IN_PART else "No"

    def expected(self) -> str:
        return "Yes, partially"


class JudgeGeneric(YesOrNo):
    """A.4, "other question types". Yes: all of the right answer is there, or all the steps to it; a
    part of it is not enough. Asked by the stage `rate` (kind by_type)."""

    name = "judge_generic"

    def is_right(self) -> bool:
        return _holds(self.answer, self.reference)


class JudgeKnowledgeUpdate(JudgeGeneric):
    """A.4, "knowledge-update". Yes: the updated answer is there; an outdated one may be, too. Asked
    by the stage `rate` (kind by_type)."""

    name = "judge_knowledge_update"


class JudgePreference(YesOrNo):
    """A.4, "single-session-preference". `reference` says what the user would like to read; not all
    of it must be met. Asked by the stage `rate` (kind by_type)."""

    name = "judge_preference"

    def is_right(self) -> bool:
        return agreement(self.answer, self.reference) >= AGREES_IN_PART


class JudgeAbstention(YesOrNo):
    """Questions with `_abs` in their id. Yes: the answer says that it cannot be given. `reference`
    explains why the chats do not hold it. Asked by the stage `rate` (kind by_type)."""

    name = "judge_abstention"

    def is_right(self) -> bool:
        return bool(_NEGATION.search(self.answer))


class JudgeTemporal(YesOrNo):
    """A.4, "temp-reasoning". As the generic rubric, but counts of days, weeks or months may be off
    by one. Asked by the stage `rate` (kind by_type)."""

    name = "judge_temporal"

    def is_right(self) -> bool:
        def moved(by: int) -> str:
            return _COUNT.sub(lambda count: str(int(count[0]) + by), self.reference)

        return any(_holds(self.answer, moved(by)) for by in (-1, 0, 1))


def rubric_of(task: str | None, question_type: str | None) -> Rubric:
    """LongMemEval's rubric for a question, by its task, else by its type, else generic."""
    rubrics: Mapping[str | None, Rubric] = {
        "abstention": "abstention",
        "temporal-reasoning": "temporal",
        "knowledge-update": "knowledge_update",
        "single-session-preference": "preference",
    }
    return rubrics.get(task or question_type, "generic")
