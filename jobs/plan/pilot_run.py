"""`gistmill plan pilot=N`: a real run of the first documents, whose rows the whole run then has."""

from collections.abc import Callable, Sequence

from jobs.config import RunConfig
from jobs.loading import chosen
from pipeline.errors import UsageError

_KEY = "pilot="


def pilot_words(words: Sequence[str]) -> tuple[list[str], int | None]:
    """The other words, and how many documents `pilot=N` asks for. Raises UsageError."""
    others = [word for word in words if not word.startswith(_KEY)]
    named = [word.removeprefix(_KEY) for word in words if word.startswith(_KEY)]
    if not named:
        return others, None
    if not named[-1].isdecimal() or int(named[-1]) < 1:
        raise UsageError(f"pilot={named[-1]}: name how many documents to run, 1 or more")
    return others, int(named[-1])


def run_pilot(config: RunConfig, num_documents: int, warn: Callable[[str], None]) -> str:
    """Run the first documents into the same warehouse, as a run of its own, whose name this is.

    Raises UsageError where there are not so many, or the pilot does not end.
    """
    from jobs.run import INCOMPLETE, run  # here: ray takes a second to import

    there = sum(not one.document.skipped for one in chosen(config))
    if num_documents > there:
        raise UsageError(f"pilot={num_documents}: there are {there} documents; name fewer")
    first = {"sample": num_documents} if config.sample else {"limit": num_documents}
    name = f"{config.run_name()}-pilot{num_documents}"
    outcome = run(config.model_copy(update={**first, "run": name}), warn)
    for complaint in outcome.complaints:
        warn(complaint)
    if outcome.exit_code == INCOMPLETE:
        raise UsageError(f"pilot={num_documents}: not complete; the same command goes on from here")
    return name
