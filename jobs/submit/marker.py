"""A marker in the warehouse, by which a job checks that it sees the submitter's storage.

<warehouse>/runs/.<run>.sent holds the job's id. On storage that is not shared the job misses it.
"""

from upath import UPath

from pipeline.errors import UsageError
from pipeline.place import reaching, write


def mark(warehouse: UPath, run: str, job_id: str) -> None:
    """Write the marker. Raises UsageError where nothing can be written."""
    with reaching(warehouse, "warehouse"):
        write(_file(warehouse, run), job_id.encode())


def unmark(warehouse: UPath, run: str) -> None:
    """Remove the marker, if it is there."""
    _file(warehouse, run).unlink(missing_ok=True)


def take(warehouse: UPath, job_id: str) -> None:
    """Remove the marker. Raises UsageError where it is missing or of another job."""
    run = run_of(job_id)
    with reaching(warehouse, "warehouse"):
        file = _file(warehouse, run)
        if not file.is_file() or file.read_text() != job_id:
            raise UsageError(
                f"warehouse={warehouse}: not the one that {job_id} was sent from; name storage "
                "that the cluster shares, s3://... or a folder that every machine mounts"
            )
        unmark(warehouse, run)


def run_of(job_id: str) -> str:
    """The run's name in gistmill-<run>-<n>."""
    return job_id.removeprefix("gistmill-").rpartition("-")[0]


def _file(warehouse: UPath, run: str) -> UPath:
    return warehouse / "runs" / f".{run}.sent"
