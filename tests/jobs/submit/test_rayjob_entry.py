"""The entry point of RayJobs: after exit codes 2 and 4 Ray shows the job as stopped, not as failed.

KubeRay starts again what has failed and nothing else; here a real Ray head runs the jobs.
"""

import json
import runpy
import subprocess
import sys

import pytest

from jobs import cli
from pipeline.cluster import ray_jobs
from tests.support.clusters.ray_head import TOKEN, RayHead, environment
from tests.support.command import ROOT

ENTRY = ["python", "-m", "jobs.cli.rayjob_entry", "run"]

# Sends the commands as jobs, waits for their ends, prints the status of each and what it has said.
SEND = """
import json, os, shlex, sys, time
from ray.job_submission import JobSubmissionClient
client = JobSubmissionClient(sys.argv[1])
env = {"env_vars": {"PYTHONPATH": os.getcwd()}}
sent = [client.submit_job(entrypoint=shlex.join(words), runtime_env=env)
        for words in json.loads(sys.argv[2])]
while any(not client.get_job_status(job).is_terminal() for job in sent):
    time.sleep(0.5)
print(json.dumps([[client.get_job_status(job), client.get_job_logs(job)] for job in sent]))
"""


@pytest.mark.slow
def test_what_is_no_failure_is_stopped(head: RayHead) -> None:
    commands = [[*ENTRY, "limitt=3"], ["python", "-c", "raise SystemExit(2)"]]
    done = subprocess.run(
        [sys.executable, "-c", SEND, head.address, json.dumps(commands)],
        cwd=ROOT,
        env=environment(TOKEN),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    wrong, failed = json.loads(done.stdout.splitlines()[-1])
    assert wrong[0] == "STOPPED", wrong
    assert "limitt: no such key; nearest: limit" in wrong[1]
    assert failed[0] == "FAILED"


@pytest.mark.parametrize(
    ("code", "is_stopped"), [(0, False), (1, False), (2, True), (3, False), (4, True)]
)
def test_after_which_exit_codes(
    monkeypatch: pytest.MonkeyPatch, code: int, is_stopped: bool
) -> None:
    stopped: list[bool] = []
    monkeypatch.setattr(cli, "main", lambda: sys.exit(code))
    monkeypatch.setattr(ray_jobs, "stop_this_job", lambda: stopped.append(True))
    with pytest.raises(SystemExit) as end:
        runpy.run_module("jobs.cli.rayjob_entry", run_name="__main__")
    assert end.value.code == code, "where Ray does not stop it"
    assert bool(stopped) == is_stopped
