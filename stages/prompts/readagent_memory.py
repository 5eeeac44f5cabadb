"""ReadAgent's prompts for its memory (section 3.1): where to end a page, and its gist, each by
itself or in the conversation that has shown the page; whether a chapter begins (appendix H)."""

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from pipeline.core.prompts import Constraint, Prompt
from pipeline.core.reply_forms import plain_text
from stages.prompts import parsing
from stages.text.excerpts import best_sentences, gist
from stages.text.ranking import terms
from stages.text.words import num_words


@dataclass(frozen=True, slots=True)
class Labeled:
    """A paragraph of a pagination window, and the label after it, if any."""

    text: str
    label: int | None


# Samples.
_TEXT, _SHOWN = "The bell {{ rings }}.\n\n{% twice %} <3>", "The bell {{ rings }}. {% twice %}"
_RINGS, _NOON = Labeled("The bell rings.", None), Labeled("Noon.", 7101)
_GIST_SHARE = 0.15  # of a page's words, as gists of the paper's and our own runs have
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


def _label(match: re.Match[str]) -> int:
    return int(match["label"] or match["then"])


class PageEnd(parsing.Filled[int]):
    """Base class of prompts for the end of the page that starts with the first of `paragraphs`. The
    value is one of the labels shown."""

    max_reply_tokens = 128
    version = 1
    form = "Break point: <{}>"
    form_values = parsing.NUMBERS
    assumed = "the label in the middle"
    paragraphs: tuple[Labeled, ...]  # a field of every subclass

    def labels(self) -> list[int]:
        return [part.label for part in self.paragraphs if part.label is not None]

    def read(self, reply: str, is_cut: bool) -> int | None:
        """The label chosen (ReadAgent 3.1): `Break point: <57>`, `Label: <57>`, `<57>`, `57`.

        A statement takes precedence over a label at the very start, that over labels mentioned in
        passing, and last comes the only label in the reply. "The next label would be <60>" and
        "not <60>" state none. A cut reply must state a label or begin with it, as it may go on to
        weigh others.
        """
        text = parsing.without_rejected(plain_text(reply), _REJECTABLE)
        matches = [list(pattern.finditer(text)) for pattern in _BREAK_POINTS]
        if is_cut:  # also within a number
            matches = [[m for m in some if m.end() < len(text)] for some in matches]
        stated = [[_label(m) for m in some if not parsing.is_hedged(text, m)] for some in matches]
        if is_cut:
            return parsing.settled(*stated[:-1])
        mentioned = [_label(m) for some in matches for m in some]
        return parsing.settled(*stated, [*mentioned, *(int(tag) for tag in _TAG.findall(text))])

    def is_legal(self, value: int) -> bool:
        return value in self.labels()

    def legal(self, form: str) -> Constraint:
        return parsing.one_of(form, self.labels())

    def extractive(self) -> str:
        """The label whose text before and after have least in common, by the cosine of terms."""
        split = [terms(paragraph.text) for paragraph in self.paragraphs]
        cohesion: dict[int, float] = {}
        for end, paragraph in enumerate(self.paragraphs, start=1):
            if paragraph.label is None:
                continue
            before = Counter([term for part in split[:end] for term in part][-_BLOCK_TERMS:])
            after = Counter([term for part in split[end:] for term in part][:_BLOCK_TERMS])
            product = sum(before[term] * after[term] for term in before)
            squares = sum(n * n for n in before.values()) * sum(n * n for n in after.values())
            similarity = product / math.sqrt(squares) if squares else 0.0
            # Without text after it there is nothing to compare: the window's end comes last.
            cohesion[paragraph.label] = similarity if after else math.inf
        label = min(cohesion, key=lambda label: cohesion[label])
        reason = "The words change most from the text before it to that after it."
        return f"Break point: <{label}>\n{reason}"

    def expected(self) -> str:
        labels = self.labels()
        reason = "Because the scene ends here and another one begins."
        return f"Break point: <{labels[len(labels) // 2]}>\n{reason}"


@dataclass(frozen=True)
class BreakPoint(PageEnd):
    """Where to end the page that starts with the first paragraph? The value is a label shown. Asked
    by the stages `paginate` (kinds model and conversation)."""

    name = "break_point"
    fills = (
        ("It was <4> a quiet day.", (_RINGS, _NOON, Labeled("Dust.", 7102))),
        ("", (Labeled("The bell {{ rings }}.", None), Labeled("Noon.\n", 7101))),
        ("", (_RINGS, _NOON), "Then {{ dusk }} <9> falls.\n..."),
    )
    preceding: str  # the text just before the window, for orientation; may be empty
    paragraphs: tuple[Labeled, ...]
    following: str = ""  # what is shown of the text after the window; may be empty


@dataclass(frozen=True)
class NextBreakPoint(PageEnd):
    """Where to end the page that starts where the last one ended? The value is a label shown. Asked
    by the stage `paginate` (kind conversation)."""

    name = "break_point_follow_up"
    follows: ClassVar[tuple[type[Prompt[Any]], ...]] = (BreakPoint,)
    after: PageEnd  # the prompt whose reply ended the last page
    ended: int  # the label it ended at
    paragraphs: tuple[Labeled, ...]  # of the page's whole window
    num_shown: int  # of the first of these, which the conversation has shown
    following: str = ""  # what is shown of the text after the window; may be empty

    def earlier(self) -> tuple[Prompt[Any], str]:
        return self.after, str(self.ended)

    @classmethod
    def samples(cls) -> tuple[Self, ...]:
        texts = {7099: "Dawn.", 7100: "It rings.", 7101: "Noon.", 7102: "Dust."}
        dawn, rings, noon, dust = (Labeled(text, label) for label, text in texts.items())
        first = BreakPoint("", (dawn, rings, noon))
        second = cls(first, 7099, (rings, noon, dust), num_shown=2)
        return (
            second,
            cls(second, 7100, (noon, dust), num_shown=2),
            cls(first, 7100, (noon, Labeled("{{ Dust }}", None), dust), 1, "Then <9> dusk.\n..."),
        )


NextBreakPoint.follows = (BreakPoint, NextBreakPoint)


_StartsNew = Literal["yes", "no", "not sure"]
_UNSURE = re.compile(
    r"(?i)\A\W*(?:answer\s*:\W*)?(?:(?:im\s+|i\s+am\s+)?not\s+(?:(?:entirely|quite|completely)\s+)?sure"
    r"|unsure|uncertain)\b"
)
_VERDICT = re.compile(r"(?i)\A\W*(?:answer\s*:\W*)?(yes|no)\b")
_BOTH = re.compile(r"(?i)\A\W*(?:yes\W+(?:(?:and|or)\W*)?no|no\W+(?:(?:and|or)\W*)?yes)\b")
_PAGE = r"(?:it|this|(?:the|this)\s+(?:(?:next|second|new|following)\s+)?(?:page|passage|text))\s+"
_DIVISION = r"(?:chapter|section|book|part)\b"
_STARTS = re.compile(  # a named group where the sentence says that none starts
    rf"(?i)\W{{0,9}}(?:{_PAGE}(?:\w{{1,12}}ly\s+)?(?P<not>(?:does\s*(?:not|nt)|is\s+not|isnt)\s+)?"
    r"(?:does\s+)?(?:\w{1,12}ly\s+)?(?:(?:seems?|appears?)\s+to\s+)?"
    rf"(?:(?:starts?|begins?|opens?)|(?:starting|beginning))\s+(?:(?:with\s+)?(?:a|the|another)\s+"
    rf"(?:new|next|different)\s+{_DIVISION}|an?(?:other)?\s+{_DIVISION}|the\s+chapter\b)"
    r"(?!\s+of\s+the\s+same\b|.*\b(?:but|if|though|although)\b)"
    rf"|{_PAGE}(?P<on>(?:(?:just|simply|still|only)\s+)?(?:continues|goes\s+on\s+with|is\s+(?:still\s+)?"
    rf"(?:part\s+of|in|within))\s+(?:in\s+|with\s+)?the\s+(?:same|current|previous)\s+{_DIVISION})"
    rf"|a\s+new\s+{_DIVISION}\s+(?:starts|begins)|(?P<none>there\s+is\s+no\s+new\s+{_DIVISION}))"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_HEADING = re.compile(
    r"(?im)\A\s*(?:chapter|book|part|volume|section|act|scene|canto|letter|epilogue|prologue"
    r"|[ivxlc]+\.?\s*$|\d+\.?\s*$)"
)


@dataclass(frozen=True)
class StartsChapter(parsing.OneOf[_StartsNew]):
    """Does `next_page` start a chapter, section or book that is not that of `page`? Appendix H,
    page merging. Asked by the stage `paginate` (kind merged)."""

    name = "starts_chapter"
    max_reply_tokens = 16
    assumed = "no: pages are merged as long as two fit together"
    form_values: ClassVar[Mapping[str, Any]] = {"yes": "yes", "no": "no", "not sure": "not sure"}
    fills = ((_TEXT, "CHAPTER {# II #}\n\nNobody."),)
    page: str
    next_page: str

    def read(self, reply: str, is_cut: bool) -> _StartsNew | None:
        """The first word decides, else a line, or a sentence that says whether the page starts a
        chapter; "yes and no" is neither."""
        text = plain_text(reply)
        if _BOTH.match(text):
            return None
        if _UNSURE.match(text):
            return "not sure"
        if verdict := _VERDICT.match(text):
            return "yes" if verdict[1].lower() == "yes" else "no"
        stated = [self.form_values.get(said) for said in parsing.verdicts_stated(text)]
        for starts in filter(None, map(_STARTS.match, _SENTENCE.split(text))):
            stated.append("no" if starts.lastgroup else "yes")
        return parsing.settled(filter(None, stated))

    def extractive(self) -> str:
        return "yes" if _HEADING.match(self.next_page) else "no"

    def expected(self) -> str:
        return "no"


@dataclass(frozen=True)
class PageGist(parsing.Filled[str]):
    """Shorten one page to its gist (ReadAgent section 3.1: "shorten", never "summarize"). Asked by
    the stages `gist`, also of kinds follow_up and fitted."""

    name = "gist"
    max_reply_tokens = 512
    is_whole = True
    assumed = f"{100 * _GIST_SHARE:.0f}% of the page"
    fills: ClassVar[parsing.Fills] = ((_TEXT,),)
    page: str

    def extractive(self) -> str:
        return gist(self.page)

    def expected(self) -> str:
        return self.page[: max(1, round(_GIST_SHARE * len(self.page)))]


@dataclass(frozen=True)
class ShownPageGist(PageGist):
    """Shorten the page whose end the reply before has named, which that conversation has shown.
    Asked by the stage `gist` (kind follow_up)."""

    name = "gist_follow_up"
    follows: ClassVar[tuple[type[Prompt[Any]], ...]] = (BreakPoint, NextBreakPoint)
    fills = ((_SHOWN, BreakPoint("", (Labeled(_SHOWN, 7101), Labeled("Noon.", 7102))), 7101),)
    after: PageEnd
    ended: int  # the label that the page ends at

    def earlier(self) -> tuple[Prompt[Any], str]:
        return self.after, str(self.ended)


@dataclass(frozen=True)
class PageGistForTask(PageGist):
    """Shorten one page to what serves `task`, known beforehand (appendix E.1, conditional). Asked
    by the stage `gist` (kind conditional)."""

    name = "gist_for_task"
    fills = ((_TEXT, "Find {# who #} rang it."),)
    task: str = ""

    def extractive(self) -> str:
        words = max(1, round(_GIST_SHARE * num_words(self.page)))
        return best_sentences([self.page], self.task, words) or super().extractive()


@dataclass(frozen=True)
class ShorterGist(parsing.Filled[str]):
    """Shorten a gist to at most `max_words` words (appendix E.2, iterative gisting). Asked by the
    stage `gist` (kind fitted)."""

    name = "regist"
    max_reply_tokens = 512
    assumed = "as many words as are asked for"
    fills = (("The bell {{ rings }}. {% twice %} <3>", 2748),)
    gist: str
    max_words: int

    def extractive(self) -> str:
        most = max(1, 9 * self.max_words // 10)  # what it takes may be a tenth longer
        return best_sentences([self.gist], self.gist, most) or self.gist

    def expected(self) -> str:
        return " ".join(self.gist.split()[: self.max_words])
