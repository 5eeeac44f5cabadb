"""Runs sent to a real Ray head that asks for a token; how following a job ends."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from pipeline.cluster import ray_jobs
from tests.jobs.run.test_graceful_stop import shards, until
from tests.support.clusters.loopback import serving
from tests.support.clusters.ray_head import TOKEN, RayHead, environment
from tests.support.command import ROOT, gistmill, one_line, sql_values, succeed
from tests.support.texts.small_corpus import UNIFORM, document, question, write


def started(*words: str, token: str | None = TOKEN) -> "subprocess.Popen[str]":
    """`gistmill submit`, which talks to the head."""
    return subprocess.Popen(
        [sys.executable, "-m", "gistmill", "submit", *words],
        cwd=ROOT,
        env=environment(token),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def ended(process: "subprocess.Popen[str]") -> "CompletedProcess[str]":
    out, err = process.communicate(timeout=120)
    assert TOKEN not in out + err
    return CompletedProcess(process.args, process.returncode, out, err)


@pytest.mark.slow
def test_a_run_is_followed_left_stopped_and_sent_again(head: RayHead, tmp_path: Path) -> None:
    write(tmp_path / "corpus", [document(1)], [question(1, of=1)])
    # What is done to the first job fits into the seconds of the answer.
    replies = [{"prompt": "answer", "seconds": 40.0, "reply": "so it is"}, {"reply": "short"}]
    script, warehouse = tmp_path / "it's $HOME # 1.yaml", tmp_path / "warehouse"
    script.write_text(yaml.safe_dump({"replies": replies}))
    address = f"cluster.address={head.address}"
    words = [
        "corpus=tables", f"corpus.path={tmp_path / 'corpus'}", *UNIFORM, "rater=none",
        "methods=gist_only", "engine=scripted", f"engine.script={script}",
        "cluster.stall_minutes=7.0", address, f"warehouse={warehouse}", "run=a_night",
    ]  # fmt: skip
    first = started(*words)
    until(lambda: list(warehouse.glob("tables/gists/*/*.parquet")), first)
    second = started(*words)
    assert second.stderr
    followed = second.stderr.readline()
    assert "run a_night is running there already, as job gistmill-a_night-1" in followed

    first.send_signal(signal.SIGINT)  # Ctrl-C, which leaves the job alone
    left = ended(first)
    assert left.returncode == 4
    line = left.stderr.splitlines()[-1]
    assert line.startswith("gistmill: job gistmill-a_night-1 keeps running.")
    stop = re.findall(r"ray (job stop --address http\S+ gistmill-a_night-1) stops it", line)
    assert "Traceback" not in left.stderr

    ray = Path(sys.executable).with_name("ray")
    subprocess.run([ray, *stop[0].split()], env=environment(TOKEN), check=True, timeout=120)
    of_second = ended(second)  # saw the job stopped
    assert of_second.returncode == 4
    assert "gistmill-a_night-1 was stopped" in of_second.stderr
    assert "reading: 1 documents" in of_second.stdout  # told from its beginning
    status = succeed("status", "run=a_night", f"warehouse={warehouse}", "--json")
    assert json.loads(status)["complete"] is False
    before = shards(warehouse)

    detached = ended(started(*words, "--detach", "--json"))
    assert detached.returncode == 4
    assert "gistmill: sent run a_night as job gistmill-a_night-2" in detached.stderr
    told = {"run": "a_night", "job": "gistmill-a_night-2", "status": "SENT", "exit_code": 4}
    assert json.loads(detached.stdout) == told
    last = ended(started(*words))
    assert last.returncode == 0, last.stdout + last.stderr
    assert "running there already, as job gistmill-a_night-2" in last.stderr
    assert "run a_night in warehouse" in last.stdout  # the log, to its last line
    # What stood was kept as it was, and nothing was asked twice.
    assert before.items() < shards(warehouse).items()
    query = "select stage, count(*), count(distinct request_sha) from calls group by all order by 1"
    assert sql_values(warehouse, query) == [("answer", 1, 1), ("gist", 3, 3)]
    assert sql_values(warehouse, "select answer from answers") == [("so it is",)]

    # Code, config and files have travelled, and no token.
    folder = warehouse / "runs" / "a_night"
    describe = ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    launches = json.loads((folder / "provenance.json").read_text())["launches"]
    assert {launch["commit"] for launch in launches} == {commit.strip()}
    config = yaml.safe_load((folder / "config.yaml").read_text())["config"]
    assert config["engine"]["script"] == "files/engine.script/it's $HOME # 1.yaml"
    assert (config["cluster"]["address"], config["cluster"]["stall_minutes"]) == ("auto", 7.0)
    files = [file for file in warehouse.rglob("*") if file.is_file()]
    assert files and not [file for file in files if TOKEN.encode() in file.read_bytes()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "minutes", "code", "says"),
    [("1", "1", 0, ""), ("2", "0.01", 4, "gistmill: 1 of 2 nodes joined within cluster.wait_min")],
)
def test_waiting_for_nodes(head: RayHead, wanted: str, minutes: str, code: int, says: str) -> None:
    command = [sys.executable, "-m", "jobs.submit.slurm", head.gcs, wanted, minutes]
    env = environment(TOKEN)
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith(says)
    assert "Traceback" not in done.stderr


# Sends the words as a job, waits for its end, prints its status and what it has said.
SEND = """
import os, shlex, sys, time
from ray.job_submission import JobSubmissionClient
client = JobSubmissionClient(sys.argv[1])
env = {"env_vars": {"PYTHONPATH": os.getcwd()}}
job = client.submit_job(entrypoint=shlex.join(sys.argv[2:]), runtime_env=env)
while not client.get_job_status(job).is_terminal():
    time.sleep(0.5)
print("ended", client.get_job_status(job).value, client.get_job_logs(job))
"""


@pytest.mark.slow
def test_what_is_no_failure_is_stopped(head: RayHead) -> None:
    job = ["python", "-m", "jobs.cli.job_entry", "run", "limitt=3"]
    command = [sys.executable, "-c", SEND, head.address, *job]
    env = environment(TOKEN)
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    assert "ended STOPPED" in done.stdout, done.stdout + done.stderr
    assert "limitt: no such key; nearest: limit" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("token", "says"), [(None, "a token is required"), ("wrong" * 8, "the token is wrong")]
)
def test_who_has_no_token_is_refused(
    head: RayHead, tmp_path: Path, token: str | None, says: str
) -> None:
    before = time.monotonic()
    words = (f"cluster.address={head.address}", f"warehouse={tmp_path / 'warehouse'}")
    line = one_line(ended(started(*words, token=token)))
    assert says in line
    assert "RAY_AUTH_TOKEN" in line
    assert (token or TOKEN) not in line
    assert time.monotonic() - before < 15
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("jobs", "code", "says"),
    [
        ([{"status": "SUCCEEDED", "driver_exit_code": 0}], 0, "running there already"),
        ([{"status": "STOPPED"}], 4, "job gistmill-r-1 was stopped; run the same command"),
        *(([{"status": "FAILED", "driver_exit_code": driver}], code, f"failed: exit code {driver}")
          for driver, code in ((1, 1), (2, 2), (3, 3), (4, 4), (-9, 1), (0, 1))),
        ([{"status": "FAILED", "message": "no such pip package\nTraceback"}], 1,
         "failed: no such pip package"),
        ([{"status": "RUNNING"}, {}], 1, "no longer has job gistmill-r-1"),
        ([{"status": "RUNNING"}, None], 1, "job gistmill-r-1 may still run there"),
        ([None, None, {"status": "SUCCEEDED", "driver_exit_code": 0}], 0, "running there already"),
    ],
)  # fmt: skip
def test_how_it_ends(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    jobs: list[dict[str, Any] | None],
    code: int,
    says: str,
) -> None:
    """0 only where it succeeded. A small server plays the head, as a real one cannot be made to
    forget: `jobs` is what it knows of the job that is at work already, one look after the other,
    the last one for ever; null: it hangs up."""
    told: list[dict[str, Any] | None] = [{"status": "RUNNING"}, *jobs]
    job = {"type": "SUBMISSION", "submission_id": "gistmill-r-1", "entrypoint": "python",
           "metadata": {"run": "r", "warehouse": str(tmp_path)}}  # fmt: skip

    def answered(path: str) -> tuple[int, bytes] | None:
        if path != "/api/jobs/":
            is_version = path == "/api/version"
            return (200, b'{"ray_version": "2.60.0"}') if is_version else (503, b"")
        answer = told[0] if len(told) == 1 else told.pop(0)
        found = [{**job, **answer}] if answer else []
        return None if answer is None else (200, json.dumps(found).encode())

    monkeypatch.setattr(ray_jobs, "_SECONDS_LOST", 0.5)
    monkeypatch.setattr(ray_jobs, "_SECONDS_BETWEEN_LOOKS", 0.1)
    with serving(answered) as head:
        done = gistmill("submit", "run=r", f"warehouse={tmp_path}", f"cluster.address={head}")
    assert done.returncode == code
    last = done.stderr.splitlines()[-1]
    assert last.startswith("gistmill: ") and says in last
    assert "Traceback" not in done.stderr
