"""Does the next page start a new chapter? (ReadAgent appendix H, page merging)"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pipeline.core.prompts import Constraint, Prompt
from pipeline.core.reply_forms import plain_text
from stages.prompts.parsing.replies import one_of, settled, verdicts_stated

StartsNew = Literal["yes", "no", "not sure"]
_REPLIES: Mapping[str, StartsNew] = {"yes": "yes", "no": "no", "not sure": "not sure"}
_VERDICT = re.compile(
    r"\A\W*(?:answer\s*:\W*)?(?P<unsure>not\s+(?:entirely\s+|quite\s+|completely\s+)?sure|unsure"
    r"|uncertain|im\s+not\s+sure|i\s+am\s+not\s+sure)?(?P<plain>yes|no)?\b",
    re.IGNORECASE,
)
_BOTH = re.compile(
    r"\A\W*(?:yes\W+(?:(?:and|or)\W*)?no|no\W+(?:(?:and|or)\W*)?yes)\b", re.IGNORECASE
)
_PAGE = (
    r"\W{0,9}(?:it|this|(?:the|this)\s+(?:(?:next|second|new|following)\s+)?"
    r"(?:page|passage|text))\s+"
)
_DIVISION = r"(?:chapter|section|book|part)\b"
_STARTS = re.compile(
    rf"{_PAGE}(?:\w{{1,12}}ly\s+)?(?P<not>(?:does\s*(?:not|nt)|is\s+not|isnt)\s+)?(?:does\s+)?"
    r"(?:\w{1,12}ly\s+)?(?:(?:seems?|appears?)\s+to\s+)?"
    rf"(?:(?:starts?|begins?|opens?)|(?:starting|beginning))\s+(?:(?:with\s+)?(?:a|the|another)\s+"
    rf"(?:new|next|different)\s+{_DIVISION}|an?(?:other)?\s+{_DIVISION}|the\s+chapter\b)"
    r"(?!\s+of\s+the\s+same\b|.*\b(?:but|if|though|although)\b)",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    rf"{_PAGE}(?:(?:just|simply|still|only)\s+)?(?:continues|goes\s+on\s+with|is\s+(?:still\s+)?"
    rf"(?:part\s+of|in|within))\s+(?:in\s+|with\s+)?the\s+(?:same|current|previous)\s+{_DIVISION}",
    re.IGNORECASE,
)
_NEW = re.compile(
    rf"\W{{0,9}}(?:a\s+new\s+{_DIVISION}\s+(?:starts|begins)|(?P<not>there\s+is\s+no\s+new\s+{_DIVISION}))",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_HEADING = re.compile(
    r"\A\s*(?:chapter|book|part|volume|section|act|scene|canto|letter|epilogue|prologue"
    r"|[ivxlc]+\.?\s*$|\d+\.?\s*$)",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True)
class StartsChapter(Prompt[StartsNew]):
    """Does `next_page` start a chapter, section or book that is not that of `page`?"""

    name: ClassVar[str] = "starts_chapter"
    max_reply_tokens: ClassVar[int] = 16
    version: ClassVar[int] = 1
    form: ClassVar[str | None] = "{}"
    assumed: ClassVar[str] = "no: pages are merged as long as two fit together"
    page: str
    next_page: str

    def read(self, reply: str, is_cut: bool) -> StartsNew | None:
        """The first word decides, else what a line or sentence states; "yes and no" is neither."""
        text = plain_text(reply)
        found = _VERDICT.match(text)
        if _BOTH.match(text):
            return None
        if found and found["unsure"]:
            return "not sure"
        if found and found["plain"]:
            return _REPLIES[found["plain"].lower()]
        stated = [_REPLIES[said] for said in verdicts_stated(text) if said in _REPLIES]
        in_words = [said for part in _SENTENCE.split(text) if (said := _in_words(part))]
        return settled([*stated, *in_words])

    def legal(self, form: str) -> Constraint:
        return one_of(form, _REPLIES)

    def extractive(self) -> str:
        """By the next page's first line: a heading starts something new."""
        return "yes" if _HEADING.match(self.next_page) else "no"

    def expected(self) -> str:
        return "no"

    @classmethod
    def samples(cls) -> tuple["StartsChapter", ...]:
        return (cls("The bell {{ rings }}.\n\n{% twice %} <3>", "CHAPTER {# II #}\n\nNobody."),)

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        return _REPLIES


def _in_words(sentence: str) -> StartsNew | None:
    """The reply in a sentence about the page: it starts a chapter, or goes on with one."""
    if starts := _STARTS.match(sentence) or _NEW.match(sentence):
        return "no" if starts["not"] else "yes"
    return "no" if _GOES_ON.match(sentence) else None
