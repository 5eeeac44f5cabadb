"""`gistmill status`: what of a run is done, running and failed, from its files alone."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from rich.console import Console

from jobs.config.options import ReadOptions
from jobs.output.print_tables import Part, Table, counted, print_found, print_line
from jobs.problems.causes import cause_lines, reply_findings
from jobs.run.progress import document_text, progress_line
from pipeline.files.lease import RUN, holder
from pipeline.store.sql.accounts import parts_of_run
from pipeline.store.sql.connection import query

Rows = list[dict[str, Any]]
_MOST_LINES = 10  # of problems, and of workers
_COUNTS = ("inputs", "ok", "problem", "skipped", "not_done", "calls", "prompt_tokens",
           "cached_tokens", "reply_tokens", "seconds")  # fmt: skip
_STEPS = f"select stage, method, repeat, step_id, {', '.join(_COUNTS)} from runs"


def show_status(options: ReadOptions, seconds: float | None = None) -> None:
    """Print a row per stage, a line per cause of problems, and the workers. With `seconds`, print
    it again after each pause of so many seconds, in a terminal on a cleared screen, until the run
    is no longer at work."""
    for look in count():
        status = _status(options)
        if look:
            print_line()
            Console().clear()  # nothing in a pipe
        print_found(status, status_parts, options.as_json)
        if seconds is None or not (status["driver"] or status["alive"]):
            return
        time.sleep(seconds)


def _status(options: ReadOptions) -> dict[str, Any]:
    with options.opened() as (folder, connection):
        facts = folder.report_facts()
        parts = [f"{_STEPS} where {part}" for part in parts_of_run(connection)]
        steps = [row for part in parts for row in query(connection, part)]
        index_of = {stage: index for index, stage in enumerate(facts["stages"])}
        steps.sort(key=lambda step: (index_of.get(step["stage"], len(index_of)),
                                     step["method"] or "", step["repeat"]))  # fmt: skip
        left_out = query(connection, "from left_out")
        has_problems = any(step["problem"] for step in steps)
        problems = [*cause_lines(connection)] if has_problems else []
        findings = reply_findings(connection, facts)
    progress, alive = folder.at_work()
    return {
        "run": folder.path.name,
        "complete": not any(step["not_done"] for step in steps),
        "steps": steps,
        "problems": problems,
        "findings": findings,  # about the replies of models
        "driver": holder(folder.path, RUN),
        "alive": alive,
        "progress": progress,
        "ended": folder.why_ended(),
        "left_out": [*left_out, *folder.left_out.rows],
    }


def status_parts(status: Mapping[str, Any]) -> Iterator[Part]:
    yield "\n".join(_head(status))
    if progress := status["progress"]:
        yield progress_line(progress)
    yield _stages(status["steps"])
    if problems := [*status["problems"], *status["findings"]]:
        yield _first(problems)
    if workers := [*map(_at_work, status["alive"])]:
        yield _first(workers)


def _head(status: Mapping[str, Any]) -> Iterator[str]:
    left = sum(step["not_done"] for step in status["steps"])
    state = f"{left} inputs not done" if left else "complete"
    if bad := sum(step["problem"] for step in status["steps"]):
        state += f", {counted(bad, 'input')} with a problem"
    driver, alive = status["driver"], status["alive"]
    is_at_work = driver or alive
    if driver:
        host, _, pid = driver.rpartition("-")
        state += f", executed on {host} (process {pid})"
    if is_at_work or left:
        state += f", {counted(len(alive), 'worker')} at work"
    yield f"run {status['run']}: {state}"
    if status["ended"] and left and not is_at_work:
        yield f"the last launch ended early: {status['ended']}"


def _stages(steps: Rows) -> Table:
    """`seconds` is the sum over all calls."""
    rows: dict[str, Counter[str]] = {}
    for step in steps:
        row = rows.setdefault(step["stage"], Counter())
        row.update({"steps": 1, **{name: step[name] or 0 for name in _COUNTS}})
    names = [name for name in ("steps", *_COUNTS) if any(round(row[name]) for row in rows.values())]
    shown = [
        {"stage": stage, **{name.replace("_", " "): round(row[name]) for name in names}}
        for stage, row in rows.items()
    ]
    return Table(shown)


def _first(lines: Sequence[str]) -> str:
    left = len(lines) - _MOST_LINES
    more = [f"and {left} more lines like these; --json has all"] if left > 0 else []
    return "\n".join([*lines[:_MOST_LINES], *more])


def _at_work(worker: Mapping[str, Any]) -> str:
    """A worker, and the document that it has had in flight for the longest time."""
    documents = worker["documents"]
    oldest = max(documents, key=documents.__getitem__, default=None)
    line = f"worker {worker['worker']}: "
    if oldest is None:
        line += "engine starting" if worker.get("is_starting") else "waiting"
    else:
        line += f"{len(documents)} documents, " if len(documents) > 1 else ""
        line += f"{' '.join(oldest.split())} for {documents[oldest]:.0f} s"
        inside = [x for x in worker.get("inside", ()) if x["document_id"] == oldest]
        line += "".join(f", {rows}" for x in inside[:1] if (rows := document_text(x)))
    return f"{line}; waiting for {away}" if (away := worker.get("waiting_for")) else line
