"""The real `gistmill` command, and the data that tests read."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
QMSUM = DATA / "qmsum" / "val.jsonl"


def gistmill(*words: str | Path, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "jobs", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout)


def succeed(*words: str | Path, code: int = 0) -> str:
    """Its standard output; the exit code must be `code`."""
    done = gistmill(*words)
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def sql(warehouse: Path, query: str, *words: str) -> list[dict[str, Any]]:
    """Rows of `gistmill sql --json`."""
    rows: list[dict[str, Any]] = json.loads(
        succeed("sql", query, f"warehouse={warehouse}", *words, "--json")
    )
    return rows


def without_identity(text: str) -> str:
    """Raters' names as their scripts are called: the 4 hex of their settings are left out."""
    return re.sub(r"(scripted:\w+)-[0-9a-f]{4}", r"\1", text)
