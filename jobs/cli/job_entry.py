"""Entry point of a RayJob: `python -m jobs.cli.job_entry run WORD...` is `gistmill run WORD...`.

KubeRay restarts a failed job on new pods and knows no exit codes. A mistake in the words (2) and an
early end by a deadline, storage or a server (4) cannot be fixed by a restart: then the job is
stopped, which Ray shows as STOPPED and KubeRay does not restart.
"""

from pipeline.core.errors import interruptible

if __name__ == "__main__":
    interruptible()  # the imports take half a second

from jobs.cli import main
from pipeline.cluster.ray_jobs import stop_this_job
from pipeline.core.errors import IncompleteError, UsageError

if __name__ == "__main__":
    try:
        main()
    except SystemExit as end:
        if end.code in (UsageError.exit_code, IncompleteError.exit_code):
            stop_this_job()
        raise
