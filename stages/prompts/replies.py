"""Read replies: negations, hedges and requests in words, lists with an item per line, JSON, and the
forms of constrained replies.

In a list of lines (clues, key points, sub-questions) the texts stay as written; the stage decides
how many count and which repeat another. The only JSON read there is a list of strings, `["a",
"b"]`, on one line or several, with escapes left as written; other JSON is read as lines.

Where a prompt asks for JSON, the reader accepts prose and code fences around it, line breaks within
strings and a comma after the last item, and no other departure from JSON.
"""

import json
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeVar

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


# Words around a value that reject it or leave it open, after apostrophes are removed: "I dont think
# the answer is (B)", "none of (A)", "if (B)"; "(B) is too broad", "B: wrong", "(B)?".
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

# Longer sentences are cut, so that a reply full of matches takes time linear in its length.
_SENTENCE_CHARS = 300

# Sample numbers of each length, to check forms with.
NUMBERS = (0, 1, 9, 10, 57, 100, 2748)


def settled(*readings: Iterable[T]) -> T | None:
    """The value of the first reading (strictest first) that finds any; None if it finds two."""
    for reading in readings:
        if values := set(reading):
            return values.pop() if len(values) == 1 else None
    return None


def without_rejected(text: str, value: str) -> str:
    """The plain text with ~ in place of values that it rejects, as in "not (A)" or "(A) is out"."""
    values = rf"(?:{value})(?:\s?(?:,\s?(?:and|or)|,|/|&|and|or|nor)\s?(?:{value})){{0,9}}"
    return re.sub(rf"(?i:{_NOT_THIS}){values}|{values}(?i:{_IS_NOT})", "~", text)


def verdicts_stated(text: str) -> list[str]:
    """Lower-case verdicts that a plain text states on a line of their own, with or without a label,
    or in a sentence such as "the answer is no"."""
    lines = (_VERDICT_LINE.fullmatch(line) for line in text.split("\n"))
    found = [*filter(None, lines), *_VERDICT_SENTENCE.finditer(text)]
    return [" ".join(one["said"].lower().split()) for one in found]


def in_english_pages(text: str) -> str:
    """The text with pages named in Chinese (第3页和第5页) as `Page 3 and Page 5`.

    A text with a Chinese negation is unchanged, as it is unclear which pages that is about.
    """
    if _CHINESE_NOT.search(text):
        return text
    named = _CHINESE_PAGE.sub(lambda m: f" Page {m['page']} " if m["page"] else "Pages: ", text)
    return _CHINESE_AND.sub(" and ", named)


def is_hedged(text: str, found: re.Match[str]) -> bool:
    """True if the clause before the match weighs a value rather than states it."""
    return bool(_HEDGED.search(_CLAUSE_END.split(_before(text, found))[-1]))


def is_requested(text: str, page: re.Match[str]) -> bool:
    """True if the page is the object of a request, as in "I want to look up Page 7"."""
    return bool(_REQUESTED.search(_before(text, page)))


def is_declined(text: str, page: re.Match[str]) -> bool:
    """True if the sentence that names the page says that it is not wanted."""
    before, after = sentence_around(text, page)
    return bool(_DECLINED.search(before) or _DECLINED_AFTER.match(after))


def sentence_around(text: str, found: re.Match[str]) -> tuple[str, str]:
    """The parts of the sentence before and after the match, each up to 300 characters."""
    before = _SENTENCE_END.split(_before(text, found))[-1]
    after = _SENTENCE_END.split(text[found.end() : found.end() + _SENTENCE_CHARS])[0]
    return before, after


def _before(text: str, found: re.Match[str]) -> str:
    return text[max(0, found.start() - _SENTENCE_CHARS) : found.start()]


def filled(form: str, what: object) -> str:
    """The form with its `{}` filled; not by `str.format`, as it may have other braces."""
    return form.replace("{}", str(what))


def one_of(form: str, values: Iterable[object], *others: str) -> Constraint:
    return Constraint(choices=(*(filled(form, value) for value in values), *others))


def list_of(form: str, pages: Sequence[int], max_pages: int) -> Constraint:
    """At most `max_pages` numbers of `pages`, which has no gaps; none and repeats are legal."""
    if not pages:
        return Constraint(regex=matching(form, ""))
    page = f"({numbers(pages[0], pages[-1])})"
    more = f"(, {page}){{0,{max_pages - 1}}}" if max_pages > 1 else ""
    return Constraint(regex=matching(form, f"({page}{more})?"))


def matching(form: str, value: str) -> str:
    """A regex of replies in this form; `value` is the regex of the value."""
    before, after = (part.translate(_SPECIAL) for part in form.split("{}"))
    return f"{before}{value}{after}"


def numbers(first: int, last: int) -> str:
    """A regex of the numbers from `first` to `last`, which are not negative, without leading zeros.

    It has at most twice as many alternatives as digits: 0 to 137 is
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
    """The largest power of ten such that the numbers of a block from `first` differ only in their
    last digits and end by `last`; 1 for 0."""
    size = 1
    while first and first % (10 * size) == 0 and first + 10 * size - 1 <= last:
        size *= 10
    return size


_LINE_END = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_FENCE = re.compile(r"(?:```|~~~)[ \t]*\w*")
_QUOTED_LIST = re.compile(r"\s*\[\s*(?=[\"'“])")
_NEXT_ITEM = re.compile(r"(?<=[\"'”])\s?,\s*(?=[\"'“])")
_HEADING = re.compile(r"#{1,6}[ \t]+|>[ \t]?")

# Bounded spaces: a line may consist of a million of them.
_NOUN = (
    r"(?:(?:surrogate|sub|search|text|key)[ \t-]?)?(?:clue|question|query|queries|span|point)s?"
    r"|(?:替代|代理|搜索|子)?(?:线索|線索|问题|問題|查询|查詢|要点|要點|片段)"
)
_NUMBER = r"[ \t]{0,2}[#＃]?[ \t]?(?:\d{1,3}|[一二三四五六七八九十]{1,3})"
_LABEL = rf"(?:{_NOUN})(?:{_NUMBER})?[ \t]{{0,2}}"
_MARKER = (
    r"[-–—*+](?:[ \t]+|\Z)|[•·●▪◦‣]|[\u2460-\u2473]"  # \u2460 is 1 in a circle
    r"|\d{1,3}[ \t]?(?:[.．](?!\d)|[)）、])|[(（\[]\d{1,3}[)）\]]"  # 3.5 is no marker
    r"|[一二三四五六七八九十]{1,3}[、．]|[(（][一二三四五六七八九十]{1,3}[)）]"
)
_MARK = re.compile(
    r"(?P<bold>\*{1,3}|_{1,3}|)"
    rf"(?:(?:{_MARKER})(?P=bold)|{_LABEL}(?:[:：](?P=bold)|(?P=bold)[ \t]?[:：])"
    rf"|(?:{_NOUN}){_NUMBER}(?:[.)]|[ \t][-–—])(?P=bold)(?=[ \t]))[ \t]*",
    re.IGNORECASE,
)
_LABEL_ALONE = re.compile(_LABEL, re.IGNORECASE)
_ROUNDS = 5  # marks around one another: `- **Clue 1:** "..."` takes two

_EMPHASIS = (("***",) * 2, ("**",) * 2, ("__",) * 2, ("*",) * 2, ("_",) * 2, ("`",) * 2)
_QUOTES = (
    *(('"', '"'), ("“", "”"), ("„", "“"), ("'", "'"), ("‘", "’"), ("«", "»")),
    *(("「", "」"), ("『", "』")),
)
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")
_END_SIGNS = (".", "!", "?", "…", "。", "！", "？")
_NO_ITEM = {"none", "n/a", "无", "無", "[]"}


def parse_lines(reply: str, is_cut: bool) -> tuple[str, ...] | None:
    """The lines of a reply without list markers, labels ("Clue 1:", "问题 2："), and quotes or
    emphasis around a whole line; blank lines and introductions ("Here they are:") are left out.

    () where the only line is `NONE`, which is legal; None where no line has a letter or digit. The
    last line of a cut reply counts only if it ends a sentence or is the only one.
    """
    lines = [line for line in _LINE_END.split(reply) if not _FENCE.fullmatch(line.strip())]
    found = [_text(item) for line in lines for item in _items_of_line(line)]
    if is_cut and any(found[:-1]) and not found[-1].endswith(_END_SIGNS):
        found.pop()
    kept = tuple(text for text in found if text and not _is_none(text))
    return kept if kept or any(found) else None


def _items_of_line(line: str) -> list[str]:
    """The items of a line that is a list of quoted texts, perhaps unclosed; else the line."""
    start = _QUOTED_LIST.match(line)
    inner = line[start.end() :].rstrip() if start else ""
    if not start or "]" in inner[:-1]:
        return [line]
    return _NEXT_ITEM.split(inner.removesuffix("]"))


def _text(line: str) -> str:
    """The text of an item, or `NONE`; "" for a line that is no item."""
    text, is_item = line.strip(), False
    for _ in range(_ROUNDS):
        plain = _unwrapped(_without(_HEADING, text), _EMPHASIS)
        rest = _unwrapped(_without(_MARK, plain), _QUOTES)
        is_item = is_item or rest != plain
        if rest == text:
            break
        text = rest
    is_introduction = text.endswith((":", "：")) and not is_item
    if is_introduction or _LABEL_ALONE.fullmatch(text.rstrip(":：")):
        return ""
    return text if _is_none(text) or any(char.isalnum() for char in text) else ""


def _without(start: re.Pattern[str], text: str) -> str:
    found = start.match(text)
    return text[found.end() :].strip() if found else text


def _unwrapped(text: str, pairs: tuple[tuple[str, ...], ...]) -> str:
    """The text without the first of the pairs that encloses all of it and occurs nowhere inside. A
    comma or full stop after it, and the bracket that closes a list, are removed, too."""
    ended = text.rstrip(",;.，；。、]")
    for opening, closing in pairs:
        inner = ended[len(opening) : -len(closing)]
        if ended.startswith(opening) and ended.endswith(closing) and inner.strip():
            words = _APOSTROPHE.sub("", inner) if opening in "'‘" else inner
            if opening not in words and closing not in words:
                return inner.strip()
    return text


def _is_none(text: str) -> bool:
    return text.lower().rstrip(".。!") in _NO_ITEM


# `[1]` is a footnote more often than a list; no list asked for holds numbers.
_JSON_LIST = re.compile(r"\[\s*(?=[\"{\[\]])")
_AFTER_ITEM = re.compile(r"\s*(?:,\s*(?P<end>\]?)|(?P<last>\])|\Z)")
_OBJECT = re.compile(r"\{[^{}]*\}")
_DECODER = json.JSONDecoder(strict=False)  # line breaks within strings


def list_items(reply: str, is_cut: bool) -> list[Any] | None:
    """The items of the JSON list in a reply; None without one, or with two that differ.

    Of a list that the end of the reply cuts off, the complete items count; None without any. Of a
    list with invalid JSON, the items before it count if the reply was cut (`is_cut`); else None.
    """
    read: list[Any] | None = None
    position = 0
    while found := _JSON_LIST.search(reply, position):
        items, position = _json_items(reply, found.end(), is_cut)
        if items is None or (read is not None and items != read):
            return None
        read = items
    return read


def json_objects(reply: str) -> tuple[list[dict[str, Any]], str]:
    """The innermost objects of a reply, and the reply without them."""
    found = [_decoded(text, 0)[0] for text in _OBJECT.findall(reply)]
    return [value for value in found if isinstance(value, dict)], _OBJECT.sub(" ", reply)


def _json_items(reply: str, start: int, is_cut: bool) -> tuple[list[Any] | None, int]:
    """The items from `start`, after the bracket, and the end of the list; None if unreadable."""
    items: list[Any] = []
    if reply.startswith("]", start):
        return items, start + 1
    while True:
        value, end = _decoded(reply, start)
        after = _AFTER_ITEM.match(reply, end) if end > start else None
        if after is None:
            is_end = is_cut or "]" not in reply[start:]
            return (items or None) if is_end else None, len(reply)
        items.append(value)
        if after["end"] or after["last"] or after.end() == len(reply):
            return items, after.end()
        start = after.end()


def _decoded(reply: str, start: int) -> tuple[Any, int]:
    """The JSON value at `start` and its end, which is `start` where there is none."""
    try:
        return _DECODER.raw_decode(reply, start)
    except (ValueError, RecursionError):  # also numbers of thousands of digits, and deep nesting
        return None, start
