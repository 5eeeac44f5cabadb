"""Read a reply that is a list with an item per line: clues, key points, sub-questions.

A line's text stays as written. How many lines count, and whether one repeats another, is left to
the stage. Of JSON only the strings of a list are read, `["a", "b"]` in one line or several, with
their escapes as written; anything else is lines.
"""

import re

_LINE_END = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_FENCE = re.compile(r"(?:```|~~~)[ \t]*\w*")
_LIST = re.compile(r"\s*\[\s*(?=[\"'“])")
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
_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")
_NO_ITEM = {"none", "n/a", "无", "無", "[]"}


def parse_lines(reply: str, is_cut: bool) -> tuple[str, ...] | None:
    """The lines of a reply without list markers, labels ("Clue 1:", "问题 2："), and the quotes or
    emphasis around a whole line; blank lines and introductions ("Here they are:") are left out.

    () where there is none but `NONE`, which is legal; None where no line has a letter or digit. The
    last line of a cut reply counts only where it ends as a sentence does, or is the only one.
    """
    lines = [line for line in _LINE_END.split(reply) if not _FENCE.fullmatch(line.strip())]
    found = [_text(item) for line in lines for item in _items(line)]
    if is_cut and any(found[:-1]) and not found[-1].endswith(_SENTENCE_ENDS):
        found.pop()
    kept = tuple(text for text in found if text and not _is_none(text))
    return kept if kept or any(found) else None


def _items(line: str) -> list[str]:
    """The items of a line that is a list of quoted texts, which may end unclosed; else the line."""
    start = _LIST.match(line)
    inner = line[start.end() :].rstrip() if start else ""
    if not start or "]" in inner[:-1]:
        return [line]
    return _NEXT_ITEM.split(inner.removesuffix("]"))


def _text(line: str) -> str:
    """The text of an item, or `NONE`; "" for a line that is none."""
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
    """The text without the match that it begins with, if any."""
    found = start.match(text)
    return text[found.end() :].strip() if found else text


def _unwrapped(text: str, pairs: tuple[tuple[str, ...], ...]) -> str:
    """The text without the first of the pairs that is around the whole of it and nowhere inside.
    A comma or full stop after it goes, too, and the bracket that closes a list."""
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
