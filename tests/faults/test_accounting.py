"""Rows that were lost or doubled after they were committed make the run exit 1."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.command import gistmill, succeed
from tests.support.runs.finished_run import FinishedRun

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return FinishedRun(tmp_path_factory.mktemp("accounting"))


def one_twice(path: Path) -> None:
    """As many rows as written, one of them twice and one gone: only SQL sees it."""
    rows = pq.read_table(path)
    pq.write_table(pa.concat_tables([rows.slice(0, rows.num_rows - 1), rows.slice(0, 1)]), path)


def of_another_version(path: Path) -> None:
    """As where two steps' hashes are equal: the rows that are there are of another step."""
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 7}))


# Files of the warehouse, what happens to the largest, and what the line says.
CHANGES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "an answer is doubled": ("tables/answers/*/*.parquet", one_twice, "answer"),
    "the calls are gone": ("tables/calls/answer-*/*.parquet", Path.unlink,
                           r"the shard of its calls is missing; delete tables/\*/answer-"),
    "the step is another": ("steps/answer-*.json", of_another_version, r"answer-\w+\.json: "),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_makes_the_run_exit_1(
    made: FinishedRun, tmp_path: Path, change: str
) -> None:
    pattern, damage, line = CHANGES[change]
    warehouse = made.copied(tmp_path)
    path = max(warehouse.glob(pattern), key=lambda file: file.stat().st_size)
    before = path.read_bytes()
    damage(path)
    done = gistmill(*made.words(warehouse))
    assert done.returncode == 1, done.stderr
    (told,) = done.stderr.splitlines()
    assert re.search(line, told), told
    path.write_bytes(before)
    succeed(*made.words(warehouse))
