"""Verdicts on an answer: what raters (ReadAgent 4.1) and judges (LongMemEval A.4) share."""

import re
from collections import Counter
from typing import Literal

from pipeline.core.reply_forms import plain_text
from stages.prompts.parsing.replies import settled, verdicts_stated
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

    The first word decides; a yes whose first sentence says "partially" is partial. "Yes and no"
    is neither, nor is a reply that states another verdict later on ("Final verdict: NO"). One that
    begins otherwise has it in a line or sentence: "The answer is no.", "The answer is correct."
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
    """The verdict by its first word, `YES` or `NO`; None for a partial one."""
    verdict = parse_verdict(reply)
    return None if verdict == "partially" else verdict


def _verdict(text: str) -> Verdict | None:
    """The verdict that a text begins with."""
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
    """The verdict of a sentence that calls the answer correct, or incorrect."""
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
    """True if every term of the reference is in the answer, any number of times."""
    made, wanted = _terms_of(answer, reference)
    return bool(wanted) and {*wanted} <= {*made}


def _terms_of(answer: str, reference: str) -> tuple[list[str], list[str]]:
    """The terms of both; all words where one of the two has only stop words."""
    made, wanted = terms(answer), terms(reference)
    if made and wanted:
        return made, wanted
    return re.findall(r"\w+", answer.lower()), re.findall(r"\w+", reference.lower())
