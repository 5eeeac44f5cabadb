"""`gistmill plugin check`: runs a plugin on one document, kills that run, resumes it, and says what
came of it."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.graph.read_run import read_run
from jobs.graph.resolved_run import ResolvedRun
from jobs.plugin.brought import brought, used, words_of, words_of_each
from jobs.plugin.counted_run import counted_run, killed_run, requests
from jobs.problems.cause_lines import cause_lines
from pipeline.asking.readers import num_slots
from pipeline.core.errors import CommandError, UnsetError, UsageError
from pipeline.core.plugins import load_plugins
from pipeline.core.registry import is_ours
from pipeline.store import connect
from pipeline.store.sql.connection import query
from pipeline.work.stage import ROLES

Rows = list[dict[str, Any]]
_STEPS = """
select step_id, stage, version, inputs, ok, skipped, problem
from accounting join steps using (step_id)"""
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
    """Rows of what the plugin `brings`, and the runs in which it was `used`. `not_run`: a line for
    each experiment that cannot be tried; `wrong`: those of the runs."""

    brings: Rows
    runs: Sequence[CheckedRun]
    not_run: Sequence[str]
    wrong: Sequence[str]


def check_plugin(folder: Path, given: Sequence[str]) -> PluginCheck:
    """Check the plugin in a folder. `given`: words of a run, which take the place of others.

    Raises UsageError for a mistake in the plugin that shows before a run, another
    CommandError where a run ends early.
    """
    load_plugins([str(folder)])
    found = brought(folder.resolve())
    if not found:
        raise UsageError(f"{folder}: brings nothing; gistmill plugin new writes one that works")
    in_runs, not_run = set[tuple[str, str]](), list[str]()
    runs = [_checked(words, in_runs) for words in words_of(folder, found, given)]
    for name, words in words_of_each("experiment", folder, found, given).items():
        with _or_why_not(f"experiment={name}", not_run, UnsetError):
            resolved = read_run(words)
            with _or_why_not(f"experiment={name}", not_run, CommandError):
                _refuse_models(resolved)
                runs.append(_checked(words, in_runs))
    brings = [
        {"kind": kind, "name": name, "used": "yes" if (kind, name) in in_runs else "no"}
        for kind, name in found
    ]
    wrong = [line for run in runs for line in run.wrong]
    return PluginCheck(brings, runs, not_run, [*dict.fromkeys(wrong)])


@contextmanager
def _or_why_not(what: str, not_run: list[str], error: type[CommandError]) -> Iterator[None]:
    """Add a line to `not_run` where the block raises such an error."""
    try:
        yield
    except error as why:
        not_run.append(f"{what} is not tried: {why}; a check takes such words with {what}")


def _refuse_models(resolved: ResolvedRun) -> None:
    """Raise UsageError if the run would ask a model of one of our engines."""
    engines = [engine for role in ROLES for engine in resolved.config.engines(role)]
    if names := [one.name for one in engines if is_ours(type(one)) and one.is_model]:
        raise UsageError(f"it asks a model (engine {names[0]})")


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
