"""What a job begins with: is this the warehouse that it was sent from?

`python -m jobs.submit.started JOB WAREHOUSE WORD...` is then `gistmill run WORD...`. Whoever sends
a run leaves a mark in the warehouse; storage that is not shared does not show it.
"""

import sys

from upath import UPath

from jobs.cli import main
from pipeline.errors import UsageError
from pipeline.place import place, reaching, write


def mark(warehouse: UPath, run: str, job_id: str) -> None:
    """Leave the mark. Raises UsageError where nothing can be written."""
    with reaching(warehouse, "warehouse"):
        write(_file(warehouse, run), job_id.encode())


def unmark(warehouse: UPath, run: str) -> None:
    """Nothing is left of the mark."""
    _file(warehouse, run).unlink(missing_ok=True)


def take(warehouse: UPath, job_id: str) -> None:
    """Remove the mark. Raises UsageError where it is not there."""
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


if __name__ == "__main__":
    job_id, warehouse, *words = sys.argv[1:]
    sys.argv = ["gistmill", "run", *words]
    try:
        take(place(warehouse), job_id)
    except UsageError as error:
        sys.stderr.write(f"gistmill: {error}\n")
        sys.exit(2)
    main()
