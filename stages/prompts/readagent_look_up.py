"""ReadAgent's prompts for the pages to read again (section 3.2): all in one reply (ReadAgent-P), or
one at a time until STOP (ReadAgent-S)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pipeline.core.prompts import Constraint, Refusals
from pipeline.core.reply_forms import plain_text
from stages.prompts.answer import DATE, MEMORY, OPTIONS, QUESTION, OfPassages, Passage
from stages.prompts.parsing import NUMBERS, SENTENCE_CHARS, matching, one_of, settled, text_before
from stages.text.ranking import rank, terms

# Words that decline or request a page, once apostrophes are gone.
_SENTENCE_END = re.compile(r"[.!?;:\n]")
_EXCEPT = r"\b(?:but|except|only|just|than|besides|apart|unless|so)\b"
_NOT = r"\b(?:not|dont|doesnt|didnt|wont|wouldnt|isnt|arent|neednt|no\s+longer|never)"
_HEDGE = (
    r"(?:(?:think|believe|feel|see|that|i|we|it|its|there|is|any|an?|the|to|be|really"
    r"|actually|currently|strictly|seem|even|pages?|further|more|additional)\s+)*"
)
_DECLINED = re.compile(
    rf"(?i)(?:{_NOT}|\bno)\s+{_HEDGE}(?:need|want|have\s+to|look\s+up|read)\b(?!\s+to\s+stop)"
    rf"(?!.*{_EXCEPT})|\b(?:neither|nor|not)\s*\Z"
)
_DECLINED_AFTER = re.compile(
    r"(?i)(?:(?!\b(?:pages?|since|because|as|but|to|if)\b)[^(,])*?"
    rf"(?:{_NOT}\s+{_HEDGE}(?:needed|necessary|required|help|helpful|relevant|useful)"
    r"|\bunnecessary|\bunneeded|\birrelevant)\b"
)
_REQUESTED = re.compile(  # before a page: "I want to look up Page 7"
    r"(?i)\b(?:look(?:ing)?\s+(?:up|at)|re-?read(?:ing)?|(?:want|need|wish|like|choose|pick|request)"
    r"(?:\s+to\s+(?:read|look|re-?read|see|check|consult|view|revisit|open|request)\b)?)"
    r"\s+(?:(?:the|again|only|just|at)\s+)*[\[<(]*\Z"
)
_CHINESE_PAGE = re.compile(
    r"第\s?(?P<page>\d{1,9}(?:\s?,\s?\d{1,9}){0,20})\s?[页頁]|[页頁][码碼]?\s?:"
)
_CHINESE_NOT = re.compile("[不无無没沒]")
_CHINESE_AND = re.compile(r"(?<=[\s\d])\s?[和与與及]\s?(?=Page\b|\d)")


def _plain(reply: str) -> str:
    """The plain text with pages named in Chinese (第3页和第5页) as `Page 3 and Page 5`, unless it
    has a Chinese negation: it is unclear which pages that is about."""
    text = plain_text(reply)
    if _CHINESE_NOT.search(text):
        return text
    named = _CHINESE_PAGE.sub(lambda m: f" Page {m['page']} " if m["page"] else "Pages: ", text)
    return _CHINESE_AND.sub(" and ", named)


def _is_requested(text: str, page: re.Match[str]) -> bool:
    return bool(_REQUESTED.search(text_before(text, page)))


def _is_declined(text: str, page: re.Match[str]) -> bool:
    """True if the sentence that names the page says that it is not wanted."""
    before, after = _sentence_around(text, page)
    return bool(_DECLINED.search(before) or _DECLINED_AFTER.match(after))


def _sentence_around(text: str, match: re.Match[str]) -> tuple[str, str]:
    before = _SENTENCE_END.split(text_before(text, match))[-1]
    return before, _SENTENCE_END.split(text[match.end() : match.end() + SENTENCE_CHARS])[0]


def _numbers_of(passages: Sequence[Passage], kinds: Sequence[str] = ("gist", "page")) -> list[int]:
    """The numbers of the pages that are shown so, in order."""
    return sorted(p.page_number for p in passages if p.page_number is not None and p.kind in kinds)


def _ranked_pages(passages: Sequence[Passage], query: str) -> list[int]:
    """Page numbers by BM25, best first."""
    numbered = [(p.page_number, p.text) for p in passages if p.page_number is not None]
    order = rank([text for _, text in numbered], query)
    return list(dict.fromkeys(numbered[index][0] for index in order))


_SQUARE = str.maketrans("{}", "[]")
_EXPECTED_SHARE = 0.5  # of the pages that may be looked up at once
_ASKED = re.compile(r"\blook\s+up\s+(?:the\s+)?pages?\s*+:?\s*+\[([^\[\]]*)\]", re.IGNORECASE)
_JOINED = re.compile(r"\]\s*+(?:[,;&/]|,?\s*+and\b)?\s*+(?:pages?\s*+)?\[", re.IGNORECASE)
_LIST = re.compile(r"\[([^\[\]]*)\]")
# Of a prompt that is repeated: {what for}.
_PLACEHOLDER = re.compile(r"\[(?!\s*none\s*\])[^\[\]\d]*[^\W\d][^\[\]\d]*\]", re.IGNORECASE)
_NUMBERS_ALONE = re.compile(r"[(<]?\d(?:[\d\s,;&()<>]|\band\b)*\.?", re.IGNORECASE)
_PAGE_WORD = r"\b(?:pages?\b|pgs?\b\.?|pp?\.)\s*+(?:numbers?\b|nos?\.)?\s*+:?\s*+"
_BETWEEN = (
    r"\s*+(?:,?\s*+(?:and\s+)?then\b|,\s*+(?:and\b)?|;|&|\band\b|\bto\b|\bthrough\b|[-–])\s*+"
    r"(?:pages?\s+)?"
)
_NUMBER = r"[(<]?\d+[)>]?"
_UNBRACKETED = re.compile(rf"{_PAGE_WORD}({_NUMBER}(?:{_BETWEEN}{_NUMBER})*)", re.IGNORECASE)
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
        rf"{_BEFORE_ITEM}(?:{_PAGE_WORD}[\[(<]?|\[(?:{_PAGE_WORD})?)(?P<page>\d{{1,9}})[\])>]?(?:{_REASON}|[.!]?)",
        rf"{_BEFORE_ITEM}i\s(?:{_WANT}){{1,7}}{_PAGE_WORD}[\[(<]?(?P<page>\d{{1,9}})[\])>]?(?:{_REASON}|[.!]?)",
        rf"[-•]\s?(?P<page>\d{{1,9}}){_REASON}",
        r"(?:[-•]\s?)?(?P<page>\d{1,9})[.,]?",
    )
)
_NAMED = re.compile(r"\d+[\])>]?")
_REFUSED = re.compile(
    r"(?i)\W{1,3}(?:(?:which|it|this|that)\s)?(?:is\s|s\s)?(?:not?|irrelevant|unnecessary|unneeded)\b"
)
_ITEM_END = re.compile(r"\n|(?<=[.!])\s+(?=I\s)|,?\s+and\s+(?=Page\s?\[)")


@dataclass(frozen=True)
class ParallelLookUp(OfPassages[tuple[int, ...]]):
    """Which pages, at most `max_pages`, to read again? The value: page numbers, as asked for. Asked
    by the stage `look_up` (kind parallel)."""

    name = "look_up_p"
    max_reply_tokens = 128
    version = 1
    form = "I want to look up Page [{}]"
    form_values: ClassVar[Mapping[str, Any]] = {
        "": (),
        "57": (57,),
        "0, 1, 9, 10, 57, 100, 2748": (*NUMBERS.values(),),
    }
    assumed = f"{100 * _EXPECTED_SHARE:.0f}% of the pages allowed"
    fills = (
        (MEMORY, QUESTION, (), 1),
        (MEMORY, QUESTION, OPTIONS, 1),
        (MEMORY, QUESTION, OPTIONS, 8101),
        (MEMORY, QUESTION, (), 8101, DATE),
    )
    max_pages: int
    asked_at: str = ""  # the date of the question, where it has one

    def read(self, reply: str, is_cut: bool) -> tuple[int, ...] | None:
        return parse_page_list(reply) if is_cut else parse_pages(reply)

    def refusal(self, text: str, refusals: Refusals) -> tuple[int, ...] | None:
        names_pages = "[" in text or _UNBRACKETED.search(text)  # unclear which are wanted
        return () if not names_pages and refusals.are_in(text) else None

    def is_legal(self, value: tuple[int, ...]) -> bool:
        return {*value} <= {*_numbers_of(self.passages)}

    def legal(self, form: str) -> Constraint:
        return list_of(form, _numbers_of(self.passages), self.max_pages)

    def extractive(self) -> str:
        best = _ranked_pages(self.passages, self.query())[: self.max_pages]
        return f"I want to look up Page {best} to answer the question."

    def expected(self) -> str:
        gists = _numbers_of(self.passages, ("gist",))
        wanted = max(1, round(self.max_pages * _EXPECTED_SHARE))
        pages = gists[:: max(1, len(gists) // wanted)][:wanted]
        return f"I want to look up Page {pages} to find what the question is about"


def list_of(form: str, pages: Sequence[int], max_pages: int) -> Constraint:
    """At most `max_pages` numbers of `pages`, which has no gaps; none and repeats are legal."""
    if not pages:
        return Constraint(regex=matching(form, ""))
    page = f"({numbers(pages[0], pages[-1])})"
    more = f"(, {page}){{0,{max_pages - 1}}}" if max_pages > 1 else ""
    return Constraint(regex=matching(form, f"({page}{more})?"))


def numbers(first: int, last: int) -> str:
    """A regex of the numbers from `first` to `last`, of at most twice as many alternatives as
    digits: 0 to 137 is `[0-9]|[1-9][0-9]|1[0-2][0-9]|13[0-7]`."""
    alternatives: list[str] = []
    while first <= last:
        size = 1  # of a block whose numbers, from `first` on, differ only in their last digits
        while first and first % (10 * size) == 0 and first + 10 * size - 1 <= last:
            size *= 10
        before, digit = divmod(first // size, 10)
        most = min(9, digit + (last - first + 1) // size - 1)
        digits = str(digit) if most == digit else f"[{digit}-{most}]"
        alternatives.append(f"{before or ''}{digits}" + "[0-9]" * (len(str(size)) - 1))
        first += (most - digit + 1) * size
    return "|".join(alternatives)


def parse_pages(reply: str) -> tuple[int, ...] | None:
    """The page numbers asked for, as written and in that order: `I want to look up Page [2, 7]`.

    Precedence: pages one to a line, a list after "look up Page", any other list, numbers alone,
    pages named without brackets (requested before mentioned). () where all pages are said not to
    be needed. None for a range, for lists that differ, and for any other reply.
    """
    text = _PLACEHOLDER.sub("", _plain(reply).translate(_SQUARE))
    if (pages := _pages_by_line(text)) is not None:
        return pages
    if "[" in text:
        return parse_page_list(reply)
    if _NUMBERS_ALONE.fullmatch(text):
        return _numbers(text.rstrip("."))
    named = list(_UNBRACKETED.finditer(text))
    wanted = [page for page in named if not _is_declined(text, page)]
    if wanted:
        requested = [_numbers(page[1]) for page in wanted if _is_requested(text, page)]
        return settled(requested, [_numbers(page[1]) for page in wanted])
    return () if named else None


def parse_page_list(reply: str) -> tuple[int, ...] | None:
    """As `parse_pages`, but only of closed brackets: the rest of a cut reply may mislead."""
    text = _JOINED.sub(", ", _plain(reply).translate(_SQUARE))
    requested, listed = (
        [_numbers(pages[1]) for pages in some.finditer(text) if not _is_declined(text, pages)]
        for some in (_ASKED, _LIST)
    )
    return settled(requested, [pages for pages in listed if pages is not None])


def _pages_by_line(text: str) -> tuple[int, ...] | None:
    """The pages of a list with one to a line or sentence, perhaps after an introduction, without
    those said not to be needed. None where a line is something else."""
    lines = [line.strip() for line in _ITEM_END.split(text) if line.strip()]
    if lines and lines[0].endswith(":"):
        lines = lines[1:]
    if len(lines) < 2 or text.count("[") not in (0, len(lines)):
        return None
    pages = []
    for line in lines:
        item = next(filter(None, (pattern.fullmatch(line) for pattern in _ITEMS)), None)
        if not item:
            return None
        named = _NAMED.search(line.replace(":", " "), item.start("page"))
        is_refused = _REFUSED.match(line, item.end("page")) or not named
        if named and not is_refused and not _is_declined(named.string, named):
            pages.append(int(item["page"]))
    return tuple(dict.fromkeys(pages))


def _numbers(listed: str) -> tuple[int, ...] | None:
    """The numbers among the items of a list, as in the authors' notebook: `1, two, 3` gives 1 and
    3. None where there are items and none is a number."""
    words = re.sub(r"\b(?:pages?|pgs?\b\.?|pp?\b\.?|p(?=\d)|then\b)|[<>():]", " ", listed.lower())
    items = [item.strip() for item in re.split(r"[,;&]|\band\b", words)]
    numbers = [item for item in items if re.fullmatch(r"\d{1,9}(?:\s+\d{1,9})*", item)]
    if not numbers and listed.strip() and items != ["none"]:
        return None
    return tuple(int(number) for item in numbers for number in item.split())


STOP = "STOP"
_Turn = int | Literal["stop"]
_EXPECTED_TURNS = 3  # before a look-up stops
_PAGE = re.compile(
    r"\b(?:pages?|pg\b\.?|p\.)(?:\s+(?:number\b|no\b\.?))?\s*+(?:[:=\[<({]\s?){0,3}+"
    r"(?P<page>\d{1,9})(?!\d)",
    re.IGNORECASE,
)
_OPENING = re.compile(rf"\W*{_PAGE.pattern}[\])>]?\s*(?:[,(]|(?:to|for|as|because|since)\b)", re.I)
# In small letters "stop" is a word like any other, unless it is a sentence or opens a line.
_SAID_STOP = re.compile(
    r"(?:\A|[.!?:\n])[\s\[<(]{0,20}(?i:stop)(?=[\s\])>]{0,20}(?:[.!\n]|\Z))"
    r"|(?:\A|\n)\W{0,9}STOP(?=\s?[-–—:;(])"
    r"|\b(?i:i\s+(?:want|would\s+like)\s+to\s+stop)\b"
)
_STOP = re.compile(r"\bSTOP\b|^[ \t]*(?i:stop)\b(?!\W{1,3}no\b)", re.MULTILINE)
# Words around a STOP that make it conditional, or negate it.
_CONDITION = re.compile(
    r"(?i)\A\W{0,9}(?:if|once|when|as\s+soon\s+as|unless)\b|\bor\s+(?:(?:else|to|just|i)\s+)?\W{0,5}\Z"
    r"|\b(?:not|dont|cannot|cant|never|wont)\s+(?:yet\s+)?(?:(?:want|need|have|wish|ready)\s+to\s+)?\Z"
)
_CONDITION_AFTER = re.compile(
    r"[\s\])>]{0,9}(?:if|once|when|as\s+soon\s+as|unless|after|until)\b", re.IGNORECASE
)
_PAGE_CONDITION = re.compile(r"(?i)\A\W{0,9}(?:if|once|when|after|unless|before)\b[^,]*\Z")
_ANOTHER = re.compile(r"[\])>}]?\s{0,3}(?:,|&|/|and\b|or\b)\s{0,3}\d")
_OR_STOP = re.compile(rf"{_PAGE.pattern}[\])>}}]?\W{{0,3}}or\s+\W?STOP\b", re.IGNORECASE)
_ONE_NUMBER = re.compile(
    r"(?i:(?:final\s+)?answer\s?[:=]\s?)?[\[<({]?\s*(?P<page>\d{1,9})\s*[\])>}]?\.?"
)


@dataclass(frozen=True)
class SequentialLookUp(OfPassages[_Turn]):
    """Which single page to read again, or STOP? The value is a page number or "stop". Asked by the
    stage `look_up` (kind sequential)."""

    name = "look_up_s"
    max_reply_tokens = 128
    version = 1
    form = "Page {}"
    form_values = NUMBERS
    others = (STOP,)
    assumed = f"STOP after {_EXPECTED_TURNS} pages"
    fills = (
        (MEMORY, QUESTION, (), (), ()),
        (MEMORY, QUESTION, OPTIONS, (), ()),
        (MEMORY, QUESTION, OPTIONS, (6101, 6104), (8102, 8103)),
        (MEMORY, QUESTION, (), (6101,), (), "The sexton {{ rang }} <2>."),
        (MEMORY, QUESTION, (), (6101,), (8102,), "", DATE),
        (MEMORY, QUESTION, (), (), (), "", "", True),
    )
    pages_read: tuple[int, ...]  # page numbers, in the order they were asked for
    refused: tuple[int, ...]  # page numbers just asked for in vain: read already or not there
    previous_answer: str = ""  # what was answered from the pages read so far, where families ask
    asked_at: str = ""  # the date of the question, where it has one
    last_was_unread: bool = False  # the last reply to this very question

    def read(self, reply: str, is_cut: bool) -> _Turn | None:
        """The page number asked for, or "stop": `Page 3`, `I want to look up Page [3]`, `STOP`.

        A request ("look up Page 3", a sentence STOP) takes precedence over a page that opens the
        reply; pages mentioned in passing come last, and do not count in a cut reply. Pages said
        not to be needed and a conditional STOP never count. None where two differ.
        """
        text = _plain(reply)
        if _OR_STOP.search(text):
            return None

        def unless_conditional(stop: re.Match[str]) -> str:
            before, after = _sentence_around(text, stop)
            is_asked = text.startswith("?", stop.end())
            is_conditional = is_asked or _CONDITION.search(before) or _CONDITION_AFTER.match(after)
            return "~" * len(stop[0]) if is_conditional else stop[0]

        text = _STOP.sub(unless_conditional, text)
        pages = [
            page
            for page in _PAGE.finditer(text)
            if not _ANOTHER.match(text, page.end())  # no other number is named with the page
            and not _PAGE_CONDITION.match(_sentence_around(text, page)[0])
            and not _is_declined(text, page)
            and not (is_cut and page.end() == len(text))  # it may be cut within its number
        ]
        stated: list[_Turn] = [int(page["page"]) for page in pages if _is_requested(text, page)]
        stated += ["stop"] * bool(_SAID_STOP.search(text))
        opening = _OPENING.match(text)
        is_first = opening and pages and opening["page"] == pages[0]["page"]
        opened = [int(opening["page"])] if opening and is_first else []
        named: list[_Turn] = [] if is_cut else [int(page["page"]) for page in pages]
        named += ["stop"] * bool(not is_cut and _STOP.search(text))
        alone = _ONE_NUMBER.fullmatch(text)
        return settled(stated, opened, named, [int(alone["page"])] if alone else [])

    def _left(self, numbers: Sequence[int]) -> list[int]:
        return [n for n in numbers if n not in {*self.pages_read, *self.refused}]

    def is_legal(self, value: _Turn) -> bool:
        return value == "stop" or value in self._left(_numbers_of(self.passages))

    def legal(self, form: str) -> Constraint:
        return one_of(form, self._left(_numbers_of(self.passages)), *self.others)

    def extractive(self) -> str:
        wanted = set(terms(self.query()))
        matching = {p.page_number for p in self.passages if wanted & set(terms(p.text))}
        left = self._left(_ranked_pages(self.passages, self.query()))
        best = next((page for page in left if page in matching), None)
        return STOP if best is None else f"Page {best}"

    def expected(self) -> str:
        left = self._left(_numbers_of(self.passages, ("gist",)))
        is_over = len(self.pages_read) >= _EXPECTED_TURNS or not left
        return STOP if is_over else f"Page {left[len(left) // 2]}"
