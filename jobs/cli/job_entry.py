"""Entry point of jobs on a cluster. `python -m jobs.cli.job_entry JOB WAREHOUSE WORD...` is
`gistmill run WORD...` as a Ray job that checks that it sees the submitter's warehouse.

`python -m jobs.cli.job_entry run WORD...` is that of a RayJob. KubeRay restarts a failed job on new
pods and knows no exit codes. A mistake in the words (2) and an early end by a deadline, storage or
a server (4) cannot be fixed by a restart: then the job is stopped, which Ray shows as STOPPED and
KubeRay does not restart.
"""

import sys

from pipeline.core.errors import interruptible

if __name__ == "__main__":
    interruptible()  # the imports take half a second

from jobs.cli import main
from jobs.submit.ray_job import take_marker
from pipeline.cluster.ray_jobs import stop_this_job
from pipeline.core.errors import IncompleteError, UsageError
from pipeline.files.storage import as_path

if __name__ == "__main__":
    is_rayjob = sys.argv[1] == "run"
    try:
        if not is_rayjob:
            job_id, warehouse, *words = sys.argv[1:]
            sys.argv = ["gistmill", "run", *words]
            take_marker(as_path(warehouse), job_id)
        main()
    except UsageError as error:  # of the marker
        sys.stderr.write(f"gistmill: {error}\n")
        sys.exit(error.exit_code)
    except SystemExit as end:
        if is_rayjob and end.code in (UsageError.exit_code, IncompleteError.exit_code):
            stop_this_job()
        raise
