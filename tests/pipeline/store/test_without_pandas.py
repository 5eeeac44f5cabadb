"""Views are made and read without pandas, which takes a fifth of a second."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.store.upkeep import compact
from tests.support.command import ROOT
from tests.support.runs.warehouse import Warehouse, answer, chunk, step

ANSWERS = step("answers", "full_text")


@pytest.mark.slow
def test_views_are_made_and_read_without_pandas(tmp_path: Path) -> None:
    """In a process of its own, as another test may have imported it. Shards are compacted, loose,
    and of a higher attempt than a compacted one."""
    warehouse = Warehouse(tmp_path)
    first, second = (chunk(ANSWERS, "d1", name) for name in ("q1", "q2"))
    warehouse.commit(ANSWERS, first, [answer("q1")])
    compact(tmp_path, least=1)
    warehouse.commit(ANSWERS, replace(first, attempt=2), [answer("q1")])
    warehouse.commit(ANSWERS, second, [answer("q2")])
    warehouse.plan("night", (ANSWERS, [first, second]))
    code = (
        "import sys; from pipeline.store import connect\n"
        f"with connect({str(tmp_path)!r}) as connection:\n"
        "    assert len(connection.execute('from answers').fetchall()) == 2\n"
        "    assert connection.execute('from runs').fetchall()\n"
        "assert 'pandas' not in sys.modules"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
