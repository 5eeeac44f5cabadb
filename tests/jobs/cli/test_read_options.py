"""Options of reading verbs, and the words in their place: `run=NAME` is `--run NAME`."""

from pathlib import Path

import pytest

from tests.support.command import refused, succeed
from tests.support.runs.warehouse import Warehouse, chunk, step
from tests.support.runs.warehouse import question as question_row


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A warehouse with the runs r, of one question, and s, which was planned last, of none."""
    questions = step("questions")
    warehouse, unit = Warehouse(tmp_path), chunk(questions, "d1", "q1")
    warehouse.commit(questions, unit, [question_row()])
    warehouse.plan("r", (questions, [unit]))
    warehouse.plan("s")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["run=r", "warehouse={}"], ["--run=r", "--warehouse={}"], ["--run", "r", "warehouse={}"],
        ["--warehouse", "{}", "run=r"], ["--json", "run=r", "--warehouse", "{}"],
    ],
)  # fmt: skip
def test_options_and_words_are_the_same(folder: Path, words: list[str]) -> None:
    query = "select count(*) = 1 as is_it from questions"  # holds a =, and is no option
    named = [word.replace("{}", str(folder)) for word in words]
    for written in ([query, *named], [*named, query], [*named, "--", query]):
        assert "is_it" in succeed("sql", *written)
        assert "true" in succeed("sql", *written).casefold()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["report", "day=1"], "'day=1': unknown option; there are warehouse, run, by, where, "),
        (["report", "run"], "'run': unknown option; there are warehouse, run, "),
        (["report", "--day=1"], "No such option: --day"),
        (["report", "run="], "run= is empty; give it a value or leave it out"),
        (["report", "--run="], "run= is empty; give it a value or leave it out"),
        (["report", "--run"], "run= is empty; give it a value or leave it out"),
        (["trace", "q=1", "day=1"], "'day=1': unknown option; there are warehouse, run, method"),
        (["trace", "q=1", "warehouse=/nowhere"], "/nowhere: no run there"),
        (["compare", "bm25(top_k=1)", "warehouse=/nowhere"], "/nowhere: no run there"),
        (["compare", "a", "day=1"], "'day=1': unknown option; there are warehouse, run, "),
        (["gc", "older_than=x", "warehouse=/nowhere"], "older_than=x: not a duration; write 24h"),
        (["gc", "--older-than", "x"], "older_than=x: not a duration; write 24h, 90m or 2d"),
    ],
)
def test_other_words_are_refused(words: list[str], says: str) -> None:
    assert refused(*words).startswith(says)


def test_what_follows_two_dashes_is_no_option(folder: Path) -> None:
    told = refused("show", f"warehouse={folder}", "run=r", "--", "--json")
    assert told.startswith("--json: no such document in the run")
    assert refused("show", "--", "-d", f"warehouse={folder}", "run=r").startswith("-d: no such doc")
