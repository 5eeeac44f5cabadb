"""Results of submitting, and the marker by which a job finds the submitter's warehouse."""

import sys
from dataclasses import dataclass

from upath import UPath

from pipeline.core.errors import UsageError, redacted
from pipeline.files.storage import refuse_unreachable_path, write

INCOMPLETE = 4


@dataclass(frozen=True)
class Submission:
    run: str
    job: str  # the Ray job's id, or the output of kubectl or sbatch
    status: str  # SENT, or Ray's status of a job that is over: SUCCEEDED, FAILED, STOPPED
    exit_code: int  # of the command


def print_to_stderr(line: str) -> None:
    """Print a line for the user, with secrets redacted."""
    sys.stderr.write(redacted(f"gistmill: {line}\n"))


def write_marker(warehouse: UPath, run: str, job_id: str) -> None:
    """Write <warehouse>/runs/.<run>.sent, which holds the job's id; a job on other storage than the
    submitter's does not find it. Raises UsageError if nothing can be written."""
    with refuse_unreachable_path(warehouse, "warehouse"):
        write(_file(warehouse, run), job_id.encode())


def delete_marker(warehouse: UPath, run: str) -> None:
    """A missing marker is no error."""
    _file(warehouse, run).unlink(missing_ok=True)


def take_marker(warehouse: UPath, job_id: str) -> None:
    """Remove the marker. Raises UsageError if it is missing or of another job."""
    run = run_of(job_id)
    with refuse_unreachable_path(warehouse, "warehouse"):
        file = _file(warehouse, run)
        if not file.is_file() or file.read_text() != job_id:
            raise UsageError(
                f"warehouse={warehouse}: not the one that {job_id} was sent from; name storage "
                "that the cluster shares, s3://... or a folder that every machine mounts"
            )
        delete_marker(warehouse, run)


def run_of(job_id: str) -> str:
    """The run's name in gistmill-<run>-<n>."""
    return job_id.removeprefix("gistmill-").rpartition("-")[0]


def _file(warehouse: UPath, run: str) -> UPath:
    return warehouse / "runs" / f".{run}.sent"
