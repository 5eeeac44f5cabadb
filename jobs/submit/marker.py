"""A marker in the warehouse, by which a job checks that it sees the submitter's storage.

<warehouse>/runs/.<run>.sent holds the job's id. On storage that is not shared the job misses it.
"""

from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.files.place import refuse_unreachable_path, write


def write_marker(warehouse: UPath, run: str, job_id: str) -> None:
    """Write the marker. Raises UsageError if nothing can be written."""
    with refuse_unreachable_path(warehouse, "warehouse"):
        write(_file(warehouse, run), job_id.encode())


def delete_marker(warehouse: UPath, run: str) -> None:
    """Remove the marker, if it is there."""
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
