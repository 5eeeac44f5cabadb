"""The commands of README and docs, executed for the tests that look at what they print."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.docs.executed_pages import Outcome, execute
from tests.support.fork_server import ForkServer


@pytest.fixture(scope="module")
def without_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a command that starts at once."""
    server = ForkServer(tmp_path_factory.mktemp("command"))
    yield server.bin
    server.end()


@pytest.fixture(scope="module")
def executed(
    tmp_path_factory: pytest.TempPathFactory, without_ray: Path
) -> Callable[[str], Outcome]:
    """A page's outcome by its name; no page runs twice in a file of tests."""
    done: dict[str, Outcome] = {}

    def outcome(name: str) -> Outcome:
        if name not in done:
            folder = tmp_path_factory.mktemp(Path(name).stem) / "here"
            done[name] = execute(name, folder, outcome, without_ray)
        return done[name]

    return outcome
