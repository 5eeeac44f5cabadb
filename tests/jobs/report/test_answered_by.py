"""The model that a server says it is: kept per call, and said where it is not the one asked for."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.command import gistmill, sql, succeed
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.texts.small_corpus import UNIFORM, document, question, write

NUM_CALLS = 3 + 1  # gists of three pages, an answer


def run(folder: Path, server: LoopbackServer) -> str:
    """A run's lines on standard error."""
    write(folder / "corpus", [document(1)], [question(1, of=1)])
    done = gistmill(
        "run", "run=night", "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM,
        "rater=none", "methods=gist_only", f"warehouse={folder / 'w'}", "engine=openai",
        f"engine.base_url={server.url}", "engine.model=m", "engine.sequences=1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


def report(folder: Path) -> str:
    return succeed("report", f"warehouse={folder / 'w'}")


@pytest.mark.slow
def test_another_model_is_one_line_and_a_mark(tmp_path: Path) -> None:
    with LoopbackServer(answer=lambda body: Answer(model=" m-2024-08-06 ")) as server:
        told = run(tmp_path, server)
        assert run(tmp_path, server).count("was answered by") == 1  # nothing is left to do
    line = f"openai:m was answered by m-2024-08-06 ({NUM_CALLS} calls), as the server says"
    assert told.count(line) == told.count("answered by") == 1
    assert f"OTHER MODEL: {line}." in report(tmp_path)
    assert f"OTHER MODEL: {line}." in (tmp_path / "w/runs/night/report.md").read_text()
    assert f"\n- {line}\nReplies are" in succeed("cite", f"warehouse={tmp_path / 'w'}")


@pytest.mark.slow
def test_two_models_of_one_run_are_named(tmp_path: Path) -> None:
    def other_for_answers(body: dict[str, Any]) -> Answer:
        is_answer = "number 1 about" in body["messages"][-1]["content"]
        return Answer(model="m-new" if is_answer else None)

    with LoopbackServer(answer=other_for_answers) as server:
        told = run(tmp_path, server)
    line = "openai:m was answered by m (3 calls), m-new (1 calls), as the server says"
    assert line in told and f"OTHER MODEL: {line}." in report(tmp_path)
    rows = sql(tmp_path / "w", "from answered_by order by calls")
    assert [(row["answered_by"], row["calls"]) for row in rows] == [("m-new", 1), ("m", 3)]
