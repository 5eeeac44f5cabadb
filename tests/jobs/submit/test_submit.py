"""Runs sent to a real Ray head that asks for a token: followed, left, stopped, resumed."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml

from tests.jobs.run.test_run_lock import until
from tests.support.clusters.ray_head import TOKEN, RayHead, environment
from tests.support.command import ROOT, one_line, sql, succeed
from tests.support.texts.small_corpus import UNIFORM, document, question, write

pytestmark = pytest.mark.slow
SLOW = 40.0  # seconds of one answer: what is done to the first job fits into it


def started(*words: str, token: str | None = TOKEN) -> "subprocess.Popen[str]":
    """`gistmill submit`, which talks to the head."""
    return subprocess.Popen(
        [sys.executable, "-m", "jobs", "submit", *words],
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


class Story:
    """One run: sent, followed by two, left by one of them, stopped, sent again."""

    def __init__(self, folder: Path, address: str) -> None:
        write(folder / "corpus", [document(1)], [question(1, of=1)])
        replies = [{"prompt": "answer", "seconds": SLOW, "reply": "so it is"}, {"reply": "short"}]
        (folder / "it's $HOME # 1.yaml").write_text(yaml.safe_dump({"replies": replies}))
        self.address, self.warehouse = address, folder / "warehouse"
        run = ["run=a_night", f"warehouse={self.warehouse}"]
        words = [
            "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, "rater=none",
            "methods=gist_only", "engine=scripted",
            f"engine.script={folder}/it's $HOME # 1.yaml", "cluster.stall_minutes=7.0",
            f"cluster.address={address}", *run,
        ]  # fmt: skip
        first = started(*words)
        until(lambda: list(self.warehouse.glob("tables/gists/*/*.parquet")), first)
        second = started(*words)
        assert second.stderr
        said = second.stderr.readline()
        first.send_signal(signal.SIGINT)
        self.first = ended(first)  # had Ctrl-C
        self.stop = ended(started("--stop", "--json", *run, f"cluster.address={address}"))
        self.second = ended(second)  # followed the same job, and saw it stopped
        self.second.stderr = said + self.second.stderr
        self.status_when_stopped = json.loads(succeed("status", *run, "--json"))
        self.shards_when_stopped = shards(self.warehouse)
        self.detached = ended(started(*words, "--detach", "--json"))
        self.last = ended(started(*words))


def shards(warehouse: Path) -> dict[Path, int]:
    """Every table's files, and when each was made."""
    return {file: file.stat().st_mtime_ns for file in warehouse.glob("tables/*/*/*.parquet")}


@pytest.fixture(scope="module")
def story(head: RayHead, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(tmp_path_factory.mktemp("story"), head.address)


def test_ctrl_c_leaves_the_job_alone_and_others_follow_it(story: Story) -> None:
    assert story.first.returncode == 4
    line = story.first.stderr.splitlines()[-1]
    assert line.startswith("gistmill: job gistmill-a_night-1 keeps running.")
    assert f"gistmill submit --stop run=a_night cluster.address={story.address}" in line
    assert "Traceback" not in story.first.stderr
    followed = "gistmill: run a_night is running there already, as job gistmill-a_night-1"
    assert followed in story.second.stderr, "it is not sent twice"
    assert "reading: 1 documents" in story.second.stdout  # told from its beginning


def test_neither_a_stopped_job_nor_one_that_is_left_is_complete(story: Story) -> None:
    assert story.stop.returncode == 0, story.stop.stderr
    assert "job gistmill-a_night-1: stopped; to resume" in story.stop.stderr
    told = {"run": "a_night", "job": "gistmill-a_night-1", "status": "STOPPED", "exit_code": 0}
    assert json.loads(story.stop.stdout) == told
    assert story.second.returncode == 4
    assert "gistmill-a_night-1 was stopped" in story.second.stderr
    assert story.status_when_stopped["complete"] is False
    assert story.detached.returncode == 4
    assert "gistmill: sent run a_night as job gistmill-a_night-2" in story.detached.stderr
    told = {"run": "a_night", "job": "gistmill-a_night-2", "status": "SENT", "exit_code": 4}
    assert json.loads(story.detached.stdout) == told


def test_sent_again_it_goes_on_to_the_end(story: Story) -> None:
    """What stood was kept as it was, and nothing was asked twice."""
    assert story.last.returncode == 0, story.last.stdout + story.last.stderr
    assert "running there already, as job gistmill-a_night-2" in story.last.stderr
    assert "run a_night in warehouse" in story.last.stdout  # the log, to its last line
    after = shards(story.warehouse)
    assert story.shards_when_stopped.items() < after.items()
    calls = sql(
        story.warehouse,
        "select s.stage, count(*) n, count(distinct request_sha) requests from calls c "
        "join steps s using (step_id) group by all order by all",
    )
    assert calls == [
        {"stage": "answer", "n": 1, "requests": 1},
        {"stage": "gist", "n": 3, "requests": 3},
    ]
    assert sql(story.warehouse, "select answer from answers") == [{"answer": "so it is"}]


def test_code_config_and_files_travelled_and_no_token(story: Story) -> None:
    run = story.warehouse / "runs" / "a_night"
    describe = ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    launches = json.loads((run / "provenance.json").read_text())["launches"]
    assert {launch["commit"] for launch in launches} == {commit.strip()}
    config = yaml.safe_load((run / "config.yaml").read_text())["config"]
    assert config["engine"]["script"] == "files/engine.script/it's $HOME # 1.yaml"
    assert config["cluster"]["address"] == "auto"
    assert config["cluster"]["stall_minutes"] == 7.0
    assert not list((story.warehouse / "runs").glob(".*"))  # the mark is gone
    files = [file for file in story.warehouse.rglob("*") if file.is_file()]
    assert files and not [file for file in files if TOKEN.encode() in file.read_bytes()]


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


def test_nothing_to_stop_is_refused(head: RayHead) -> None:
    line = one_line(ended(started("--stop", "run=none", f"cluster.address={head.address}")))
    assert line.startswith("run=none: no job of it is running there")


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
