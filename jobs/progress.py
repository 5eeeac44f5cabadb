"""How far a run is: a bar with ETA in a terminal, plain lines otherwise. On standard error."""

import sys
import time
from collections import Counter
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from pipeline.worker import Summary

_SECONDS_BETWEEN_LINES = 15.0


class Progress:
    """Counts the units of a run as documents come back."""

    def __init__(self, num_units: int) -> None:
        self._num_units = num_units
        self.total = Summary("")
        self.workers: dict[str, Counter[str]] = {}  # phase -> worker -> units committed
        self._started = self._printed = time.monotonic()
        self._phase = ""
        self._console = Console(file=sys.stderr)
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("units  {task.fields[rates]}  ETA"),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._task = self._bar.add_task("", total=num_units, rates="")

    def __enter__(self) -> Self:
        if self._console.is_terminal and self._num_units:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._bar.stop()
        elif self._num_units:
            self._print()

    def start(self, phase: str, num_documents: int) -> None:
        """A phase begins on so many documents."""
        self._phase = phase
        self._bar.update(self._task, description=phase)
        if not self._console.is_terminal:
            self._console.print(f"{phase}: {num_documents} documents", highlight=False)

    def add(self, summary: Summary) -> None:
        """A document is through the phase."""
        self.workers.setdefault(self._phase, Counter())[summary.worker] += summary.units
        total = self.total
        for name in ("units", "rows", "problems", "tokens"):
            setattr(total, name, getattr(total, name) + getattr(summary, name))
        for step_id, calls in summary.calls.items():
            total.calls[step_id] = total.calls.get(step_id, 0) + calls
        self._bar.update(self._task, completed=self.total.units, rates=self._rates())
        now = time.monotonic()
        if not self._console.is_terminal and now - self._printed > _SECONDS_BETWEEN_LINES:
            self._printed = now
            self._print()

    def _print(self) -> None:
        done = f"{self.total.units}/{self._num_units} units"
        self._console.print(f"{self._phase}: {done}, {self._rates()}", highlight=False)

    def _rates(self) -> str:
        seconds = max(time.monotonic() - self._started, 1e-9)
        total, calls = self.total, sum(self.total.calls.values())
        return (
            f"{total.problems} problems, {total.rows / seconds:.0f} rows/s, "
            f"{calls / seconds:.1f} calls/s, {total.tokens / seconds:.0f} tokens/s"
        )
