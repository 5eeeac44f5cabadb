"""Rows that were lost or doubled after they were committed make the run exit 1."""

import json
import re
from collections.abc import Callable
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
def test_a_changed_file_makes_the_run_exit_1(words: list[str], change: str) -> None:
    pattern, damage, line = CHANGES[change]
    warehouse = Path(words[4].partition("=")[2])
    path = max(warehouse.glob(pattern), key=lambda file: file.stat().st_size)
    before = path.read_bytes()
    damage(path)
    done = gistmill(*words)
    path.write_bytes(before)
    assert done.returncode == 1, done.stderr
    (told,) = done.stderr.splitlines()
    assert re.search(line, told), told
    succeed(*words)
