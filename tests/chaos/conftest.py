"""The figures of the chaos tests, a line for each trial."""

import os
import sys
from typing import Any

import pytest


@pytest.fixture
def figures(record_property: Any) -> Any:
    """Call it with the figures of one trial; they travel with the test's report."""
    return lambda **values: record_property("figures", values)


def pytest_runtest_logreport(report: Any) -> None:
    """Print the figures of a trial when it ends: the whole takes hours and may be interrupted."""
    # Not of its call, as fixtures have figures, too.
    if report.when == "teardown" and os.environ.get("PYTEST_XDIST_WORKER") is None:
        for name, values in report.user_properties:
            if name == "figures":
                sys.stderr.write(f"\n{report.nodeid}: {values}\n")
