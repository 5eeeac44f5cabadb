"""Shared by parsers of replies: negations, hedges, requests, and forms of constrained replies."""

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from pipeline.core.prompts import Constraint

T = TypeVar("T", bound=Hashable)
_SPECIAL = {ord(sign): f"\\{sign}" for sign in "\\^$.*+?()[]{}|"}

# Negations in words, within a sentence or a part of one. Apostrophes are gone by then.
_SENTENCE_END = re.compile(r"[.!?;:\n]")
_EXCEPT = re.compile(r"\b(?:but|except|only|just|than|besides|apart|unless|so)\b", re.IGNORECASE)
_NOT = r"\b(?:not|dont|doesnt|didnt|wont|wouldnt|isnt|arent|neednt|no\s+longer|never)"
_HEDGE = (
    r"(?:(?:think|believe|feel|see|that|i|we|it|its|there|is|any|an?|the|to|be|really"
    r"|actually|currently|strictly|seem|even|pages?|further|more|additional)\s+)*"
)
_READ = r"(?:look|re-?read|see|check|consult|view|revisit|open|request)\b"
_DECLINED = re.compile(
    rf"(?:{_NOT}|\bno)\s+{_HEDGE}(?:need|want|have\s+to|look\s+up|read)\b(?!\s+to\s+stop)"
    rf"(?!.*{_EXCEPT.pattern})|\b(?:neither|nor|not)\s*\Z",
    re.IGNORECASE,
)
_NOT_NEEDED = (
    rf"(?:{_NOT}\s+{_HEDGE}(?:needed|necessary|required|help|helpful|relevant|useful)"
    r"|\bunnecessary|\bunneeded|\birrelevant)\b"
)
_DECLINED_AFTER = re.compile(
    rf"(?:(?!\b(?:pages?|since|because|as|but|to|if)\b)[^(,])*?{_NOT_NEEDED}", re.IGNORECASE
)


_CLAUSE_END = re.compile(r"[.!?;:,\n]")
_HEDGED = re.compile(
    r"\b(?:although|though|while|whereas|if|might|may|could|first|thought|next|second|another|other"
    r"|alternative(?:ly)?|instead|rather|than|not|dont|doesnt|cannot|cant|wouldnt|nobody|none"
    r"|seems?|tempting|previous(?:ly)?|earlier)\b",
    re.IGNORECASE,
)
_REQUESTED = re.compile(
    rf"\b(?:look(?:ing)?\s+(?:up|at)|re-?read(?:ing)?|(?:want|need|wish|like|choose|pick|request)"
    rf"(?:\s+to\s+(?:(?:read|look\s+at)\b|{_READ}))?)\s+(?:(?:the|again|only|just|at)\s+)*[\[<(]*\Z",
    re.IGNORECASE,
)


# Words around a value that say that it is not the one, or leave that open: "I dont think the answer
# is (B)" (apostrophes are gone), "none of (A)", "if (B)"; "(B) is too broad", "B: wrong", "(B)?".
_NOT_THIS = (
    r"\b(?:not|nor|neither|never|isnt|arent|dont|doesnt|wouldnt|cannot|cant|nobody|none\s+of|no\s+one"
    r"|whether|if|avoid|(?:anything|all)\s+but|except(?:\s+for)?|rather\s+than|instead\s+of|unlike"
    r"|rul(?:e[sd]?|ing)\s+out|exclud\w{1,4}|eliminat\w{1,4}|reject\w{0,4}|discard\w{0,4})\s+"
    r"(?:(?:it|its|be|is|the|either|both|at|after|with|choose|chose|pick|select|go|break|end|think|believe"
    r"|say|answer|options|choices)\s+){0,5}"
)
_IS_NOT = (
    r"(?:\s?[:–-]\s?(?:wrong|incorrect|false|not?)\b|[^.!?:;,\n]{0,40}\?)"
    r"|\s+(?:(?:is|are|was|were|seems?|looks?)\s+(?:(?:\w{1,12}ly|also|both|all|just|still)\s+){0,2}"
    r"(?:not|never|no|too|out|wrong|incorrect|false|untrue|ruled|excluded|eliminated|impossible|rejected"
    r"|unsupported|irrelevant|inside|within|in\s+the\s+middle|part\s+of)"
    r"|(?:can|could|would|should|do|does|did)\s*(?:not|nt)|would\s+(?:cut|split|interrupt)|cannot|cant|isnt|arent|wasnt|werent|wont"
    r"|fails?|contradicts?)\b|(?: |: ?)no(?= ?(?:[.,;\n]|\Z))"
)
_SAID = r"(?P<said>yes,?\s+partially|yes|no|partial(?:ly)?|partly|not\s+sure)"
# "No", "Final verdict: no" and "Answer is correct: no"; "Reference: no" is no verdict.
_VERDICT_LINE = re.compile(
    r"\W{0,9}(?:(?!(?:the\s+)?(?:correct|right)\s+answer)(?:(?:the|this|my|our|final|overall|so|is|are|it"
    r"|answers?|verdict|rating|judge?ment|decision|conclusion|evaluation|assessment|result|label|output"
    r"|response|correct(?:ness)?|agree\w{0,5}|match\w{0,3}|same|equivalent|starts?|begins|new|next|chapter"
    rf"|section)\b[ ,]{{0,2}}){{1,6}}[:=]\W{{0,5}})?{_SAID}\W{{0,9}}",
    re.IGNORECASE,
)
_VERDICT_SENTENCE = re.compile(
    r"(?:\A|[.!?]\s|\n)\W{0,9}(?:(?:so|thus|therefore|hence)\W{1,3})?(?:the|my)\s+(?:final\s+)?"
    rf"(?:answer|verdict|rating|judge?ment)\s+is\W{{1,5}}{_SAID}"
    r"(?=\W{0,3}(?:[.!;\n]|\Z)|,?\s(?:because|since|as)\b)",
    re.IGNORECASE,
)
_CHINESE_PAGE = re.compile(
    r"第\s?(?P<page>\d{1,9}(?:\s?,\s?\d{1,9}){0,20})\s?[页頁]|[页頁][码碼]?\s?:"
)
_CHINESE_NOT = re.compile("[不无無没沒]")
_CHINESE_AND = re.compile(r"(?<=[\s\d])\s?[和与與及]\s?(?=Page\b|\d)")

# No more of a sentence is looked at, so that a reply of matches alone takes time by its length.
_SENTENCE_CHARS = 300

# What forms are tried with: numbers of each length.
NUMBERS = (0, 1, 9, 10, 57, 100, 2748)


def settled(*readings: Iterable[T]) -> T | None:
    """The value of the first reading, from the strictest to the loosest, that finds any; None where
    it finds two that differ."""
    for reading in readings:
        if values := set(reading):
            return values.pop() if len(values) == 1 else None
    return None


def without_rejected(text: str, value: str) -> str:
    """The plain text with ~ for the values that it rejects, as in "not (A)" or "(A) is out"."""
    values = rf"(?:{value})(?:\s?(?:,\s?(?:and|or)|,|/|&|and|or|nor)\s?(?:{value})){{0,9}}"
    return re.sub(rf"(?i:{_NOT_THIS}){values}|{values}(?i:{_IS_NOT})", "~", text)


def verdicts_stated(text: str) -> list[str]:
    """The verdicts, in small letters, that a plain text states in a line of their own, maybe after
    a label, or as "the answer is no"."""
    lines = (_VERDICT_LINE.fullmatch(line) for line in text.split("\n"))
    found = [*filter(None, lines), *_VERDICT_SENTENCE.finditer(text)]
    return [" ".join(one["said"].lower().split()) for one in found]


def in_english_pages(text: str) -> str:
    """The text with pages named in Chinese (第3页和第5页) as `Page 3 and Page 5`; as it is where it
    has a Chinese negation, as which of them it is about cannot be told."""
    if _CHINESE_NOT.search(text):
        return text
    return _CHINESE_AND.sub(" and ", _CHINESE_PAGE.sub(_in_english, text))


def _in_english(page: re.Match[str]) -> str:
    return f" Page {page['page']} " if page["page"] else "Pages: "


def is_hedged(text: str, found: re.Match[str]) -> bool:
    """True if the clause up to the match weighs a value rather than states it."""
    return bool(_HEDGED.search(_CLAUSE_END.split(_before(text, found))[-1]))


def is_requested(text: str, page: re.Match[str]) -> bool:
    """True if the page is the object of a request, as in "I want to look up Page 7"."""
    return bool(_REQUESTED.search(_before(text, page)))


def is_declined(text: str, page: re.Match[str]) -> bool:
    """True if the sentence that names the page says that it is not wanted."""
    before, after = sentence_around(text, page)
    return bool(_DECLINED.search(before) or _DECLINED_AFTER.match(after))


def sentence_around(text: str, found: re.Match[str]) -> tuple[str, str]:
    """The parts of its sentence before a match and after it."""
    before = _SENTENCE_END.split(_before(text, found))[-1]
    after = _SENTENCE_END.split(text[found.end() : found.end() + _SENTENCE_CHARS])[0]
    return before, after


def _before(text: str, found: re.Match[str]) -> str:
    return text[max(0, found.start() - _SENTENCE_CHARS) : found.start()]


def filled(form: str, what: object) -> str:
    """A reply in a form. Other braces may stand in it, so it is none for `str.format`."""
    return form.replace("{}", str(what))


def one_of(form: str, values: Iterable[object], *others: str) -> Constraint:
    """One of the values in this form, or of the other replies."""
    return Constraint(choices=(*(filled(form, value) for value in values), *others))


def list_of(form: str, pages: Sequence[int], max_pages: int) -> Constraint:
    """At most `max_pages` of a run of page numbers without a gap, or none. One may come twice."""
    return Constraint(regex=matching(form, _list(pages, max_pages)))


def matching(form: str, value: str) -> str:
    """A regex of replies in this form, of the regex of their value."""
    before, after = (part.translate(_SPECIAL) for part in form.split("{}"))
    return f"{before}{value}{after}"


def _list(pages: Sequence[int], max_pages: int) -> str:
    if not pages:
        return ""
    page = f"({numbers(pages[0], pages[-1])})"
    more = f"(, {page}){{0,{max_pages - 1}}}" if max_pages > 1 else ""
    return f"({page}{more})?"


def numbers(first: int, last: int) -> str:
    """A regex of the numbers from `first` to `last`, without leading zeros; neither is negative.

    As many alternatives as twice the digits at most: 0 to 137 is
    `[0-9]|[1-9][0-9]|1[0-2][0-9]|13[0-7]`.
    """
    found: list[str] = []
    while first <= last:
        size = _block(first, last)
        before, digit = divmod(first // size, 10)
        most = min(9, digit + (last - first + 1) // size - 1)
        one = str(digit) if most == digit else f"[{digit}-{most}]"
        found.append(f"{before or ''}{one}" + "[0-9]" * (len(str(size)) - 1))
        first += (most - digit + 1) * size
    return "|".join(found)


def _block(first: int, last: int) -> int:
    """The largest power of ten such that so many numbers from `first` differ in last digits only;
    0 is alone, as it has no more digits."""
    size = 1
    while first and first % (10 * size) == 0 and first + 10 * size - 1 <= last:
        size *= 10
    return size
