"""Which pages to read again, all in one reply (ReadAgent section 3.2, ReadAgent-P)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.prompts import Constraint, Prompt
from pipeline.core.refusals import Refusals
from pipeline.core.reply_forms import plain_text
from stages.prompts.parsing.passages import (
    DATE,
    MEMORY,
    OPTIONS,
    QUESTION,
    Passage,
    gist_numbers,
    page_numbers,
    ranked_pages,
)
from stages.prompts.parsing.replies import (
    NUMBERS,
    in_english_pages,
    is_declined,
    is_requested,
    list_of,
    settled,
)

_SQUARE = str.maketrans("{}", "[]")
_EXPECTED_SHARE = 0.5  # of the pages that may be looked up at once
_ASKED = re.compile(r"\blook\s+up\s+(?:the\s+)?pages?\s*+:?\s*+\[([^\[\]]*)\]", re.IGNORECASE)
_JOINED = re.compile(r"\]\s*+(?:[,;&/]|,?\s*+and\b)?\s*+(?:pages?\s*+)?\[", re.IGNORECASE)
_LIST = re.compile(r"\[([^\[\]]*)\]")
_PLACEHOLDER = re.compile(r"\[(?!\s*none\s*\])[^\[\]\d]*[^\W\d][^\[\]\d]*\]", re.IGNORECASE)
_NUMBERS_ALONE = re.compile(r"[(<]?\d(?:[\d\s,;&()<>]|\band\b)*\.?", re.IGNORECASE)
_PAGE = r"\b(?:pages?\b|pgs?\b\.?|pp?\.)\s*+(?:numbers?\b|nos?\.)?\s*+:?\s*+"
_BETWEEN = (
    r"\s*+(?:,?\s*+(?:and\s+)?then\b|,\s*+(?:and\b)?|;|&|\band\b|\bto\b|\bthrough\b|[-–])\s*+"
    r"(?:pages?\s+)?"
)
_NUMBER = r"[(<]?\d+[)>]?"
_UNBRACKETED = re.compile(rf"{_PAGE}({_NUMBER}(?:{_BETWEEN}{_NUMBER})*)", re.IGNORECASE)
# A line or sentence of a list of pages, maybe with a reason; of the last two, numbers are alone.
# "Page 3: the letter" is an item; "Page 3: He dies." retells it, and "Page 3, 5" goes on.
_REASON = (
    r"(?:\s?[:;,(–—-](?!\s?\d)(?!\s(?!(?:to|for|because|since|as|it|this|may|might)\b)(?-i:[A-Z])[^.]*\.\Z)"
    r"|\s(?:to|for|because|since|as)\b).{0,300}"
)
_WANT = (
    r"(?:want|need|wish|choose|would|will|d|like|also|to|look\s(?:up|at)|re-?read|read|see|check"
    r"|consult|view|open|request|the)\s"
)
_BEFORE_ITEM = r"\W{0,5}(?:(?:\d{1,3}|[a-z])[.)]\s{1,3}(?=\D))?"
_ITEMS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_BEFORE_ITEM}(?:{_PAGE}[\[(<]?|\[(?:{_PAGE})?)(?P<page>\d{{1,9}})[\])>]?(?:{_REASON}|[.!]?)",
        rf"{_BEFORE_ITEM}i\s(?:{_WANT}){{1,7}}{_PAGE}[\[(<]?(?P<page>\d{{1,9}})[\])>]?(?:{_REASON}|[.!]?)",
        rf"[-•]\s?(?P<page>\d{{1,9}}){_REASON}",
        r"(?:[-•]\s?)?(?P<page>\d{1,9})[.,]?",
    )
)
_NAMED = re.compile(r"\d+[\])>]?")
_REFUSED = re.compile(
    r"\W{1,3}(?:(?:which|it|this|that)\s)?(?:is\s|s\s)?(?:not?|irrelevant|unnecessary|unneeded)\b",
    re.IGNORECASE,
)
_ITEM_END = re.compile(r"\n|(?<=[.!])\s+(?=I\s)|,?\s+and\s+(?=Page\s?\[)")


@dataclass(frozen=True)
class ParallelLookUp(Prompt[tuple[int, ...]]):
    """Which pages, at most `max_pages`, to read again? The value: page numbers, as asked for."""

    name: ClassVar[str] = "look_up_p"
    max_reply_tokens: ClassVar[int] = 128
    version: ClassVar[int] = 1
    form: ClassVar[str | None] = "I want to look up Page [{}]"
    assumed: ClassVar[str] = f"{100 * _EXPECTED_SHARE:.0f}% of the pages allowed"
    passages: tuple[Passage, ...]
    question: str
    options: tuple[str, ...]
    max_pages: int
    asked_at: str = ""  # the date of the question, where it has one

    def read(self, reply: str, is_cut: bool) -> tuple[int, ...] | None:
        """The pages asked for; of a cut reply only a closed list counts, as the rest may
        mislead."""
        return parse_page_list(reply) if is_cut else parse_pages(reply)

    def refusal(self, text: str, refusals: Refusals) -> tuple[int, ...] | None:
        """No look-up; None where pages are named, of which it is not clear which are wanted."""
        names_pages = "[" in text or _UNBRACKETED.search(text)
        return () if not names_pages and refusals.are_in(text) else None

    def is_legal(self, value: tuple[int, ...]) -> bool:
        return {*value} <= {*page_numbers(self.passages)}

    def legal(self, form: str) -> Constraint:
        return list_of(form, page_numbers(self.passages), self.max_pages)

    def extractive(self) -> str:
        query = "\n".join([self.question, *self.options])
        best = ranked_pages(self.passages, query)[: self.max_pages]
        return f"I want to look up Page {best} to answer the question."

    def expected(self) -> str:
        """Half of the pages there may be, spread over the document."""
        numbers = gist_numbers(self.passages)
        wanted = max(1, round(self.max_pages * _EXPECTED_SHARE))
        return _asking(numbers[:: max(1, len(numbers) // wanted)][:wanted])

    @classmethod
    def samples(cls) -> tuple["ParallelLookUp", ...]:
        return (
            cls(MEMORY, QUESTION, (), max_pages=1),
            cls(MEMORY, QUESTION, OPTIONS, max_pages=1),
            cls(MEMORY, QUESTION, OPTIONS, max_pages=8101),
            cls(MEMORY, QUESTION, (), max_pages=8101, asked_at=DATE),
        )

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        lists = [NUMBERS[:length] for length in range(len(NUMBERS) + 1)]
        return {", ".join(map(str, pages)): pages for pages in lists}


def _asking(numbers: list[int]) -> str:
    return f"I want to look up Page {numbers} to find what the question is about"


def parse_pages(reply: str) -> tuple[int, ...] | None:
    """The pages asked for, as written and in that order: `I want to look up Page [2, 7] to ...`.

    A list after "look up Page" goes before others, those before pages in a line each, pages named
    without brackets (what is asked for before what is mentioned) and numbers alone. (), no look-up,
    is `[]` and pages said not to be needed; a range, lists that differ and a reply that says none
    of these are None.
    """
    text = _PLACEHOLDER.sub("", _plain(reply))  # of a prompt, repeated: {what for}
    if (pages := _pages_by_line(text)) is not None:
        return pages
    if "[" in text:
        return parse_page_list(reply)
    if _NUMBERS_ALONE.fullmatch(text):
        return _numbers(text.rstrip("."))
    named = list(_UNBRACKETED.finditer(text))
    wanted = [page for page in named if not is_declined(text, page)]
    if wanted:
        asked = [_numbers(page[1]) for page in wanted if is_requested(text, page)]
        return settled(asked, [_numbers(page[1]) for page in wanted])
    return () if named else None


def parse_page_list(reply: str) -> tuple[int, ...] | None:
    """As `parse_pages`, but closed brackets alone count: the rest of a cut reply may mislead."""
    text = _JOINED.sub(", ", _plain(reply))
    asked, others = (
        [_numbers(listed[1]) for listed in some.finditer(text) if not is_declined(text, listed)]
        for some in (_ASKED, _LIST)
    )
    return settled(asked, [pages for pages in others if pages is not None])


def _plain(reply: str) -> str:
    return in_english_pages(plain_text(reply)).translate(_SQUARE)


def _pages_by_line(text: str) -> tuple[int, ...] | None:
    """The pages of a list with one a line, or a sentence each, but for those said not to be needed;
    an introduction may stand before it. None where a line is something else."""
    lines = [line.strip() for line in _ITEM_END.split(text) if line.strip()]
    if lines and lines[0].endswith(":"):
        lines = lines[1:]
    items = [next(filter(None, (item.fullmatch(line) for item in _ITEMS)), None) for line in lines]
    pages = []
    for line, item in zip(lines, items, strict=True):
        if not item:
            return None
        named = _NAMED.search(line.replace(":", " "), item.start("page"))
        is_refused = _REFUSED.match(line, item.end("page")) or not named
        if named and not is_refused and not is_declined(named.string, named):
            pages.append(int(item["page"]))
    is_list = len(items) > 1 and text.count("[") in (0, len(items))
    return tuple(dict.fromkeys(pages)) if is_list else None


def _numbers(listed: str) -> tuple[int, ...] | None:
    """The items of a list that are numbers, as the authors' notebook reads it: `1, two, 3` is 1 and
    3. None where there are items and none is a number."""
    words = re.sub(r"\b(?:pages?|pgs?\b\.?|pp?\b\.?|p(?=\d)|then\b)|[<>():]", " ", listed.lower())
    items = [item.strip() for item in re.split(r"[,;&]|\band\b", words)]
    numbers = [item for item in items if re.fullmatch(r"\d{1,9}(?:\s+\d{1,9})*", item)]
    if not numbers and listed.strip() and items != ["none"]:
        return None
    return tuple(int(number) for item in numbers for number in item.split())
