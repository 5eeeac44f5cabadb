"""`gistmill.testing`: its document, its words, and a mistake of a plugin in one line."""

import json
from pathlib import Path

import pytest

import gistmill
from gistmill import testing


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that brings nothing, as what it brought would stay in the process: methods are ours."""
    return tmp_path_factory.mktemp("brings_nothing")


@pytest.mark.slow
def test_the_rows_of_every_table(plugin: Path) -> None:
    replies = [
        {"prompt": "answer", "match": "Who dug", "reply": "Tom dug it."},
        {"prompt": "answer", "reply": "Answer: (B)", "finish_reason": "length"},
    ]
    rows = testing.run(plugin, "full_text", replies)
    answers = [(a["question_id"], a["answer"], a["problem"]) for a in rows["answers"]]
    assert answers == [("when", "Answer: (B)", "truncated"), ("who", "Tom dug it.", None)]
    assert rows["documents"][0]["num_words"] == 48 == 4 * 12
    assert all("Her brother Tom" in json.dumps(call["messages"]) for call in rows["calls"])


@pytest.mark.slow
def test_words_go_before_its_own(plugin: Path, tmp_path: Path) -> None:
    """Pages of 24 words have two of its paragraphs; the same call again resumes the run."""
    own = ("bm25(top_k=1)", None, "memory.words=24", "run=own")
    rows = testing.run(plugin, *own, folder=tmp_path)
    assert [page["num_words"] for page in rows["pages"]] == [24, 24]
    assert (tmp_path / "warehouse" / "runs" / "own").is_dir()
    assert len(rows["calls"]) == 2 and testing.run(plugin, *own, folder=tmp_path) == rows


def test_another_memory_takes_the_words_of_its_own_away(plugin: Path) -> None:
    rows = testing.run(plugin, "bm25(top_k=1)", None, "memory=tokens")
    assert [page["num_words"] for page in rows["pages"]] == [48], "all of it in one segment"


@pytest.mark.slow
def test_a_request_without_a_reply(plugin: Path) -> None:
    rows = testing.run(plugin, "full_text", [])
    assert {row["problem"] for row in rows["answers"]} == {"engine_failed"}


def test_a_mistake(plugin: Path, tmp_path: Path) -> None:
    with pytest.raises(gistmill.UsageError, match="no such folder"):
        testing.run(tmp_path / "missing", "full_text")
    with pytest.raises(gistmill.UsageError, match="replies"):
        testing.run(plugin, "full_text", [{"promt": "answer"}])
