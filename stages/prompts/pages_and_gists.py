"""Prompts for the end of a page and for its gist (ReadAgent section 3.1), each by itself or in the
conversation that has shown the page."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pipeline.core.prompts import Constraint, Prompt
from pipeline.core.reply_forms import plain_text
from stages.prompts.replies import (
    NUMBERS,
    is_hedged,
    one_of,
    settled,
    verdicts_stated,
    without_rejected,
)
from stages.text.excerpts import best_sentences, gist
from stages.text.ranking import terms
from stages.text.words import num_words

_BLOCK_TERMS = 100  # how much text before and after a label is compared
_TAG = re.compile(r"<\s*(\d{1,9})\s*>(?!\s*\?)")

_REJECTABLE = r"(?:(?i:label)\s+)?<\s?\d{1,9}\s?>|(?i:label)\s+\d{1,9}\b"

_OR = r"\bor\b(?:\s+(?:maybe|perhaps|possibly)\b)?"
_NO_OTHER = (  # two are no answer, nor is a question
    rf"(?!\s*(?:[/&,]|{_OR}|\band\b)\s*[<(\[{{]\s*\d|[ ]?<\s*\d|\s*(?:/|{_OR})\s*\d|\s*\?)"
)
# <57>, also in other brackets, or 57 that does not begin 57.5, 57th or 57-60. At most nine digits:
# int() must not fail.
_LABEL = (
    r"(?P<tag>[<(\[{]\s*)?(?P<label>\d{1,9})(?(tag)\s*(?:[>)\]}]|\Z)|(?!\.?\w|\s*[-–]\s*\d))"
    rf"{_NO_OTHER}"
)
_BREAK = r"(?:\b(?:break\s*+-?\s*+point|label)s?\b|[断斷][点點])"
_IS = r"\s*(?:is\b|would be\b|should be\b|:|=)[\s:]*(?:(?:label|after|at)\s+){0,3}"
_BREAK_POINTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:{_BREAK}|\banswer\b(?={_IS}[<(\[{{]?\s*\d+\s*[>)\]}}]?\s*[.!]?\s*(?:\n|\Z))){_IS}{_LABEL}",
        rf"\A[<(\[{{]\s*(?P<label>\d{{1,9}})\s*[>)\]}}]{_NO_OTHER}",
        r"\A(?P<label>\d{1,9})[.:]?\s*(?:\n|\Z)",
        rf"(?:{_BREAK}|\b(?:choose|pick|select|go\s+with)\s+(?:label\b)?)\s*{_LABEL}"
        r"|\b(?:so|thus|therefore|hence)[:,]?\s+(?:(?:it|is|at|after)\s+){0,3}<\s*(?P<then>\d{1,9})\s*>",
    )
)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A paragraph of a pagination window, and the label after it, if any."""

    text: str
    label: int | None


class PageEnd(Prompt[int]):
    """Base class of prompts for the end of the page that starts with the first of `paragraphs`. The
    value is one of the labels shown."""

    max_reply_tokens: ClassVar[int] = 128
    version: ClassVar[int] = 1
    form: ClassVar[str | None] = "Break point: <{}>"
    assumed: ClassVar[str] = "the label in the middle"
    paragraphs: tuple[Labelled, ...]  # a field of every subclass

    def labels(self) -> list[int]:
        return [part.label for part in self.paragraphs if part.label is not None]

    def read(self, reply: str, is_cut: bool) -> int | None:
        """The label chosen, as written; a cut reply counts, too."""
        return parse_break_point(reply, is_cut)

    def is_legal(self, value: int) -> bool:
        return value in self.labels()

    def legal(self, form: str) -> Constraint:
        return one_of(form, self.labels())

    def extractive(self) -> str:
        """The label whose text before and text after have least in common."""
        split = [terms(paragraph.text) for paragraph in self.paragraphs]
        cohesion: dict[int, float] = {}
        for place, paragraph in enumerate(self.paragraphs, start=1):
            after = [term for found in split[place:] for term in found][:_BLOCK_TERMS]
            before = [term for found in split[:place] for term in found][-_BLOCK_TERMS:]
            if paragraph.label is not None:
                # Without text after it there is nothing to compare: the window's end comes last.
                cohesion[paragraph.label] = _cosine(before, after) if after else math.inf
        if not cohesion:
            return "There is no label to break at."
        label = min(cohesion, key=lambda found: cohesion[found])
        return (
            f"Break point: <{label}>\n"
            "The words change most from the text before it to that after it."
        )

    def expected(self) -> str:
        """The label in the middle, and a reason."""
        labels = self.labels()
        return (
            f"Break point: <{labels[len(labels) // 2]}>\n"
            "Because the scene ends here and another one begins."
        )

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        return {str(number): number for number in NUMBERS}


@dataclass(frozen=True)
class BreakPoint(PageEnd):
    """Where to end the page that starts with the first paragraph? The value is a label shown."""

    name: ClassVar[str] = "break_point"
    preceding: str  # the text just before the window, for orientation; may be empty
    paragraphs: tuple[Labelled, ...]
    following: str = ""  # what is shown of the text after the window; may be empty

    @classmethod
    def samples(cls) -> tuple["BreakPoint", ...]:
        quiet = Labelled("The bell rings.", None)
        return (
            cls(
                "It was <4> a quiet day.", (quiet, Labelled("Noon.", 7101), Labelled("Dust.", 7102))
            ),
            cls("", (Labelled("The bell {{ rings }}.", None), Labelled("Noon.\n", 7101))),
            cls("", (quiet, Labelled("Noon.", 7101)), "Then {{ dusk }} <9> falls.\n..."),
        )


def parse_break_point(reply: str, is_cut: bool = False) -> int | None:
    """The label chosen (ReadAgent 3.1): `Break point: <57>`, `Label: <57>`, `<57>`, `57`.

    A statement takes precedence over a label at the very start, that over labels mentioned in
    passing, and last comes the only label in the reply. "The next label would be <60>" and "not
    <60>" state none. A cut reply must state a label or begin with it, as it may go on to weigh
    others.
    """
    text = without_rejected(plain_text(reply), _REJECTABLE)
    found = [list(pattern.finditer(text)) for pattern in _BREAK_POINTS]
    if is_cut:  # also within a number
        found = [[f for f in some if f.end() < len(text)] for some in found]
    stated = [[_named(f) for f in some if not is_hedged(text, f)] for some in found]
    if is_cut:
        return settled(*stated[:-1])
    named = [_named(f) for some in found for f in some]
    return settled(*stated, [*named, *(int(tag) for tag in _TAG.findall(text))])


def _named(found: re.Match[str]) -> int:
    return int(found["label"] or found["then"])


def _cosine(before: Sequence[str], after: Sequence[str]) -> float:
    left, right = Counter(before), Counter(after)
    product = sum(left[term] * right[term] for term in left)
    squares = sum(n * n for n in left.values()) * sum(n * n for n in right.values())
    return product / math.sqrt(squares) if squares else 0.0


@dataclass(frozen=True)
class NextBreakPoint(PageEnd):
    """Where to end the page that starts where the last one ended? The value is a label shown."""

    name: ClassVar[str] = "break_point_follow_up"
    follows: ClassVar[tuple[type[Prompt[Any]], ...]] = (BreakPoint,)
    after: PageEnd  # that found the end of the last page
    ended: int  # the label it ended at
    paragraphs: tuple[Labelled, ...]  # of the page's whole window
    num_shown: int  # of the first of these, which the conversation has shown
    following: str = ""  # what is shown of the text after the window; may be empty

    def earlier(self) -> tuple[Prompt[Any], str]:
        return self.after, str(self.ended)

    @classmethod
    def samples(cls) -> tuple["NextBreakPoint", ...]:
        rings, noon, dust = (
            Labelled("It rings.", 7100),
            Labelled("Noon.", 7101),
            Labelled("Dust.", 7102),
        )
        first = BreakPoint("", (Labelled("Dawn.", 7099), rings, noon))
        second = cls(first, 7099, (rings, noon, dust), num_shown=2)
        return (
            second,
            cls(second, 7100, (noon, dust), num_shown=2),
            cls(first, 7100, (noon, Labelled("{{ Dust }}", None), dust), 1, "Then <9> dusk.\n..."),
        )


NextBreakPoint.follows = (BreakPoint, NextBreakPoint)


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
    """Does `next_page` start a chapter, section or book that is not that of `page`? (Appendix H,
    page merging.)"""

    name: ClassVar[str] = "starts_chapter"
    max_reply_tokens: ClassVar[int] = 16
    version: ClassVar[int] = 1
    form: ClassVar[str | None] = "{}"
    assumed: ClassVar[str] = "no: pages are merged as long as two fit together"
    page: str
    next_page: str

    def read(self, reply: str, is_cut: bool) -> StartsNew | None:
        """The first word decides, else a line or sentence; "yes and no" is neither."""
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
        """Yes where the next page's first line is a heading."""
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
    """The verdict of a sentence that says that the page starts a chapter, or continues one."""
    if starts := _STARTS.match(sentence) or _NEW.match(sentence):
        return "no" if starts["not"] else "yes"
    return "no" if _GOES_ON.match(sentence) else None


_SHARE = 0.15  # of a page's words, as gists of the paper's and our own runs have


@dataclass(frozen=True)
class ShortenPage(Prompt[str]):
    """Shorten one page to its gist (ReadAgent section 3.1: "shorten", never "summarize"). The value
    is the gist, stripped."""

    name: ClassVar[str] = "gist"
    max_reply_tokens: ClassVar[int] = 512
    is_whole: ClassVar[bool] = True
    assumed: ClassVar[str] = f"{100 * _SHARE:.0f}% of the page"
    page: str

    def extractive(self) -> str:
        return gist(self.page)

    def expected(self) -> str:
        return self.page[: max(1, round(_SHARE * len(self.page)))]

    @classmethod
    def samples(cls) -> tuple["ShortenPage", ...]:
        return (cls("The bell {{ rings }}.\n\n{% twice %} <3>"),)


@dataclass(frozen=True)
class ShortenShownPage(Prompt[str]):
    """Shorten the page whose end the reply before has named, which that conversation has shown. The
    value is the gist, stripped."""

    name: ClassVar[str] = "gist_follow_up"
    follows: ClassVar[tuple[type[Prompt[Any]], ...]] = (BreakPoint, NextBreakPoint)
    max_reply_tokens: ClassVar[int] = 512
    is_whole: ClassVar[bool] = True
    assumed: ClassVar[str] = f"{100 * _SHARE:.0f}% of the page"
    after: PageEnd
    ended: int  # the label that the page ends at
    page: str  # as the conversation has shown it; for engines without a model

    def earlier(self) -> tuple[Prompt[Any], str]:
        return self.after, str(self.ended)

    def extractive(self) -> str:
        return gist(self.page)

    def expected(self) -> str:
        return self.page[: max(1, round(_SHARE * len(self.page)))]

    @classmethod
    def samples(cls) -> tuple["ShortenShownPage", ...]:
        window = BreakPoint(
            "", (Labelled("The bell {{ rings }}. {% twice %}", 7101), Labelled("Noon.", 7102))
        )
        return (cls(window, 7101, "The bell {{ rings }}. {% twice %}"),)

    def shown(self) -> Sequence[Any]:
        """All fields except the page, which the templates show in parts."""
        return (self.after, self.ended)


@dataclass(frozen=True)
class ShortenPageForTask(ShortenPage):
    """Shorten one page to what serves `task`, known beforehand (appendix E.1, conditional). The
    value is the gist, stripped."""

    name: ClassVar[str] = "gist_for_task"
    task: str = ""

    def extractive(self) -> str:
        words = max(1, round(_SHARE * num_words(self.page)))
        return best_sentences([self.page], self.task, words) or super().extractive()

    @classmethod
    def samples(cls) -> tuple["ShortenPageForTask", ...]:
        return (cls("The bell {{ rings }}.\n\n{% twice %} <3>", "Find {# who #} rang it."),)


@dataclass(frozen=True)
class ShortenGist(Prompt[str]):
    """Shorten a gist to at most `max_words` words (appendix E.2, iterative gisting). The value is
    the shorter gist, stripped."""

    name: ClassVar[str] = "regist"
    max_reply_tokens: ClassVar[int] = 512
    assumed: ClassVar[str] = "as many words as are asked for"
    gist: str
    max_words: int

    def extractive(self) -> str:
        most = max(1, 9 * self.max_words // 10)  # what it takes may be a tenth longer
        return best_sentences([self.gist], self.gist, most) or self.gist

    def expected(self) -> str:
        return " ".join(self.gist.split()[: self.max_words])

    @classmethod
    def samples(cls) -> tuple["ShortenGist", ...]:
        return (cls("The bell {{ rings }}. {% twice %} <3>", 2748),)
