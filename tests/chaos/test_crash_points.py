"""A power cut at any point of the store's boundary loses, doubles and tears nothing."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.chaos.tables import difference, rows
from tests.support.clusters.s3_server import BUCKET, s3_server
from tests.support.command import ROOT
from tests.support.runs.finished_run import FinishedRun

CHAOS = [pytest.mark.chaos, pytest.mark.timeout(3000)]
# By seed and number of points; each method and size of units, by one worker and by two.
SHORT = [pytest.param(n, 16, marks=[pytest.mark.slow, pytest.mark.sampled]) for n in (0, 1, 2)]
FULL = [pytest.param(seed, 75, marks=CHAOS) for seed in (3, 4, 5, 8)]


def check(folder: Path, seed: int, number: int, environment: Mapping[str, str], *url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos.crash_points", folder, str(seed), str(number), *url],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    num_crashes, wrong = json.loads(done.stdout)
    assert wrong == []
    assert num_crashes >= 0.75 * number, "competing threads may pass fewer points than before"


@pytest.mark.parametrize(("seed", "number"), [*SHORT, *FULL])
def test_crash_points(seed: int, number: int, tmp_path: Path) -> None:
    check(tmp_path, seed, number, {})


@pytest.mark.chaos
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", [1, 2])
def test_crash_points_of_an_object_store(seed: int, tmp_path: Path) -> None:
    with s3_server() as environment:
        check(tmp_path, seed, 30, environment, f"s3://{BUCKET}/{seed}")


def test_a_loss_would_be_noticed(tmp_path: Path) -> None:
    """The check itself: a row that is another, twice there or gone is found."""
    night = FinishedRun(tmp_path)
    whole, shard = rows(night.warehouse), night.shard("gists")

    def found() -> list[str]:
        return [which for which, *_ in difference(whole, rows(night.warehouse))]

    assert found() == []
    gists = pq.read_table(shard)
    another = gists.slice(0, 1).set_column(
        gists.column_names.index("gist"), "gist", pa.array(["another"])
    )
    for row in (another, gists.slice(1, 1)):
        pq.write_table(pa.concat_tables([row, gists.slice(1)]), shard)
        assert found() == ["lost", "added"]
    shard.unlink()
    assert found() == ["lost"] * gists.num_rows
