"""Read what a model replied. Pure and lenient: nothing here raises.

What cannot be read is None and never a guess: the caller makes it a problem or a fallback. The
grammars are those of the paper's prompts (ReadAgent sections 3.1, 3.2, 4.1 and appendix H),
one parser for every family. Numbers come back as written; whether they are legal is the caller's.
"""

import re
import unicodedata
from typing import Literal

Strict = Literal["yes", "no"]
Permissive = Literal["yes", "partially", "no"]

_DECORATION = str.maketrans("", "", "*_`\"'“”‘’«»\\#")
_TAG = re.compile(r"<\s*(\d{1,9})\s*>")

# <57>, or 57 that does not begin 57.5, 57th or 57-60. At most nine digits: int() must not fail.
_LABEL = r"(?P<tag><\s*)?(?P<label>\d{1,9})(?(tag)\s*>|(?!\.?\w|\s*[-–]\s*\d))"
_BREAK = r"\b(?:break\s*-?\s*point|label)s?\b"
_BREAK_POINTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_BREAK}\s*(?:is\b|would be\b|should be\b|:|=)[\s:]*(?:(?:label|after|at)\s+)*{_LABEL}",
        r"\A<\s*(?P<label>\d{1,9})\s*>",
        r"\A(?P<label>\d{1,9})[.:]?\s*(?:\n|\Z)",
        rf"{_BREAK}\s*{_LABEL}",
    )
)

_ASKED = re.compile(r"\blook\s+up\s+(?:the\s+)?pages?\s*:?\s*\[([^\[\]]*)\]", re.IGNORECASE)
_LIST = re.compile(r"\[([^\[\]]*)\]")
_BETWEEN = r"\s*(?:,\s*(?:and\b)?|;|&|\band\b|\bto\b|\bthrough\b|[-–])\s*(?:pages?\s+)?"
_UNBRACKETED = re.compile(rf"\bpages?\s*:?\s*(\d+(?:{_BETWEEN}\d+)*)", re.IGNORECASE)
_DECLINED = re.compile(r"\b(?:not|dont|no)\s+(?:need|want|have)\b[^.!?\n]*\Z", re.IGNORECASE)

# In small letters "stop" is a word like any other, unless it opens a line.
_TURN = re.compile(
    r"\b(?i:pages?(?:\s+number)?)\s*[:\[<(]*\s*(?P<page>\d{1,9})(?!\d)"
    r"|\bSTOP\b|^[ \t]*(?i:stop)\b|\b(?i:i\s+(?:want|would\s+like)\s+to\s+stop)\b",
    re.MULTILINE,
)
_NUMBER_ALONE = re.compile(r"[\[<(]?\s*(?P<page>\d{1,9})\s*[\])>]?\.?")

# A letter in brackets, or one whose surroundings show that it is no word: "A man" and "U.S." are.
_LETTER = (
    r"(?:[(\[]\s*(?P<mark>[A-Za-z])\s*[)\]]|(?P<bare>[A-Za-z])"
    r"(?=\s*(?:\Z|[\n:;)\]]|\.(?!\w)|,|\s[-–—]\s)|\s+(?:because|since|as|is)\b"
    r"|(?<![AaIi])\s+[A-Z]))"
    r"(?!\s*(?:,|/|&|\band\b|\bor\b|\bnor\b)\s*[(\[]?[A-HJ-Z]\b)"  # two options are no answer
)
_IS = r"\s*(?i:is\b|would be\b|should be\b|:|=)[\s:]*(?i:(?:option|choice|letter)\s+)?"
_OPTIONS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rf"\b(?i:answer(?:\s+(?:choice|option|letter)|\s+to\s+th\w+\s+question)?){_IS}{_LETTER}",
        rf"\b(?i:option|choice){_IS}{_LETTER}",
        rf"\A{_LETTER}",
        r"^[ \t]*[(\[]?(?P<mark>[A-Z])[)\].]{0,2}[ \t]*$",
    )
)
_DENIED = re.compile(r"\b(?i:not|nor|neither)\s+(?i:option\s+)?[(\[]?[A-Z]\b")
_MENTIONED = re.compile(r"\(([A-Z])\)|\b[Oo]ption\s+([A-Z])\b")

_VERDICT = re.compile(
    r"\A\W*(?:(?:final\s+)?(?:answer|verdict|rating|judge?ment)\s*(?:is\b|:)\W*)?"
    r"(?P<first>yes|no|partial(?:ly)?|partly)\b"
    r"(?:[^\w.!;:]*\b(?:and|or|but|nor)?[^\w.!;:]*\b(?P<second>yes|no)\b)?",
    re.IGNORECASE,
)
_PARTIAL = re.compile(r"\b(?:partial(?:ly)?|partly|in\s+part)\b", re.IGNORECASE)
_ONLY_PARTIAL = re.compile(r"\W+(?:but\s+)?(?:only\s+)?part(?:ial|ly)", re.IGNORECASE)


def parse_break_point(reply: str) -> int | None:
    """The label chosen (ReadAgent 3.1): `Break point: <57>`, `Label: <57>`, `<57>`, `57`.

    The last statement of that form wins, as some models reason first; a label at the very start
    goes before labels mentioned in passing; at last a tag that is the only one in the reply.
    """
    text = _plain(reply)
    for pattern in _BREAK_POINTS:
        if found := list(pattern.finditer(text)):
            return int(found[-1]["label"])
    tags = {int(tag) for tag in _TAG.findall(text)}
    return tags.pop() if len(tags) == 1 else None


def parse_pages(reply: str) -> tuple[int, ...] | None:
    """The pages asked for, as written and in that order: `I want to look up Page [2, 7] to ...`.

    The first list counts, one after "look up Page" before others; pages named without brackets
    are read too. `[]` and a reply that names no page are (), no look-up; a range is None.
    """
    text = _plain(reply)
    if listed := _ASKED.search(text) or _LIST.search(text):
        return _numbers(listed[1])
    if "[" in text:
        return None
    named = _UNBRACKETED.search(text)
    if named is None or _DECLINED.search(text, 0, named.start()):
        return ()
    return _numbers(named[1])


def parse_page_or_stop(reply: str) -> int | Literal["stop"] | None:
    """The page asked for, or "stop": `Page 3`, `I want to look up Page [3]`, `STOP`.

    Whichever comes first in the reply decides.
    """
    text = _plain(reply)
    found = _TURN.search(text)
    if found is not None and found["page"] is None:
        return "stop"
    found = found or _NUMBER_ALONE.fullmatch(text)
    return int(found["page"]) if found else None


def parse_option(reply: str, num_options: int) -> int | Literal["out_of_range"] | None:
    """The option chosen, from 0: `Answer: (C)`, `The answer is C`, `(C) ...`, `C.`, `C`.

    The last `Answer:` wins, then a letter that opens the reply, then one alone on its line, then
    the only option mentioned. "out_of_range": a letter, but of no option.
    """
    letter = _option_letter(_plain(reply))
    if letter is None:
        return None
    index = ord(letter.upper()) - ord("A")
    return index if index < num_options else "out_of_range"


def parse_strict(reply: str) -> Strict | None:
    """The strict rater's verdict (ReadAgent 4.1) by its first word: `YES` or `NO`."""
    verdict = parse_permissive(reply)
    return None if verdict == "partially" else verdict


def parse_permissive(reply: str) -> Permissive | None:
    """The permissive rater's verdict (ReadAgent 4.1): `Yes`, `Yes, partially` or `No`.

    The first word decides; a yes whose first sentence says "partially" is partial. "Yes and no"
    is neither.
    """
    text = _plain(reply)
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


def _plain(reply: str) -> str:
    """What was said after any thinking, full-width signs as ASCII, without bold and quotes."""
    said = reply.rsplit("</think>", 1)[-1]
    return unicodedata.normalize("NFKC", said).translate(_DECORATION).strip()


def _numbers(listed: str) -> tuple[int, ...] | None:
    words = re.sub(r"\bpages?\b|[<>]", " ", listed.lower())
    items = [item for item in re.split(r"[\s,;&]+|\band\b", words) if item]
    if items == ["none"]:
        return ()
    if not all(re.fullmatch(r"\d{1,9}", item) for item in items):
        return None
    return tuple(int(item) for item in items)


def _option_letter(text: str) -> str | None:
    for pattern in _OPTIONS:
        if found := list(pattern.finditer(text)):
            named = found[-1].groupdict()
            return named["mark"] or named["bare"]
    if _DENIED.search(text):
        return None
    letters = {bracketed or bare for bracketed, bare in _MENTIONED.findall(text)}
    return letters.pop() if len(letters) == 1 else None
