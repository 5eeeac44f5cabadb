"""The words of reading verbs, and the arguments before them."""

from pathlib import Path

import pytest

from jobs.config.options import WORDS, ReadOptions, read_options
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


@pytest.mark.parametrize("words", [["run=r", "--json"], ["--json", "run=r"], ["run=r"]])
def test_words_follow_the_argument_in_any_order(folder: Path, words: list[str]) -> None:
    query = "select count(*) = 1 as is_it from questions"  # holds a =, and is no word
    printed = succeed("sql", query, f"warehouse={folder}", *words)
    assert "is_it" in printed and "true" in printed.casefold()


def test_every_option_that_is_no_switch_is_a_word() -> None:
    fields = {*ReadOptions.__dataclass_fields__} - {"split_shared", "address"}
    assert {*WORDS} == {*fields, "cluster.address"}
    options = read_options(["cluster.address=http://h:1", "n=3"], [*WORDS])
    assert (options.address, options.n, options.seed) == ("http://h:1", 3, 0)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["report", "day=1"], "'day=1': unknown word; there are warehouse, run, by, where, "),
        (["report", "run"], "'run': unknown word; there are warehouse, run, "),
        (["report", "--day=1"], "No such option: --day"),
        (["report", "run="], "run= is empty; give it a value or leave it out"),
        (["report", "--run=r"], "--run: write run=VALUE"),
        (["gc", "--older-than", "x"], "--older-than: write older_than=VALUE"),
        (["trace", "q=1", "day=1"], "'day=1': unknown word; there are warehouse, run, method"),
        (["trace", "q=1", "warehouse=/nowhere"], "/nowhere: no run there"),
        (["trace", "run=r", "q1"], "'q1': unknown word; there are warehouse, run, method"),
        (["compare", "bm25(top_k=1)", "warehouse=/nowhere"], "/nowhere: no run there"),
        (["compare", "warehouse=/nowhere", "a"], "/nowhere: no run there"),
        (["compare", "a", "day=1"], "'day=1': unknown word; there are warehouse, run, "),
        (["ls", "warehouse=/nowhere"], "/nowhere: no run there"),
        (["ls", "nosuch"], "ls nosuch: no such kind; "),
        (["schema", "day=1"], "'day=1': unknown word; there are plugins=..."),
        (["gc", "older_than=x", "warehouse=/nowhere"], "older_than=x: not a duration; write 24h"),
        (["rate", "sheet", "n=many"], "n=many: Input should be a valid integer"),
        (["view", "port=65536"], "port=65536: Input should be less than 65536"),
        (["sql", "select 1", "rows=0"], "rows=0: Input should be greater than or equal to 1"),
    ],
)
def test_other_words_are_refused(words: list[str], says: str) -> None:
    assert refused(*words).startswith(says)


def test_what_follows_two_dashes_is_no_option(folder: Path) -> None:
    told = refused("show", "--", "--json", f"warehouse={folder}", "run=r")
    assert told.startswith("--json: no such document in the run")
