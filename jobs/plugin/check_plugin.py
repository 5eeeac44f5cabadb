"""`gistmill plugin check`: runs a plugin on one document, kills that run, resumes it, and says what
came of it."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.graph.read_run import read_run
from jobs.graph.resolved_run import ResolvedRun
from jobs.output.cells import Heading, Part, Table, counted
from jobs.plugin.brought import brought, used, words_of
from jobs.plugin.counted_run import counted_run, killed_run, requests
from jobs.problems.cause_lines import cause_lines
from pipeline.asking.readers import num_slots
from pipeline.core.errors import UsageError
from pipeline.core.plugins import load_plugins
from pipeline.store import connect
from pipeline.store.sql.connection import query

Rows = list[dict[str, Any]]
_STEPS = """
select step_id, stage, version, inputs, ok, skipped, problem
from accounting join steps using (step_id)"""
_UNREAD = ("extractor", "no")
_ANEW = "make them of rows and settings alone"


@dataclass(frozen=True)
class CheckedRun:
    """`words` of the run, which sends `requests` where nothing kills it. It was killed at
    number `killed_at` (None: it sends none), and resumed; `sent_again` were sent twice. `wrong`: a
    line for all that is not as it should be, the causes of problem rows among it."""

    words: Sequence[str]
    steps: Rows
    requests: int
    killed_at: int | None
    sent_again: int
    wrong: Sequence[str]


@dataclass(frozen=True)
class PluginCheck:
    """Rows of what the plugin `brings`, and the runs in which it was `used`."""

    brings: Rows
    runs: Sequence[CheckedRun]


def check_plugin(folder: Path, given: Sequence[str]) -> PluginCheck:
    """Check the plugin in a folder. `given`: words of a run, which take the place of others.

    Raises UsageError for a mistake in the plugin that shows before a run, another
    CommandError where a run ends early.
    """
    load_plugins([str(folder)])
    found = brought(folder.resolve())
    if not found:
        raise UsageError(f"{folder}: brings nothing; gistmill plugin new writes one that works")
    in_runs = set[tuple[str, str]]()
    runs = [_checked(words, in_runs) for words in words_of(folder, found, given)]
    brings = [
        {"kind": kind, "name": name, "used": "yes" if (kind, name) in in_runs else "no"}
        for kind, name in found
    ]
    return PluginCheck(brings, runs)


def _checked(words: Sequence[str], in_runs: set[tuple[str, str]]) -> CheckedRun:
    """Run it whole, and killed and resumed; add what it uses to `in_runs`."""
    resolved = read_run(words)
    with tempfile.TemporaryDirectory(prefix="gistmill-check-") as place:
        whole, resumed = Path(place, "whole"), Path(place, "resumed")
        num_sent = _launch(words, whole)
        killed_at = num_sent // 2 + 1 if num_sent else None
        again = max(_launch(words, resumed, killed_at) - num_sent, 0)
        with connect(whole) as connection, connect(resumed) as other:
            in_runs |= used(words, resolved, connection)
            steps = _steps(resolved, connection)
            wrong = [*cause_lines(connection), *_differences(resolved, connection, other)]
    if again > num_slots(resolved.config.engine):
        wrong.append(f"{again} requests were sent again, more than were in flight: {_ANEW}")
    return CheckedRun(words, steps, num_sent, killed_at, again, wrong)


def _launch(words: Sequence[str], folder: Path, killed_at: int | None = None) -> int:
    """Run to the end in a warehouse of its own, killed once if `killed_at`; the requests sent."""
    counts = folder.with_suffix(".requests")
    own = [*words, f"warehouse={folder}", "run=check", "max_problem_rate=1"]
    if killed_at:
        killed_run(own, counts, killed_at)
    counted_run(own, counts)
    return requests(counts)


def _steps(resolved: ResolvedRun, connection: Any) -> Rows:
    """A row per step that has inputs, in their order: what became of these."""
    made = {row["step_id"]: row for row in query(connection, _STEPS)}
    return [made[step.id] for step in resolved.steps if step.id in made]


def _differences(resolved: ResolvedRun, connection: Any, other: Any) -> Iterator[str]:
    """A line per table of the run whose rows are other ones where it was resumed."""
    stages = [step.stage for step in resolved.steps if step.stage is not None]
    for table in dict.fromkeys(stage.writes.table for stage in stages):
        rows = f"from {table} order by all"
        if query(connection, rows) != query(other, rows):
            yield f"{table}: its rows were others without the kill: {_ANEW}"


def check_parts(found: PluginCheck) -> Iterator[Part]:
    """Tables of what it brings and of the steps of each run; lines of what the kill cost."""
    yield Heading("what it brings", 2)
    yield Table(found.brings, left=("kind", "name", "used"))
    for run in found.runs:
        yield from _run_parts(run)
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
