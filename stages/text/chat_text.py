"""Turns and dates of chat histories, as stages/corpora/chats/sessions.py writes them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stages.text.words import PAGE_BREAK, header_of, without_header

NO_DATE = "no date"  # in the header of a session without one
_BLANK_LINE = re.compile(r"\n\s*\n")
_ROLE = re.compile(r"(\w+): ")


@dataclass(frozen=True, slots=True)
class Turn:
    """`role`: user, assistant; "" for a text that names none."""

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
    """The words of one role in a text, joined by spaces; the whole without its header where it says
    nothing."""
    own = [turn.content for turn in turns_of(text) if turn.role == role]
    return " ".join(own) or without_header(text).strip()


def session_dates(texts: Sequence[str]) -> list[str]:
    """The date of the session that each of consecutive texts is of, as its header has it, without
    brackets; "" where it has none."""
    found: list[str] = []
    for text in texts:
        if text.startswith(PAGE_BREAK) or not found:
            date = (header_of(text) or "[]")[1:-1]
            found.append("" if date == NO_DATE else date)
        else:
            found.append(found[-1])
    return found
