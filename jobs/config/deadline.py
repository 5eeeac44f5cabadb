"""`cluster.deadline`: a time of day, or an ISO 8601 date and time with or without a zone."""

from datetime import datetime, timedelta

from pipeline.core.errors import UsageError


class PassedError(UsageError):
    """The deadline is in the past."""


def deadline(given: str, now: datetime) -> datetime:
    """Parse `given`: HH:MM (the next such time after `now`) or ISO 8601.

    Without a zone it is of this machine's clock. Raises UsageError if it is malformed, PassedError
    if it is in the past.
    """
    found = parse_deadline(given, now)
    if found.timestamp() <= now.timestamp():
        raise PassedError(f"cluster.deadline={given}: is in the past; give a later one")
    return found


def parse_deadline(given: str, now: datetime) -> datetime:
    """Parse `given` as `deadline` does, but allow it to be in the past."""
    try:
        if len(given) <= len("07:00"):
            clock = datetime.strptime(given, "%H:%M")
            found = now.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0)
            return found if found > now else found + timedelta(days=1)
        found = datetime.fromisoformat(given)
        found.timestamp()  # refuses years at the ends of the calendar
    except (ValueError, OverflowError):
        raise UsageError(
            f"cluster.deadline={given}: not a time; write 07:00, 2026-12-01T07:00 or "
            "2026-12-01T07:00+02:00"
        ) from None
    return found


def absolute_deadline(given: str, now: datetime) -> str:
    """The deadline in ISO 8601 with a zone, which is the same moment on other machines and at a
    later start.

    Raises as `deadline` does.
    """
    return deadline(given, now).astimezone().isoformat(timespec="seconds")
