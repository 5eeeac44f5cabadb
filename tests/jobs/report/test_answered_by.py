"""The model that a server says it is: kept per call, and said where it is not the one asked for."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.command import gistmill, sql, succeed
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.texts.small_corpus import UNIFORM, document, question, write

NUM_CALLS = 3 + 1  # gists of three pages, an answer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answered_by", "said"),
    [
        ((" m-2024-08-06 ", " m-2024-08-06 "), f"m-2024-08-06 ({NUM_CALLS} calls)"),
        ((None, "m-new"), "m (3 calls), m-new (1 calls)"),
    ],
)
def test_another_model_is_one_line_and_a_mark(
    tmp_path: Path, answered_by: tuple[str | None, str], said: str
) -> None:
    """`answered_by`: gists, and the answer."""
    write(tmp_path / "corpus", [document(1)], [question(1, of=1)])
    warehouse = f"warehouse={tmp_path / 'w'}"

    def answer(body: dict[str, Any]) -> Answer:
        return Answer(model=answered_by["number 1 about" in body["messages"][-1]["content"]])

    with LoopbackServer(answer=answer) as server:
        words = (
            "run", "run=night", "corpus=tables", f"corpus.path={tmp_path / 'corpus'}", *UNIFORM,
            "rater=none", "methods=gist_only", warehouse, "engine=openai",
            f"engine.base_url={server.url}", "engine.model=m", "engine.sequences=1",
        )  # fmt: skip
        told = gistmill(*words).stderr
        assert gistmill(*words).stderr.count("was answered by") == 1  # nothing is left to do
    line = f"openai:m was answered by {said}, as the server says"
    assert told.count(line) == told.count("answered by") == 1
    assert f"OTHER MODEL: {line}." in succeed("report", warehouse)
    assert f"OTHER MODEL: {line}." in (tmp_path / "w/runs/night/report.md").read_text()
    assert f"\n- {line}\nReplies are" in succeed("cite", warehouse)
    rows = sql(tmp_path / "w", "from answered_by")
    assert {row["answered_by"] for row in rows} == {(name or "m").strip() for name in answered_by}
