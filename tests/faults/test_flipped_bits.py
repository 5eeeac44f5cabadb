"""Files of a warehouse that have changed: no page with a flipped bit is read as something else, and
rows that were lost or doubled after they were committed make the run exit 1."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.core.errors import DamagedError
from pipeline.core.rows import RECORDS
from pipeline.files.parquet import read_parquet
from pipeline.store import Shards
from pipeline.store.upkeep import compact
from tests.support.command import gistmill, succeed
from tests.support.runs.finished_run import FinishedRun

FLIPS = 200  # of each file
PLACE = 40  # of a byte in the first page


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return FinishedRun(tmp_path_factory.mktemp("made"))


@pytest.fixture(params=["loose", "compacted"])
def warehouse(finished: FinishedRun, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    folder = finished.copied(tmp_path)
    if request.param == "compacted":
        compact(folder, least=2)
        succeed("gc", "older_than=0", f"warehouse={folder}")
    return folder


def parquet_files(warehouse: Path) -> list[Path]:
    """All of rows, those of the most bytes first."""
    return sorted(warehouse.rglob("*.parquet"), key=lambda file: -file.stat().st_size)


def flipped(content: bytes, place: int, bit: int = 4) -> bytes:
    return content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :]


def test_a_flip_in_a_page_is_no_other_row(warehouse: Path) -> None:
    """But for those in a page's header that change nothing."""
    draw, num_noticed, num_flips = random.Random(27), 0, 0
    for file in parquet_files(warehouse)[:6]:
        content = file.read_bytes()
        rows = read_parquet(content)
        pages_end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        for _ in range(FLIPS):
            other = flipped(content, draw.randrange(4, pages_end), 1 << draw.randrange(8))
            num_flips += 1
            try:
                assert read_parquet(other).equals(rows)
            except pa.ArrowInvalid:
                num_noticed += 1
    assert num_noticed > 0.8 * num_flips


def test_rows_of_a_changed_page_are_not_worked_on(finished: FinishedRun, tmp_path: Path) -> None:
    warehouse = finished.copied(tmp_path)
    file = warehouse / finished.shard("gists").relative_to(finished.warehouse)
    file.write_bytes(flipped(file.read_bytes(), PLACE))
    with pytest.raises(DamagedError, match="delete tables/") as caught:
        Shards(warehouse).load(RECORDS["gists"], file.parent.name, file.name.split(".")[0])
    assert caught.value.file == str(file)


def test_verify_names_each_damaged_file(warehouse: Path) -> None:
    before = succeed("verify", f"warehouse={warehouse}")
    assert before.startswith("checked ")
    damaged = [parquet_files(warehouse)[0], *warehouse.glob("runs/*/*.parquet")]
    for file in damaged:
        file.write_bytes(flipped(file.read_bytes(), PLACE))
    torn = warehouse / "runs" / "night" / "provenance.json"
    torn.write_bytes(torn.read_bytes()[:-3])
    done = gistmill("verify", f"warehouse={warehouse}", "--json")
    report: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (1, "gistmill: 3 files damaged; see above\n")
    assert [row["file"] for row in report["damaged"]] == sorted(map(str, [*damaged, torn]))
    assert before == f"checked {report['files']} files\n"


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


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_makes_the_run_exit_1(
    finished: FinishedRun, tmp_path: Path, change: str
) -> None:
    pattern, damage, line = CHANGES[change]
    warehouse = finished.copied(tmp_path)
    path = max(warehouse.glob(pattern), key=lambda file: file.stat().st_size)
    before = path.read_bytes()
    damage(path)
    done = gistmill(*finished.words(warehouse))
    assert done.returncode == 1, done.stderr
    (told,) = done.stderr.splitlines()
    assert re.search(line, told), told
    path.write_bytes(before)
    succeed(*finished.words(warehouse))
