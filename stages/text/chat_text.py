"""Turns and dates of chat histories, in the layout that stages/corpora/formats/longmemeval.py
writes, and calendar days that a text states in full, as YYYY/MM/DD. No part of a date is
guessed."""

import re
from collections.abc import Sequence
from contextlib import suppress
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
    turns = []
    for paragraph in filter(None, map(str.strip, _BLANK_LINE.split(without_header(text)))):
        role = _ROLE.match(paragraph)
        turns.append(Turn(role[1] if role else "", paragraph[role.end() if role else 0 :]))
    return turns


def said_by(text: str, role: str) -> str:
    """The words of one role in a text; the whole text without its header if that role has no
    turn."""
    said = " ".join(turn.content for turn in turns_of(text) if turn.role == role)
    return said or without_header(text).strip()


def session_dates(texts: Sequence[str]) -> list[str]:
    """The date in the session's header for each of consecutive texts; "" where it has none."""
    dates: list[str] = []
    for text in texts:
        if text.startswith(PAGE_BREAK) or not dates:
            stated = (header_of(text) or "[]")[1:-1]
            dates.append("" if stated == NO_DATE else stated)
        else:
            dates.append(dates[-1])
    return dates


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
MONTH = (  # a regex, for any case
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_NUMBER = r"\d{1,2}(?:st|nd|rd|th)?"
_DAY = re.compile(
    r"(?ai)(?<![\d/.-])(?:"
    r"(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})(?=T\d)?"
    r"|(?P<first>\d{1,2})(?P<between>[-/.])(?P<second>\d{1,2})(?P=between)(?P<last>\d{4})"
    rf"|\b(?P<name>{MONTH})\b\.?\s{{1,3}}(?P<named>{_NUMBER}),?\s{{1,3}}(?P<of>\d{{4}})"
    rf"|(?P<before>{_NUMBER})\s{{1,3}}(?:of\s)?(?P<after>{MONTH})\b\.?,?\s{{1,3}}(?P<then>\d{{4}})"
    r")(?!\d|[-/.]\d)"
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
    return [day for match in _DAY.finditer(text) if (day := _day(match))]


def day_of(text: str) -> str:
    """The day, if the text is nothing but a day, maybe with its weekday and time, as `2023/05/03
    (Wed) 21:48`; else "", as for "in May 2023", "before 2023/05/03" and "3/5/2023"."""
    matches = list(_DAY.finditer(text)) if len(text) <= _MOST_CHARS else []
    if len(matches) != 1:
        return ""
    start, end = matches[0].span()
    beside = _SIGNS.sub(" ", f"{text[:start]}DAY{text[end:]}").strip(" .:")
    return _day(matches[0]) if _BESIDE.fullmatch(beside) else ""


def _day(match: re.Match[str]) -> str:
    """The only calendar day that a match may mean, or ""."""
    if match["year"]:
        readings = [(match["year"], match["month"], match["day"])]
    elif match["last"]:
        first, second = match["first"], match["second"]
        readings = [(match["last"], first, second), (match["last"], second, first)]
    else:
        name = (match["name"] or match["after"])[:3].lower()
        number = re.sub(r"\D", "", match["named"] or match["before"])
        readings = [(match["of"] or match["then"], str(_MONTHS.index(name) + 1), number)]
    days = set()
    for year, month, day in readings:
        with suppress(ValueError):
            days.add(date(int(year), int(month), int(day)).isoformat().replace("-", "/"))
    return days.pop() if len(days) == 1 else ""
