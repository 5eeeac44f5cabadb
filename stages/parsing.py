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
_NUMBERS_ALONE = re.compile(r"[(<]?\d(?:[\d\s,;&()<>]|\band\b)*\.?", re.IGNORECASE)
_PAGE = r"\b(?:pages?\b|pgs?\b\.?|pp?\.)\s*(?:numbers?\b|nos?\.)?\s*:?\s*"
_BETWEEN = r"\s*(?:,\s*(?:and\b)?|;|&|\band\b|\bto\b|\bthrough\b|[-–])\s*(?:pages?\s+)?"
_NUMBER = r"[(<]?\d+[)>]?"
_UNBRACKETED = re.compile(rf"{_PAGE}({_NUMBER}(?:{_BETWEEN}{_NUMBER})*)", re.IGNORECASE)

# Negations in words, within a sentence or a part of one. Apostrophes are gone by then.
_SENTENCE_END = re.compile(r"[.!?;:\n]")
_CLAUSE_END = re.compile(r"[.!?;:,\n]")
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

# No look-up in words: what is refused, or why.
_MORE = r"(?:(?:more|other|else|further|additional|extra|specific|particular|single|full)\s+)*"
_REFUSALS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\A(?:pages?\s*:?\s*)?none\s*(?=\Z|[.,;:!\n(–-]|because\b|since\b|as\b)",
        rf"\b(?:no|zero|0)\s+{_MORE}(?:pages?|re-?reading|look\s*-?\s*ups?)\b",
        r"\bpages?\s+none\b|\bnone\s+of\s+(?:(?:the|these|those|its)\s+)?(?:\w+\s+)?pages\b",
        r"\b(?:none|nothing)\s+(?:(?:more|else|further|of\s+\w+|is|are|that|i|we|to)\s+)*"
        rf"(?:need(?:ed)?|necessary|required|missing|{_READ})\b",
        r"\bno\s+(?:more|other|further|additional|extra)\s+(?:\w+\s+){0,2}?(?:needed|required"
        r"|necessary)\b",
        _NOT_NEEDED,
        rf"(?:{_NOT}|\bno)\s+{_HEDGE}(?:need|want|wish|have|require)(?:\s+for)?(?:\s+to\s+(?:{_READ}|read\b"
        r"|be\s+shown)|\s+(?:the\s+|an?\s+)?(?:any|anything|pages?|more|further|additional|another"
        r"|others?|full|rest|text)\b)",
        rf"(?:{_NOT}|\bno)\s+{_HEDGE}need\s*(?:\Z|[.,])|\bneed(?:nt|\s+not)\b",
        rf"{_NOT}\s+look\s+(?:up|at)\b|\blook\s+up\s+(?:nothing|none)\b",
    )
)
_ENOUGH = re.compile(
    r"\b(?:notes?|gists?|texts?|summar(?:y|ies)|memory|context|information|passages?|script|pages?"
    r"|above|this|that|it|(?:know|have|has|given|is))\b[^,]{0,99}?\b(?:enough|sufficient|suffices?)\b"
    r"|\b(?:enough|sufficient)\s+(?:\w+\s+)?(?:to\s+answer|for\b)"
    r"|\bcan\s+(?:(?:already|now|be|directly)\s+)*answer(?:ed)?\b"
    r"|\b(?:all|everything)\s+(?:the\s+\w+\s+)?(?:that\s+)?(?:i|we)\s+need\b"
    r"|\b(?:i|we)\s+(?:already\s+)?(?:know|have)\s+the\s+answer\b",
    re.IGNORECASE,
)
_NOT_ENOUGH = re.compile(
    rf"{_NOT}\b|\b(?:no|nor|neither|cannot|cant|hardly|barely|before|until|if|whether|once"
    r"|to\s+have|to\s+know|would\s+(?:need|want))\b",
    re.IGNORECASE,
)

# In small letters "stop" is a word like any other, unless it opens a line.
_TURN = re.compile(
    r"\b(?i:pages?(?:\s+number)?)\s*[:\[<(]*\s*(?P<page>\d{1,9})(?!\d)"
    r"|\bSTOP\b|^[ \t]*(?i:stop)\b|\b(?i:i\s+(?:want|would\s+like)\s+to\s+stop)\b",
    re.MULTILINE,
)
_LAST_STOP = re.compile(r"(?:\A|[.!?:\n])[\s\[<(]*(?i:stop)[\s\])>.!]*\Z")
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
    are read too, and so are numbers alone. (), no look-up, is `[]`, "none" or a refusal in words;
    a range and a reply that says none of these are None.
    """
    text = _plain(reply)
    if "[" in text:
        return parse_page_list(reply)
    if _NUMBERS_ALONE.fullmatch(text):
        return _numbers(text.rstrip("."))
    named = list(_UNBRACKETED.finditer(text))
    for page in named:
        if not _is_declined(text, page):
            return _numbers(page[1])
    return () if named or _is_refusal(text) else None


def parse_page_list(reply: str) -> tuple[int, ...] | None:
    """As `parse_pages`, but closed brackets alone count: the rest of a cut reply may mislead."""
    text = _plain(reply)
    listed = _ASKED.search(text) or _LIST.search(text)
    return _numbers(listed[1]) if listed else None


def parse_page_or_stop(reply: str) -> int | Literal["stop"] | None:
    """The page asked for, or "stop": `Page 3`, `I want to look up Page [3]`, `STOP`.

    A STOP that is the last sentence decides, else whichever comes first in the reply; a page said
    not to be needed does not count.
    """
    text = _plain(reply)
    if _LAST_STOP.search(text):
        return "stop"
    for found in _TURN.finditer(text):
        if found["page"] is None:
            return "stop"
        if not _is_declined(text, found):
            return int(found["page"])
    alone = _NUMBER_ALONE.fullmatch(text)
    return int(alone["page"]) if alone else None


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
    """What was said after any thinking, full-width signs as ASCII, without bold and quotes.

    Nothing, where the thinking does not end.
    """
    said = reply.rsplit("</think>", 1)[-1]
    if "<think>" in said:
        return ""
    return unicodedata.normalize("NFKC", said).translate(_DECORATION).strip()


def _numbers(listed: str) -> tuple[int, ...] | None:
    if not listed.strip():
        return ()
    words = re.sub(r"\bpages?\b|[<>()]", " ", listed.lower())
    items = [item for item in re.split(r"[\s,;&]+|\band\b", words) if item]
    if items == ["none"]:
        return ()
    if not items or not all(re.fullmatch(r"\d{1,9}", item) for item in items):
        return None
    return tuple(int(item) for item in items)


def _is_declined(text: str, page: re.Match[str]) -> bool:
    """Whether the sentence that names the page says that it is not wanted."""
    before = _SENTENCE_END.split(text[: page.start()])[-1]
    after = _SENTENCE_END.split(text[page.end() :])[0]
    return bool(_DECLINED.search(before) or _DECLINED_AFTER.match(after))


def _is_refusal(text: str) -> bool:
    """Whether a reply that names no page says that none is needed."""
    for sentence in _SENTENCE_END.split(text):
        for found in (pattern.search(sentence.strip()) for pattern in _REFUSALS):
            if found and not _EXCEPT.search(found.string, found.end()):
                return True
    clauses = _CLAUSE_END.split(text)
    return any(_ENOUGH.search(part) and not _NOT_ENOUGH.search(part) for part in clauses)


def _option_letter(text: str) -> str | None:
    for pattern in _OPTIONS:
        if found := list(pattern.finditer(text)):
            named = found[-1].groupdict()
            return named["mark"] or named["bare"]
    if _DENIED.search(text):
        return None
    letters = {bracketed or bare for bracketed, bare in _MENTIONED.findall(text)}
    return letters.pop() if len(letters) == 1 else None
