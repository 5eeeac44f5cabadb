"""Turns and dates of chat histories, in the layout that stages/corpora/formats/longmemeval.py
writes, and calendar days that a text states in full, as YYYY/MM/DD. No part of a date is
guessed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from stages.text.words import PAGE_BREAK, header_of, without_header

NO_DATE = "no date"  # in the header of a session without one
_BLANK_LINE = re.compile(r"\n\s*\n")
_ROLE = re.compile(r"(\w+): ")


@dataclass(frozen=True, slots=True)
class Turn:
    """`role`: user or assistant; "" if the text names none."""

    role: str
    content: str


def turns_of(text: str) -> list[Turn]:
    """The turns of a session or of a part of one, without its header."""
    paragraphs = (p.strip() for p in _BLANK_LINE.split(without_header(text)))
    return [_turn(paragraph) for paragraph in paragraphs if paragraph]


def _turn(paragraph: str) -> Turn:
    role = _ROLE.match(paragraph)
    return Turn(role[1], paragraph[role.end() :]) if role else Turn("", paragraph)


def said_by(text: str, role: str) -> str:
    """The words of one role in a text, joined by spaces; the whole text without its header if
    that role has no turn."""
    own = [turn.content for turn in turns_of(text) if turn.role == role]
    return " ".join(own) or without_header(text).strip()


def session_dates(texts: Sequence[str]) -> list[str]:
    """The session's date for each of consecutive texts, as its header has it, without brackets;
    "" where it has none."""
    found: list[str] = []
    for text in texts:
        if text.startswith(PAGE_BREAK) or not found:
            date = (header_of(text) or "[]")[1:-1]
            found.append("" if date == NO_DATE else date)
        else:
            found.append(found[-1])
    return found


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
MONTH = (  # a regex, for any case
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_NUMBER = r"\d{1,2}(?:st|nd|rd|th)?"
_DAY = re.compile(
    r"(?<![\d/.-])(?:"
    r"(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})(?=T\d)?"
    r"|(?P<first>\d{1,2})(?P<between>[-/.])(?P<second>\d{1,2})(?P=between)(?P<last>\d{4})"
    rf"|\b(?P<name>{MONTH})\b\.?\s{{1,3}}(?P<named>{_NUMBER}),?\s{{1,3}}(?P<of>\d{{4}})"
    rf"|(?P<before>{_NUMBER})\s{{1,3}}(?:of\s)?(?P<after>{MONTH})\b\.?,?\s{{1,3}}(?P<then>\d{{4}})"
    r")(?!\d|[-/.]\d)",
    re.IGNORECASE | re.ASCII,
)
_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
_BESIDE = re.compile(  # a day with its weekday and time, one space between the words
    rf"(?:{_WEEKDAY} )?(?:on )?DAY(?: {_WEEKDAY})?"
    r"(?:(?: | at |T)\d{1,2}:\d\d(?::\d\d(?:[.]\d{1,9})?)? ?(?:[ap]\.?m|Z|UTC)?)?",
    re.IGNORECASE | re.ASCII,
)
_SIGNS = re.compile(r"[^\w:.]+")
_MOST_CHARS = 100  # of a text that is only a date


def days_in(text: str) -> list[str]:
    """The days that a text states in full, in order: `2023/5/3`, `2023-05-03`, `May 3rd, 2023`,
    `3 May 2023`, and `13/5/2023`, in which 13 can only be the day. Ambiguous days and days not
    in the calendar are left out."""
    return [day for found in _DAY.finditer(text) if (day := _day(found))]


def day_of(text: str) -> str:
    """The day, if the text is nothing but a day, maybe with its weekday and time, as `2023/05/03
    (Wed) 21:48`; else "", as for "in May 2023", "before 2023/05/03" and "3/5/2023"."""
    found = list(_DAY.finditer(text)) if len(text) <= _MOST_CHARS else []
    if len(found) != 1:
        return ""
    start, end = found[0].span()
    beside = _SIGNS.sub(" ", f"{text[:start]}DAY{text[end:]}").strip(" .:")
    return _day(found[0]) if _BESIDE.fullmatch(beside) else ""


def _day(found: re.Match[str]) -> str:
    """The only calendar day that a match may mean; "" if there is none or more than one."""
    days = {day for year, month, day_ in _readings(found) if (day := _written(year, month, day_))}
    return days.pop() if len(days) == 1 else ""


def _readings(found: re.Match[str]) -> Iterator[tuple[str, str, str]]:
    """Year, month and day, in each order that the match may have."""
    if found["year"]:
        yield found["year"], found["month"], found["day"]
    elif found["last"]:
        yield found["last"], found["first"], found["second"]
        yield found["last"], found["second"], found["first"]
    else:
        name = (found["name"] or found["after"])[:3].lower()
        number = re.sub(r"\D", "", found["named"] or found["before"])
        yield found["of"] or found["then"], str(_MONTHS.index(name) + 1), number


def _written(year: str, month: str, day: str) -> str:
    try:
        return date(int(year), int(month), int(day)).isoformat().replace("-", "/")
    except ValueError:
        return ""
