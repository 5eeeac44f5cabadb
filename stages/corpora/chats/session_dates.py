"""Dates for the sessions of a compiled history (LongMemEval, appendix A.2)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from random import Random
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from stages.corpora.chats.sessions import DATE, Session, date_of
from stages.corpora.reading.row_checks import BadInputError, shown

_MONTH = timedelta(days=30)  # as the authors' sample_haystack_and_timestamp.py
_MINUTE = timedelta(minutes=1)
_MAY_2023 = (datetime(2023, 5, 1), datetime(2023, 5, 31, 23, 59))  # "Otherwise, we randomly assign"


def _to_day(value: Any) -> Any:
    try:
        return datetime.strptime(value, "%Y/%m/%d").date() if isinstance(value, str) else value
    except ValueError:
        raise ValueError("Input should be a date like 2023/05/31") from None


def _day_text(day: date | None) -> str | None:
    return None if day is None else day.strftime("%Y/%m/%d")


Day = Annotated[date | None, BeforeValidator(_to_day), PlainSerializer(_day_text)]


def read_date(text: str | None, key: str) -> datetime | None:
    """The date; None where there is none. Raises BadInputError where it is not in the format of
    the published files, as its place among drawn dates would be unknown."""
    found = date_of(text)
    if text and found is None:
        raise BadInputError(f"`{key}` {shown(text)} is no date like 2023/05/31 (Wed) 21:48; fix it")
    return found


def interval(
    first_date: date | None,
    last_date: date | None,
    evidence: Sequence[datetime],
    asked: datetime | None,
) -> tuple[datetime, datetime]:
    """The first and last minute in which drawn dates may be; the question is asked later.

    Missing dates are 30 days before the first evidence and 30 days after the last; without evidence
    that has a date, 30 days before the question; without that, May 2023. The last minute is before
    the first where there is no room. Raises BadInputError at the ends of the calendar.
    """
    anchors = evidence or ([asked] if asked else [])
    try:
        first, last = (min(anchors) - _MONTH, max(anchors) + _MONTH) if anchors else _MAY_2023
        before = asked - _MINUTE if asked else None
    except OverflowError:
        raise BadInputError("a date at an end of the calendar; fix it") from None
    if first_date:
        first = datetime.combine(first_date, time())
    if last_date:
        last = datetime.combine(last_date, time(23, 59))
    return first, min(last, before) if before else last


def with_dates(
    sessions: Sequence[Session], within: tuple[datetime, datetime], draw: Random
) -> list[Session]:
    """The sessions; those without a date get one, drawn uniformly by the minute and in order.

    Raises BadInputError where the interval has no minute.
    """
    first, last = within
    num_minutes = (last - first) // _MINUTE + 1
    num_drawn = sum(not session.date for session in sessions)
    if num_drawn and num_minutes < 1:
        raise BadInputError(
            f"no date from {first.strftime(DATE)} to {last.strftime(DATE)} for its sessions; "
            "set corpus.first_date and corpus.last_date"
        )
    minutes = iter(sorted(draw.randrange(num_minutes) for _ in range(num_drawn)))
    return [
        session
        if session.date
        else replace(session, date=(first + next(minutes) * _MINUTE).strftime(DATE))
        for session in sessions
    ]
