"""Every other verb that writes is killed at one change of a file after another, and repeated: it
ends as one that nothing has killed."""

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.scenario import SEQUENCES, words
from tests.chaos.server import Server
from tests.chaos.tables import contents, difference
from tests.support.command import gistmill, sql
from tests.support.faulty_storage import gistmill_with

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1200)]

SIGKILL = -9
# What each is given beside the warehouse; FOLDER is where it writes files of its own.
VERBS: dict[str, list[str]] = {
    "rm": ["rm", "run=other", "--yes"],
    "gc": ["gc", "older_than=0"],
    "retry": ["retry", "run=night", "cluster=inline"],
    "rate add": ["rate", "add", "run=night", "rater=extractive", "cluster=inline"],
    "score": ["score", "run=night", "predictions=FOLDER/theirs.jsonl", "method=theirs",
              "cluster=inline"],
    "export report": ["export", "report", "run=night", "to=FOLDER/report.csv", "--force"],
}  # fmt: skip


class Place:
    """A warehouse, and what the verbs write beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.warehouse = folder, folder / "w"

    def copied(self, to: Path) -> "Place":
        return Place(Path(shutil.copytree(self.folder, to)))

    def do(self, given: list[str], kill_at: int | None = None) -> int:
        """The verb's exit code; it is killed at its `kill_at`-th change of a file below."""
        at = [word.replace("FOLDER", str(self.folder)) for word in given]
        at.append(f"warehouse={self.warehouse}")
        fault = {"operation": "change", "path": f"{self.folder}/*", "is_killed": True,
                 "skip": kill_at}  # fmt: skip
        done = gistmill(*at) if kill_at is None else gistmill_with([fault], *at)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode

    def state(self) -> dict[str, Any]:
        """What is compared beside the tables: the rows of every run, and the files written but for
        temporary ones."""
        rows = "select run, count(*) as n from all_answers where run is not null group by all"
        files = [file for file in self.folder.glob("[!.]*") if file.is_file()]
        return {
            "answers": sql(self.warehouse, f"{rows} order by run", "run=night"),
            "files": {file.name: file.read_bytes() for file in files},
        }


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Place:
    """Two runs; of one some replies were empty, so that `retry` has work."""
    folder = tmp_path_factory.mktemp("base")
    place = Place(folder / "place")
    place.folder.mkdir()
    run = [word for word in words(folder, 2, "max_problem_rate=1.0", "cluster=inline")
           if "_workers=" not in word] + [f"engine.base_url={server.url}"]  # fmt: skip
    server.bad = ["empty"] * 6
    assert place.do(run) == 0
    assert place.do([*run, "run=other", "methods=closed_book"]) == 0
    assert place.do(["export", "predictions", "run=other", "to=FOLDER/theirs.jsonl"]) == 0
    return place


def moments() -> Iterator[int]:
    """Every change at first, then fewer and fewer of them."""
    yield from range(4)
    yield from (4 + number * (number + 1) // 2 for number in count())


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_killed_and_repeated(
    verb: str, base: Place, server: Server, tmp_path: Path
) -> None:
    start = base
    if verb == "gc":  # with the files of a removed run to delete
        start = base.copied(tmp_path / "start")
        assert start.do(VERBS["rm"]) == 0
    whole = start.copied(tmp_path / "whole")
    asked = len(server.asked)
    assert whole.do(VERBS[verb]) == 0
    calls = len(server.asked) - asked
    expected, rows = whole.state(), contents(whole.warehouse)
    kills = repeated = 0
    for kill_at in moments():
        struck = start.copied(tmp_path / str(kill_at))
        asked = len(server.asked)
        code = struck.do(VERBS[verb], kill_at)
        if code == SIGKILL:
            kills += 1
            # A run that is gone already is no run to remove.
            assert struck.do(VERBS[verb]) in ((0, 2) if verb == "rm" else (0,))
        repeated += len(server.asked) - asked - calls
        assert difference(rows, contents(struck.warehouse)) == []
        assert struck.state() == expected
        assert struck.do(["verify"]) == 0
        shutil.rmtree(struck.folder)
        if code != SIGKILL:  # it has fewer changes than that
            break
    assert kills >= 3
    assert repeated <= SEQUENCES * kills
