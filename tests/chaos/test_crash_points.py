"""A power cut at any point of the store's boundary loses, doubles and tears nothing."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.tables import TABLES, Key, Row, Tables, difference
from tests.support.clusters.s3_server import BUCKET, s3_server
from tests.support.command import ROOT

Add = Callable[..., None]
SHORT, FULL = range(3), range(3, 13)  # seeds
REPEATED_BY_TWO_WORKERS = 40  # that compete for the same units


def crash(
    folder: Path, seed: int, number: int, environment: Mapping[str, str], *url: str
) -> dict[str, Any]:
    """The figures of `number` crash points of a seed."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos.crash_points", folder, str(seed), str(number), *url],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def check(counts: dict[str, Any], where: str, add: Add) -> None:
    failed = counts.pop("failed")
    add(what="crash points", where=where, **counts)
    assert not failed
    wrong = {name: counts[name] for name in ("lost", "doubled", "changed", "torn")}
    assert not any(wrong.values()), wrong
    assert counts["needlessly"] <= 0, "a call is repeated only where its reply was not kept"
    assert counts["workers"] == 1 or counts["repeated"] <= REPEATED_BY_TWO_WORKERS


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("seed", SHORT)
def test_crash_points(seed: int, tmp_path: Path, figures: Add) -> None:
    counts = crash(tmp_path, seed, 16, {})
    assert counts["crashes"] >= 12, "competing threads may pass fewer points than before"
    check(counts, "local", figures)


@pytest.mark.chaos
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", FULL)
def test_many_crash_points(seed: int, tmp_path: Path, figures: Add) -> None:
    check(crash(tmp_path, seed, 100, {}), "local", figures)


@pytest.mark.chaos
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", [1, 2])
def test_crash_points_of_an_object_store(seed: int, tmp_path: Path, figures: Add) -> None:
    with s3_server() as environment:
        url = f"s3://{BUCKET}/{seed}"
        check(crash(tmp_path, seed, 60, environment, url), "s3", figures)


def test_a_loss_would_be_noticed(tmp_path: Path) -> None:
    """The check itself: a row that is gone, twice there or another is found."""

    def of(*gists: tuple[str, int]) -> Tables:
        rows: dict[Key, list[Row]] = {("gists", key): [("row",)] * n for key, n in gists}
        return {**{table: {} for table in TABLES}, "gists": rows}

    whole = of(("a", 1), ("b", 1))
    assert not difference(whole, of(("b", 1), ("a", 1)))
    assert difference(whole, of(("a", 1))).lost == [("gists", "b")]
    assert difference(whole, of(("a", 1), ("b", 2))).doubled == [("gists", "b")]
    assert difference(whole, of(("a", 1), ("b", 1), ("c", 1))).added == [("gists", "c")]
    changed = of(("a", 1), ("b", 1))
    changed["gists"]["gists", "b"] = [("another row",)]
    assert difference(whole, changed).changed == [("gists", "b")]
