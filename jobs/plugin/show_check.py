"""The tables and lines that `gistmill plugin check` prints."""

from collections.abc import Iterator

from jobs.output.cells import Heading, Part, Table, counted
from jobs.plugin.check_plugin import CheckedRun, PluginCheck

_UNREAD = ("extractor", "no")


def check_parts(found: PluginCheck) -> Iterator[Part]:
    """Tables of what it brings and of the steps of each run; lines of what the kill cost, and of
    what was not run."""
    yield Heading("what it brings", 2)
    yield Table(found.brings, left=("kind", "name", "used"))
    for run in found.runs:
        yield from _run_parts(run)
    yield from found.not_run
    unread = [row["name"] for row in found.brings if (row["kind"], row["used"]) == _UNREAD]
    if unread:
        names = ", ".join(f"sample.{name}" for name in unread)
        yield f"an extractor is run where the folder has a file for it: {names}"


def _run_parts(run: CheckedRun) -> Iterator[Part]:
    yield Heading("steps of a run on one document", 2)
    yield Table(run.steps)
    if run.killed_at is None:
        yield "it sends no request; a run that is killed repeats the unit that it was at"
    else:
        again = counted(run.sent_again, "request")
        killed = f"killed at request {run.killed_at} of {run.requests}"
        yield f"{killed} and resumed: {again} sent again"
    if not run.wrong:
        yield "no row has a problem, and all are as without the kill"
    yield f"the run: gistmill run {' '.join(run.words)}"
