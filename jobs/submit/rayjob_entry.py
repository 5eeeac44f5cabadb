"""Entry point of a RayJob: `python -m jobs.submit.rayjob_entry run WORD...` is `gistmill run`.

KubeRay starts a job that failed again, on new pods, and knows no exit codes. A mistake in the words
(2) and an end by a deadline or for lack of storage or a server (4) are no failures that this could
fix: the job is stopped instead, which Ray shows as STOPPED and KubeRay does not start again.
"""

from jobs.cli import main
from pipeline.cluster.ray_jobs import stop_this_job
from pipeline.errors import IncompleteError, UsageError

if __name__ == "__main__":
    try:
        main()
    except SystemExit as end:
        if end.code in (UsageError.exit_code, IncompleteError.exit_code):
            stop_this_job()
        raise
