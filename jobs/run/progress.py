"""The progress of a run: a live bar in a terminal, else a line per minute; and for `status`."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, Self

from jobs.output.print_tables import counted, printable
from pipeline.core.calls import UsageCounters
from pipeline.worker.progress import Summary

_SECONDS_BETWEEN_LINES = 60.0
_SECONDS_OF_RATE = 300.0  # that the time left is estimated by
_BAR_WIDTH = 20
_NAMES = [field.name for field in fields(UsageCounters)]


class Progress:
    """The progress of one launch. `publish` gets each new state; `refused` is `Advisory.state`."""

    def __init__(
        self,
        num_units: int,
        publish: Callable[[Mapping[str, Any]], None] = lambda state: None,
        clock: Callable[[], float] = time.monotonic,
        refused: Callable[[], Mapping[str, Any] | None] = lambda: None,
    ) -> None:
        self._num_units = num_units
        self._publish, self._clock, self._refused = publish, clock, refused
        self.calls: Counter[str] = Counter()  # by step_id, of finished documents
        self.workers: dict[str, Counter[str]] = {}  # phase -> worker -> units committed
        self.ended: str | None = None  # why the run ended early; None if it did not
        self._phase = ""
        self._before: Counter[str] = Counter()  # usage counters of earlier phases
        self._alive: dict[str, Counter[str]] = {}  # of this phase's workers, by last heartbeat
        self._gone: set[str] = set()  # workers of earlier phases
        self._finished: Counter[str] = Counter()  # of this phase's finished documents
        self._inside: list[Mapping[str, Any]] = []  # of documents in flight
        self._findings: set[str] = set()  # those that are printed
        self._waiting_for = ""  # the server that requests wait for
        self._words = 0.0  # of finished documents: they differ a hundredfold in length
        self._started = self._printed = clock()
        # Imported here: they take a moment, and `status`, which prints a line of this module, needs
        # none of them.
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn
        from rich.progress import Progress as RichProgress
        from rich.table import Column

        # As much as a terminal's width leaves.
        one_line = Column(no_wrap=True, overflow="ellipsis")
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(_BAR_WIDTH, "dim", "none", "none", "none"),
            TaskProgressColumn(style="none"),
            TextColumn("{task.fields[parts]}", markup=False, table_column=one_line),
            console=Console(file=sys.stderr),
            get_time=clock,
            speed_estimate_period=_SECONDS_OF_RATE,
        )
        self._bar.add_task("starting", total=1.0, parts="")
        (self._task,) = self._bar.tasks
        self._is_terminal = self._bar.console.is_terminal

    def __enter__(self) -> Self:
        if self._is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._is_terminal:
            self._bar.stop()
        else:
            self._print(progress_line(self.state()))

    def start(self, phase: str, num_documents: int, words: float) -> None:
        """Start a phase or execution of so many documents, or chunks of their questions."""
        self._gone |= set(self._alive)
        self._before += self._phase_total()
        self._alive, self._finished, self._inside = {}, Counter(), []
        self._phase, self._words, self._started = phase, 0.0, self._clock()
        self._bar.reset(self._task.id, total=words, description=phase, parts="")
        if not self._is_terminal:
            what = "chunks of questions" if phase.endswith("questions") else "documents"
            self._print(f"{phase}: {num_documents} {what}")

    def took(self) -> dict[str, Any]:
        return {
            "phase": self._phase,
            "seconds": round(self._clock() - self._started, 3),
            "workers": len(self.workers.get(self._phase, ())),
            **_counts(self._phase_total()),
        }

    def add(self, summary: Summary) -> None:
        self._print_findings(summary.findings)
        self.workers.setdefault(self._phase, Counter())[summary.worker] += summary.units
        self.calls.update(summary.asked)
        self._finished.update(_counts(vars(summary)))
        self._words += summary.words
        parts = [part for part in self._inside if part["document_id"] == summary.document_id]
        if parts:  # until the next heartbeat: the part of it that is finished
            self._inside.remove(max(parts, key=itemgetter("share")))
        self._show()

    def alive(self, workers: Sequence[Mapping[str, Any]]) -> None:
        """Update from the workers' heartbeats. The last one of a crashed worker still counts."""
        for worker in workers:
            self._print_findings(worker.get("findings", {}))
        of_phase = [worker for worker in workers if worker["worker"] not in self._gone]
        self._alive |= {worker["worker"]: Counter(_counts(worker)) for worker in of_phase}
        self._waiting_for = next(filter(None, (w.get("waiting_for") for w in workers)), "")
        self._inside = [document for worker in of_phase for document in worker.get("inside", ())]
        self._show()
        self._publish(self.state())

    def _print_findings(self, findings: Mapping[str, str]) -> None:
        for name in (name for name in findings if name not in self._findings):
            self._findings.add(name)
            self._print(printable(findings[name]))

    def state(self) -> dict[str, Any]:
        seconds = max(self._clock() - self._started, 1e-9)
        done = self._phase_total()
        total = self._before + done
        left = self._task.time_remaining if self._task.completed else None
        ends = None if left is None else datetime.now() + timedelta(seconds=left)
        return {
            "phase": self._phase,
            "share": round(min(self._task.percentage, 100.0) / 100, 4),
            "seconds_left": left and round(left),
            "ends_at": ends and ends.isoformat(timespec="minutes"),
            "units": total["units"],
            "planned_units": self._num_units,
            "rows_per_second": round(done["rows"] / seconds, 2),
            "calls_per_second": round(done["calls"] / seconds, 2),
            "tokens_per_second": round((done["prompt_tokens"] + done["reply_tokens"]) / seconds, 1),
            "cached_share": round(done["cached_tokens"] / max(done["prompt_tokens"], 1), 4),
            "problems": total["problems"],
            "calls": total["calls"],
            "tokens": total["prompt_tokens"] + total["reply_tokens"],
            "refused": self._refused(),
            "waiting_for": self._waiting_for,
            # Of several documents in flight, the share shows the progress.
            "inside": self._inside[0] if len(self._inside) == 1 else None,
        }

    def _phase_total(self) -> Counter[str]:
        """The larger count: of heartbeats, which are late, or of finished documents."""
        return sum(self._alive.values(), Counter[str]()) | self._finished

    def _show(self) -> None:
        words = self._words + sum(part["words"] * part["share"] for part in self._inside)
        self._bar.update(self._task.id, completed=words)
        if self._is_terminal:
            self._bar.update(self._task.id, parts=_parts(self.state()))
        elif self._clock() - self._printed > _SECONDS_BETWEEN_LINES:
            self._printed = self._clock()
            self._print(progress_line(self.state()))

    def _print(self, line: str) -> None:
        self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)


def _counts(values: Mapping[str, Any]) -> dict[str, int]:
    return {name: values[name] for name in _NAMES}


def progress_line(state: Mapping[str, Any]) -> str:
    return f"{state['phase']} {100 * state['share']:.0f}%: {_parts(state)}"


def _parts(state: Mapping[str, Any]) -> str:
    document, refusal = document_text(state.get("inside")), ""
    if refused := state.get("refused"):
        refusal = f"could not be written for {refused['seconds']:.0f} s ({refused['error']})"
    hours, minutes = divmod(round((state["seconds_left"] or 0.0) / 60), 60)
    if hours:
        left = f"{hours} h {minutes} min"
    else:
        left = f"{minutes} min" if minutes else "less than a minute"
    parts = (
        (state["ends_at"], f"ends {str(state['ends_at'])[11:]}, in {left}"),
        (state.get("waiting_for"), f"waiting for {state.get('waiting_for')}"),
        (refusal, f"progress {refusal}"),
        (document, document),
        (True, f"{state['units']}/{state['planned_units']} units"),
        (state["problems"], counted(state["problems"], "problem")),
        (state["tokens_per_second"], f"{state['tokens_per_second']:.0f} tokens/s"),
        (state["cached_share"], f"{100 * state['cached_share']:.0f}% cached"),
        (state["rows_per_second"], f"{state['rows_per_second']:.4g} rows/s"),
    )
    return printable(", ".join(text for is_shown, text in parts if is_shown))


def document_text(document: Mapping[str, Any] | None) -> str:
    """The progress of a document by `DocumentProgress.state`: `pages 37 of about 300`, or ""."""
    if not document or not document.get("about"):
        return ""
    return f"{document['table']} {document['done']} of about {document['about']}"
