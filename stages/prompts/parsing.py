"""What parsers of replies share: words that reject or hedge a value, verdicts, lists with an item
per line, JSON; and the forms of constrained replies."""

import json
import re
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar, Self, TypeVar

from pipeline.core.prompts import Constraint, Prompt
from pipeline.core.reply_forms import without_half_pairs

T = TypeVar("T", bound=Hashable)
V = TypeVar("V")
Fills = tuple[tuple[Any, ...], ...]

_CLAUSE_END = re.compile(r"[.!?;:,\n]")
_HEDGED = re.compile(
    r"(?i)\b(?:although|though|while|whereas|if|might|may|could|first|thought|next|second|another|other"
    r"|alternative(?:ly)?|instead|rather|than|not|dont|doesnt|cannot|cant|wouldnt|nobody|none"
    r"|seems?|tempting|previous(?:ly)?|earlier)\b"
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
    r"(?i)\W{0,9}(?:(?!(?:the\s+)?(?:correct|right)\s+answer)(?:(?:the|this|my|our|final|overall|so|is|are|it"
    r"|answers?|verdict|rating|judge?ment|decision|conclusion|evaluation|assessment|result|label|output"
    r"|response|correct(?:ness)?|agree\w{0,5}|match\w{0,3}|same|equivalent|starts?|begins|new|next|chapter"
    rf"|section)\b[ ,]{{0,2}}){{1,6}}[:=]\W{{0,5}})?{_SAID}\W{{0,9}}"
)
_VERDICT_SENTENCE = re.compile(
    r"(?i)(?:\A|[.!?]\s|\n)\W{0,9}(?:(?:so|thus|therefore|hence)\W{1,3})?(?:the|my)\s+(?:final\s+)?"
    rf"(?:answer|verdict|rating|judge?ment)\s+is\W{{1,5}}{_SAID}"
    r"(?=\W{0,3}(?:[.!;\n]|\Z)|,?\s(?:because|since|as)\b)"
)
# Longer sentences are cut: a reply full of matches must take time linear in its length.
SENTENCE_CHARS = 300


def settled(*readings: Iterable[T]) -> T | None:
    """The value of the first reading (strictest first) that is not empty; None if that one has two
    different values."""
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
    statements = [*filter(None, lines), *_VERDICT_SENTENCE.finditer(text)]
    return [" ".join(statement["said"].lower().split()) for statement in statements]


def is_hedged(text: str, value: re.Match[str]) -> bool:
    """True if the clause before the match weighs a value rather than states it."""
    return bool(_HEDGED.search(_CLAUSE_END.split(text_before(text, value))[-1]))


def text_before(text: str, match: re.Match[str]) -> str:
    """The text before the match, cut to the length of a sentence."""
    return text[max(0, match.start() - SENTENCE_CHARS) : match.start()]


_REGEX_SIGNS = {ord(sign): f"\\{sign}" for sign in "\\^$.*+?()[]{}|"}
NUMBERS = {str(number): number for number in (0, 1, 9, 10, 57, 100, 2748)}  # of each length


def one_of(form: str, values: Iterable[object], *others: str) -> Constraint:
    """The form filled with each value (not by `str.format`: it may have other braces), and the
    others as they are."""
    return Constraint(choices=(*(form.replace("{}", str(value)) for value in values), *others))


def matching(form: str, value: str) -> str:
    """A regex of replies in this form; `value` is the regex of the value."""
    before, after = (part.translate(_REGEX_SIGNS) for part in form.split("{}"))
    return f"{before}{value}{after}"


class Filled(Prompt[V]):
    """Base class of prompts whose samples are made of these tuples of fields."""

    fills: ClassVar[Fills]

    @classmethod
    def samples(cls) -> tuple[Self, ...]:
        return tuple(cls(*fields) for fields in cls.fills)


class OneOf(Filled[V]):
    """Base class of prompts whose legal replies are a few words, alone."""

    version = 1
    form = "{}"
    form_values: ClassVar[Mapping[str, Any]]  # all replies, as the prompt asks for them

    def legal(self, form: str) -> Constraint:
        return one_of(form, self.form_values)


_LINE_END = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_FENCE = re.compile(r"(?:```|~~~)[ \t]*\w*")
_QUOTED_LIST = re.compile(r"\s*\[\s*(?=[\"'“])")
_NEXT_ITEM = re.compile(r"(?<=[\"'”])\s?,\s*(?=[\"'“])")
_HEADING = re.compile(r"\A(?:#{1,6}[ \t]+|>[ \t]?)")
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
    r"(?i)\A(?P<bold>\*{1,3}|_{1,3}|)"
    rf"(?:(?:{_MARKER})(?P=bold)|{_LABEL}(?:[:：](?P=bold)|(?P=bold)[ \t]?[:：])"
    rf"|(?:{_NOUN}){_NUMBER}(?:[.)]|[ \t][-–—])(?P=bold)(?=[ \t]))[ \t]*"
)
_LABEL_ALONE = re.compile(_LABEL, re.IGNORECASE)
_ROUNDS = 5  # marks around one another: `- **Clue 1:** "..."` takes two
_EMPHASIS = ("******", "****", "____", "**", "__", "``")  # a mark and its end
_QUOTES = ('""', "“”", "„“", "''", "‘’", "«»", "「」", "『』")
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")
_END_SIGNS = (".", "!", "?", "…", "。", "！", "？")
_NO_ITEM = {"none", "n/a", "无", "無", "[]"}


def parse_lines(reply: str, is_cut: bool) -> tuple[str, ...] | None:
    """The lines of a reply without list markers, labels ("Clue 1:", "问题 2："), and quotes or
    emphasis around a whole line; blank lines and introductions ("Here they are:") are left out.

    () where the only line is `NONE`, which is legal; None where no line has a letter or digit. The
    last line of a cut reply counts only if it ends a sentence or is the only one.
    """
    items: list[str] = []
    for line in _LINE_END.split(reply):
        quoted = _QUOTED_LIST.match(line)  # a list of quoted texts, perhaps unclosed
        inner = line[quoted.end() :].rstrip() if quoted else ""
        if quoted and "]" not in inner[:-1]:
            items += _NEXT_ITEM.split(inner.removesuffix("]"))
        elif not _FENCE.fullmatch(line.strip()):
            items.append(line)
    texts = [_text(item) for item in items]
    if is_cut and any(texts[:-1]) and not texts[-1].endswith(_END_SIGNS):
        texts.pop()
    lines = tuple(text for text in texts if text and not _is_none(text))
    return lines if lines or any(texts) else None


def _text(line: str) -> str:
    """The text of an item, or `NONE`; "" for a line that is no item."""
    text, is_item = line.strip(), False
    for _ in range(_ROUNDS):
        plain = _unwrapped(_HEADING.sub("", text).strip(), _EMPHASIS)
        rest = _unwrapped(_MARK.sub("", plain).strip(), _QUOTES)
        is_item = is_item or rest != plain
        if rest == text:
            break
        text = rest
    is_introduction = text.endswith((":", "：")) and not is_item
    if is_introduction or _LABEL_ALONE.fullmatch(text.rstrip(":：")):
        return ""
    return text if _is_none(text) or any(char.isalnum() for char in text) else ""


def _unwrapped(text: str, pairs: tuple[str, ...]) -> str:
    """The text without the first of the pairs that encloses all of it and occurs nowhere inside. A
    comma or full stop after it, and the bracket that closes a list, are removed, too."""
    ended = text.rstrip(",;.，；。、]")
    for pair in pairs:
        opening, closing = pair[: len(pair) // 2], pair[len(pair) // 2 :]
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
_DECODER = json.JSONDecoder(strict=False)  # line breaks within strings


def list_items(reply: str, is_cut: bool) -> list[Any] | None:
    """The items of the JSON list in a reply; None without one, or with two that differ.

    Of a list that the end of the reply cuts off, the complete items count; None without any. Of a
    list with invalid JSON, the items before it count if the reply was cut (`is_cut`); else None.
    """
    items: list[Any] | None = None
    position, reply = 0, without_half_pairs(reply)
    while start := _JSON_LIST.search(reply, position):
        other, position = _json_items(reply, start.end(), is_cut)
        if other is None or (items is not None and other != items):
            return None
        items = other
    return items


def _json_items(reply: str, start: int, is_cut: bool) -> tuple[list[Any] | None, int]:
    """The items from `start`, after the bracket, and the end of the list; None if unreadable."""
    items: list[Any] = []
    if reply.startswith("]", start):
        return items, start + 1
    while True:
        value, end = json_at(reply, start)
        after = _AFTER_ITEM.match(reply, end) if end > start else None
        if after is None:
            is_end = is_cut or "]" not in reply[start:]
            return (items or None) if is_end else None, len(reply)
        items.append(value)
        if after["end"] or after["last"] or after.end() == len(reply):
            return items, after.end()
        start = after.end()


def json_at(reply: str, start: int) -> tuple[Any, int]:
    """The JSON value at `start` and its end, which is `start` where there is none."""
    try:
        return _DECODER.raw_decode(reply, start)
    except (ValueError, RecursionError):  # also numbers of thousands of digits, and deep nesting
        return None, start
