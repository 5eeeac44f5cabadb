"""The result of submitting a run, or of stopping it."""

import sys
from dataclasses import dataclass

from pipeline.core.redaction import redacted

INCOMPLETE = 4


@dataclass(frozen=True)
class Submission:
    """The result of a submission."""

    run: str
    job: str  # the Ray job's id, or the output of kubectl or sbatch
    status: str  # SENT, or Ray's status of a job that is over: SUCCEEDED, FAILED, STOPPED
    exit_code: int  # of the command


def print_to_stderr(line: str) -> None:
    """Print a line for the user on standard error."""
    sys.stderr.write(redacted(f"gistmill: {line}\n"))
