"""Every other verb that writes is killed at one change of a file after another, and repeated: it
ends as one that nothing has killed."""

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.processes import Processes, Server
from tests.chaos.scenario import SEQUENCES, words
from tests.chaos.tables import contents, difference
from tests.support.command import sql
from tests.support.faulty_storage import environment_with

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1200)]

Add = Callable[..., None]
SIGKILL = -9
# What each is given beside the warehouse; FOLDER is where it writes files of its own.
VERBS: dict[str, list[str]] = {
    "rm": ["rm", "run=other", "--yes"],
    "gc": ["gc", "older_than=0"],
    "retry": ["retry", "run=night", "cluster=inline"],
    "rate add": ["rate", "add", "run=night", "rater=extractive", "cluster=inline"],
    "score": ["score", "run=night", "predictions=FOLDER/theirs.jsonl", "method=theirs",
              "cluster=inline"],
    "export view": ["export", "view", "answers", "run=night", "to=FOLDER/answers.csv", "--force"],
    "export predictions": ["export", "predictions", "run=night", "method=gist_only",
                           "to=FOLDER/ours.jsonl", "--force"],
    "export report": ["export", "report", "run=night", "to=FOLDER/report.csv", "--force"],
}  # fmt: skip


class Place:
    """A warehouse, what the verbs write beside it, and the server that its runs ask."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder, self.server = folder, server
        self.warehouse = folder / "w"

    def copied(self, to: Path) -> "Place":
        shutil.copytree(self.folder, to)
        return Place(to, self.server)

    def do(self, given: list[str], kill_at: int | None = None) -> int:
        """The verb's exit code; it is killed at its `kill_at`-th change of a file below."""
        fault = {"operation": "change", "path": f"{self.folder}/*", "is_killed": True,
                 "skip": kill_at, "process": "*jobs*"}  # fmt: skip
        shim = environment_with([fault]) if kill_at is not None else {}
        processes = Processes(self.folder.parent, shim)
        at = [word.replace("FOLDER", str(self.folder)) for word in given]
        try:
            driver = processes.start(*at, f"warehouse={self.warehouse}")
            code = driver.wait(400)
        finally:
            processes.end_all()
        assert "Traceback" not in processes.errors(), processes.errors()
        return code

    def state(self) -> dict[str, Any]:
        """What is compared beside the tables: the rows of every run, and the files written."""
        rows = "select run, count(*) as n from all_answers where run is not null group by all"
        files = [file for file in self.folder.iterdir() if file.is_file()]
        return {
            "answers": sql(self.warehouse, f"{rows} order by run", "run=night"),
            "files": {file.name: file.read_bytes() for file in files},
        }


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Two runs; of one some replies were empty, so that `retry` has work."""
    folder = tmp_path_factory.mktemp("base")
    with Server(folder / "server") as server:
        place = Place(folder / "place", server)
        place.folder.mkdir()
        run = [word for word in words(folder, 2, "max_problem_rate=1.0", "cluster=inline")
               if "_workers=" not in word] + [f"engine.base_url={server.url}"]  # fmt: skip
        server.mode("empty", 6)
        assert place.do(run) == 0
        assert place.do([*run, "run=other", "methods=closed_book"]) == 0
        theirs = ["export", "predictions", "run=other", "to=FOLDER/theirs.jsonl"]
        assert place.do(theirs) == 0
        yield place


def moments() -> Iterator[int]:
    """Every change at first, then fewer and fewer of them."""
    yield from range(4)
    yield from (4 + number * (number + 1) // 2 for number in count())


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_killed_and_repeated(
    verb: str, base: Place, tmp_path: Path, figures: Add
) -> None:
    start = base
    if verb == "gc":  # with the files of a removed run to delete
        start = base.copied(tmp_path / "start" / "place")
        assert start.do(VERBS["rm"]) == 0
    whole = start.copied(tmp_path / "whole" / "place")
    asked = base.server.num_asked()
    assert whole.do(VERBS[verb]) == 0
    calls = base.server.num_asked() - asked
    expected, rows = whole.state(), contents(whole.warehouse)
    kills = repeated = 0
    for kill_at in moments():
        struck = start.copied(tmp_path / str(kill_at) / "place")
        asked = base.server.num_asked()
        code = struck.do(VERBS[verb], kill_at)
        if code == SIGKILL:
            kills += 1
            # A run that is gone already is no run to remove.
            assert struck.do(VERBS[verb]) in ((0, 2) if verb == "rm" else (0,))
        repeated += base.server.num_asked() - asked - calls
        assert not difference(rows, contents(struck.warehouse))
        assert struck.state() == expected
        assert struck.do(["verify"]) == 0
        shutil.rmtree(struck.folder)
        if code != SIGKILL:  # it has fewer changes than that
            break
    figures(what="verbs killed at a change of a file", verb=verb, kills=kills, repeated=repeated)
    assert kills >= 3
    assert repeated <= SEQUENCES * kills
