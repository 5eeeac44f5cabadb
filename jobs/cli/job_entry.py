"""Entry point of a job on a Ray cluster: checks that the job sees the submitter's warehouse.

`python -m jobs.cli.job_entry JOB WAREHOUSE WORD...` then executes `gistmill run WORD...`.
"""

import sys

from jobs.run.interruption import interruptible

if __name__ == "__main__":
    interruptible()  # the imports take half a second

from jobs.cli import main
from jobs.submit.ray_job import take_marker
from pipeline.core.errors import UsageError
from pipeline.files.storage import as_path

if __name__ == "__main__":
    job_id, warehouse, *words = sys.argv[1:]
    sys.argv = ["gistmill", "run", *words]
    try:
        take_marker(as_path(warehouse), job_id)
    except UsageError as error:
        sys.stderr.write(f"gistmill: {error}\n")
        sys.exit(2)
    main()
