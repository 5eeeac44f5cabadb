"""The commands of README and docs, executed for the tests that look at what they print."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.docs.executed_pages import Outcome, execute


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Outcome]:
    """A page's outcome by its name; no page runs twice in a file of tests."""
    done: dict[str, Outcome] = {}

    def outcome(name: str) -> Outcome:
        if name not in done:
            folder = tmp_path_factory.mktemp(Path(name).stem) / "here"
            done[name] = execute(name, folder, outcome)
        return done[name]

    return outcome
