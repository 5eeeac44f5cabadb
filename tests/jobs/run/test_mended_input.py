"""An entry that could not be used is mended, or deleted, and the same command goes on."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import gistmill, sql, succeed
from tests.support.texts.small_corpus import UNIFORM, document, question, write

DOCUMENTS = [document(number) for number in (1, 2, 3)]
QUESTIONS = [question(number, of=number) for number in (1, 2, 3)]
D, Q = "documents.jsonl", "questions.jsonl"
SHOWN = (
    "select document_id, problem from documents order by all",
    "select question_id, problem from questions order by all",
    "select question_id, answer, problem from answers order by all",
)
Edit = Callable[[str], str]


def without(key: str) -> Edit:
    def edit(line: str) -> str:
        return json.dumps({**json.loads(line), key: None})

    return edit


BROKEN: dict[str, tuple[str, int, Edit]] = {
    "a torn document": (D, 1, lambda line: line[:-20]),
    "a torn question": (Q, 1, lambda line: line[:-5]),
    "a document's id twice": (D, 2, lambda line: line.replace("d3", "d1")),
    "a question's id twice": (Q, 2, lambda line: line.replace("q3", "q1")),
    "a document without a text": (D, 1, without("text")),
    "a question without a text": (Q, 1, without("question")),
    "a question of no document": (Q, 1, lambda line: line.replace("d2", "d9")),
}


def words(corpus: Path, warehouse: Path) -> list[str]:
    return [
        "run", "run=night", "corpus=tables", f"corpus.path={corpus}", *UNIFORM, "rater=none",
        "methods=gist_only", "cluster=inline", "max_problem_rate=1", f"warehouse={warehouse}",
    ]  # fmt: skip


def shown(warehouse: Path) -> list[list[dict[str, Any]]]:
    return [sql(warehouse, statement) for statement in SHOWN]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    write(tmp_path / "corpus", DOCUMENTS, QUESTIONS)
    return tmp_path / "corpus"


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("how", ["mended", "deleted"])
@pytest.mark.parametrize("what", BROKEN)
def test_the_same_command_goes_on(what: str, how: str, corpus: Path, tmp_path: Path) -> None:
    """It shows what a new run of the mended files does; what was good is not read again."""
    name, index, edit = BROKEN[what]
    before, line, after = around((corpus / name).read_text().splitlines(keepends=True), index)
    (corpus / name).write_text(before + edit(line.removesuffix("\n")) + "\n" + after)
    run = words(corpus, tmp_path / "w")
    assert "bad_input" in gistmill(*run).stderr
    (corpus / name).write_text(before + (line if how == "mended" else "") + after)
    done = gistmill(*run)
    assert done.returncode == 0, done.stderr
    assert ("reading: 1 documents\n" in done.stderr) == (how == "mended")
    assert "reading: 2" not in done.stderr
    succeed(*words(corpus, tmp_path / "new"))
    assert shown(tmp_path / "w") == shown(tmp_path / "new")


def around(lines: list[str], index: int) -> tuple[str, str, str]:
    return "".join(lines[:index]), lines[index], "".join(lines[index + 1 :])
