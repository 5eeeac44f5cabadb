"""The text of `gistmill status`, fitted to a screen of a given size."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.filesize import decimal

from jobs.output.cells import Table, counted, printable
from jobs.output.markdown import markdown
from jobs.output.terminal import fitted_to_terminal
from jobs.run.progress_line import document_text, progress_line, refusal_text

Rows = list[dict[str, Any]]
_NO_LIMIT = 10**6
_COUNTS = ("inputs", "ok", "problem", "skipped", "not_done", "calls", "prompt_tokens",
           "cached_tokens", "reply_tokens", "seconds")  # fmt: skip
# Columns that are left out where the table is too wide, the first one first.
_SPARED = ("seconds", "cached tokens", "steps", "reply tokens", "skipped", "prompt tokens", "calls",
           "ok")  # fmt: skip


def status_lines(
    found: Mapping[str, Any], size: tuple[int, int] | None = None, steps: bool = False
) -> list[str]:
    """The status that `jobs/warehouse/status.py` has read: a row per stage, or with `steps` per
    step, problems and workers. `size`: of a terminal, in columns and lines, which are enough for
    all but the rows of steps."""
    width, height = size or (_NO_LIMIT, _NO_LIMIT)

    def draw(*tables: Table) -> list[str]:
        return (fitted_to_terminal(tables, width) if size else markdown(tables)).splitlines()

    lines = [*_head(found, width), ""]
    if progress := found["progress"]:
        lines += [progress_line(progress, width), ""]
    lines += draw(_steps(found["steps"]) if steps else _stages(found["steps"]))
    workers = [*map(_at_work, found["alive"]), *_refused(found["alive"], found["silent"])]
    if problems := found["problems"]:
        table = ["", *draw(Table(problems, left=("problem",)))]
        fits = len(lines) + len(table) + len(workers) <= height
        lines += table if fits else [_problems(problems)]
    lines += _first(workers, max(height - len(lines), 2))
    return [_cut(printable(line), width) for line in lines]


def not_done(steps: Rows) -> int:
    return sum(step["not_done"] for step in steps)


def _head(found: Mapping[str, Any], width: int) -> list[str]:
    state = "complete" if found["complete"] else f"{not_done(found['steps'])} inputs not done"
    first, who = f"run {found['run']}: {state}", _who(found["driver"], found["alive"])
    both = f"{first}, {who}"
    head = [both] if len(both) <= width else [first, who]
    if job := found["job"]:
        head.append(f"job {job['id']}: {job['status'].lower()}")
    if (calls := found["calls"])["bytes"]:
        of_all, sent = (decimal(calls[name]) for name in ("bytes", "prompt_bytes"))
        head.append(_cut(f"calls of the warehouse: {of_all}, {sent} of it what was sent", width))
    return head


def _who(driver: str | None, alive: Rows) -> str:
    """A line about the command that executes the run, and its workers by machine."""
    hosts = Counter(str(worker["worker"]).rpartition("-")[0] for worker in alive)
    workers = f"{counted(len(alive), 'worker')} at work"
    if hosts:
        workers += f" ({', '.join(f'{number} on {host}' for host, number in hosts.items())})"
    if driver is None:
        return workers
    host, _, pid = driver.rpartition("-")
    return f"executed on {host} (process {pid}), {workers}"


def _steps(steps: Rows) -> Table:
    return Table(steps, left=("method", "step_id"))


def _stages(steps: Rows) -> Table:
    """A row per stage, without columns that no stage has a value of; `seconds` is the sum over all
    calls."""
    rows: dict[str, Counter[str]] = {}
    for step in steps:
        row = rows.setdefault(step["stage"], Counter())
        row.update({"steps": 1, **{name: step[name] or 0 for name in _COUNTS}})
    names = [name for name in ("steps", *_COUNTS) if any(round(row[name]) for row in rows.values())]
    shown = [
        {"stage": stage, **{name.replace("_", " "): round(row[name]) for name in names}}
        for stage, row in rows.items()
    ]
    return Table(shown, spare=_SPARED)


def _problems(problems: Rows) -> str:
    """The kinds of problems on one line, the most frequent first."""
    most = sorted(problems, key=lambda row: -row["inputs"])
    return "problems: " + ", ".join(f"{p['inputs']} {p['problem']} ({p['stage']})" for p in most)


def _first(lines: Sequence[str], room: int) -> list[str]:
    """The lines, or the first of them and the number of the others."""
    if len(lines) <= room:
        return list(lines)
    shown = lines[: room - 1]
    return [*shown, f"and {len(lines) - len(shown)} more lines like these; --json has all"]


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
        of_it = [one for one in worker.get("inside", ()) if one["document_id"] == oldest]
        line += "".join(f", {rows}" for one in of_it[:1] if (rows := document_text(one)))
    return f"{line}; waiting for {away}" if (away := worker.get("waiting_for")) else line


def _refused(alive: Rows, silent: Mapping[str, float]) -> Iterator[str]:
    """Lines about workers whose heartbeats storage refuses or that send none."""
    for worker in alive:
        if worker.get("refused"):
            yield f"worker {worker['worker']}: its heartbeat {refusal_text(worker['refused'])}"
    for name, seconds in silent.items():
        yield f"worker {name}: no heartbeat for {seconds:.0f} s; it died, hangs or cannot write"


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"
