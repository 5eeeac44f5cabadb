"""The figures of the chaos tests, one table at the end."""

import os
import sys
from typing import Any

import pytest

_FIGURES = "figures"


@pytest.fixture
def figures(record_property: Any) -> Any:
    """Call it with the figures of one trial; they travel with the test's report."""

    def add(**values: Any) -> None:
        record_property(_FIGURES, values)

    return add


def pytest_runtest_logreport(report: Any) -> None:
    """Print the figures of a trial when it ends: the whole takes hours and may be interrupted."""
    if report.when == "call" and os.environ.get("PYTEST_XDIST_WORKER") is None:
        for name, values in report.user_properties:
            if name == _FIGURES:
                sys.stderr.write(f"\n{report.nodeid} {report.outcome}: {values}\n")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [r for key in ("passed", "failed") for r in terminalreporter.getreports(key)]
    rows = [value for r in reports for name, value in r.user_properties if name == _FIGURES]
    for what in dict.fromkeys(row["what"] for row in rows):
        own = [row for row in rows if row["what"] == what]
        names = [name for name in own[0] if name != "what"]
        total = {name: _total([row.get(name) for row in own]) for name in names}
        terminalreporter.section(f"chaos: {what}")
        for line in [dict(zip(names, names, strict=True)), *own, total]:
            cells = (str(line.get(name, "")) for name in names)
            terminalreporter.write_line("  ".join(cell.rjust(9) for cell in cells))


def _total(values: list[Any]) -> Any:
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    return sum(numbers) if len(numbers) == len(values) else "all"
