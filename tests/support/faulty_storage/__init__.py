"""Real commands whose file operations fail on purpose: see sitecustomize.py for the faults."""

import json
import os
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from tests.support.command import ROOT

HERE = Path(__file__).parent


def environment_with(faults: list[dict[str, Any]]) -> dict[str, str]:
    """The variables of a process whose storage has these faults."""
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path, "GISTMILL_FAULTS": json.dumps(faults)}


def gistmill_with(faults: list[dict[str, Any]], *words: str | Path) -> "CompletedProcess[str]":
    """Run the command, in a process of its own, on storage with these faults."""
    command = [sys.executable, "-m", "gistmill", *map(str, words)]
    environment = {**os.environ, **environment_with(faults)}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
