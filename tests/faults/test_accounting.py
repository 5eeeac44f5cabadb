"""Rows that were lost or doubled after they were committed make the run exit 1."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.command import gistmill, succeed
from tests.support.texts.small_corpus import UNIFORM, document, question, write

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The words of a finished run."""
    folder = tmp_path_factory.mktemp("accounting")
    questions = [question(1, of=1), question(2, of=1), question(3, of=2)]
    write(folder / "corpus", [document(1), document(2)], questions)
    words = [
        "run", "corpus=tables", f"corpus.path={folder / 'corpus'}", "methods=bm25(top_k=2)",
        f"warehouse={folder / 'warehouse'}", "rater=none", *UNIFORM,
    ]  # fmt: skip
    succeed(*words)
    return words


def shard(words: list[str], table: str) -> Path:
    warehouse = Path(words[4].partition("=")[2])
    return max((warehouse / "tables" / table).glob("*/*.parquet"), key=rows_in)


def rows_in(path: Path) -> int:
    return int(pq.read_metadata(path).num_rows)


@pytest.mark.parametrize("table", ["answers", "pages"])
def test_a_changed_shard_makes_the_run_exit_1(words: list[str], table: str) -> None:
    """As many rows as written, one of them twice and one gone: only SQL sees it."""
    path = shard(words, table)
    before = path.read_bytes()
    rows = pq.read_table(path)
    pq.write_table(pa.concat_tables([rows.slice(0, rows.num_rows - 1), rows.slice(0, 1)]), path)
    done = gistmill(*words)
    path.write_bytes(before)
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.splitlines()
    assert table in line or path.parent.name in line


def test_rows_without_their_calls_make_the_run_exit_1(words: list[str]) -> None:
    path = shard(words, "answers")
    calls = Path(str(path).replace("/answers/", "/calls/"))
    before = calls.read_bytes()
    calls.unlink()
    done = gistmill(*words)
    calls.write_bytes(before)
    assert done.returncode == 1, done.stderr
    assert "the shard of its calls is missing; delete tables/*/answer-" in done.stderr


def test_a_step_that_another_one_made_makes_the_run_exit_1(words: list[str]) -> None:
    """As where two steps' hashes were equal: the rows that are there are of another step."""
    warehouse = Path(words[4].partition("=")[2])
    (file,) = (warehouse / "steps").glob("answer-*.json")
    before = file.read_text()
    file.write_text(json.dumps({**json.loads(before), "version": 7}))
    done = gistmill(*words)
    file.write_text(before)
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.splitlines()
    assert f"{file.name}: " in line
    succeed(*words)
