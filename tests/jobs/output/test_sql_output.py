"""`gistmill sql`: every digit of a number, and JSON that any reader takes."""

import json
from pathlib import Path

import pytest

from tests.support.command import succeed
from tests.support.runs.warehouse import Warehouse

QUERY = """select 0.04::double as small, 1234567.125::double as large, 2.0::double as whole,
  'nan'::double as nothing, 0.25 as given, timestamp '2026-11-22 10:00:00.5' as started_at,
  {'a': [1.5, 'inf'::double]} as nested, null as missing"""


@pytest.fixture
def folder(tmp_path: Path) -> str:
    Warehouse(tmp_path).plan("r")
    return f"warehouse={tmp_path}"


def test_a_table_has_every_digit(folder: str) -> None:
    head, _, row = succeed("sql", QUERY, folder).splitlines()
    cells = dict(
        zip(*([c.strip() for c in r.strip("|").split("|")] for r in (head, row)), strict=True)
    )
    assert (cells["small"], cells["large"], cells["whole"]) == ("0.04", "1234567.125", "2.0")
    assert (cells["nothing"], cells["given"], cells["missing"]) == ("nan", "0.25", "-")
    assert cells["started_at"] == "2026-11-22 10:00:00.500000"


def test_json_has_no_nan(folder: str) -> None:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    (row,) = json.loads(succeed("sql", QUERY, folder, "--json"), parse_constant=refuse)
    assert row == {
        "small": 0.04,
        "large": 1234567.125,
        "whole": 2.0,
        "nothing": None,
        "given": 0.25,
        "started_at": "2026-11-22T10:00:00.500000",
        "nested": {"a": [1.5, None]},
        "missing": None,
    }
