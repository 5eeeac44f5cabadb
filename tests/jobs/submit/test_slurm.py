"""The script of `gistmill submit cluster=slurm`: shellcheck, and a dry run of its steps among stubs
of srun, scontrol and python, which keep what they were told in a file."""

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.graph.resolved_run import read_run
from jobs.submit.kuberay import rayjob
from jobs.submit.slurm import slurm_script
from tests.support.command import gistmill, succeed

WORDS = ["cluster=slurm", "warehouse=/shared/warehouse", "run=a_night"]
VLLM = ["engine=vllm", "engine.model=some/model", "engine.args.tensor_parallel_size=2"]
EVERYTHING = [
    *WORDS, *VLLM, "cluster.nodes=3", "cluster.memory=200G", "cluster.partition=gpu",
    "cluster.account=lab", "cluster.setup=['set -e','export SETUP=made']",
    "cluster.sbatch=['--constraint=a100&hbm']", "cluster.stall_minutes=9.0",
]  # fmt: skip

# Every line of the log is a name, a tab, what it was told. `ray` lasts until it is told to end.
STUB = r"""#!/bin/bash
name=${0##*/}
say() { printf '%s\t%s\n' "$1" "$2" >> "$LOG"; }
case "$name" in
scontrol) say scontrol "$*"; printf 'n1\nn2\nn3\n' ;;
srun)
    say srun "$*"
    say token "${RAY_AUTH_MODE-} ${RAY_AUTH_TOKEN-}"
    if [[ "$*" == *"ray start"* ]]; then
        trap 'say ended "$*"; exit 0' TERM
        say up "$*"
        while true; do sleep 0.05; done
    fi ;;
python)
    say python "$*"
    say environment "${SETUP-} $RAY_ADDRESS"
    if [[ "$*" == *jobs.submit.slurm* ]]; then
        while [ "$(grep -c ^up "$LOG")" -lt "$STEPS" ]; do sleep 0.05; done
        exit "${NODES_EXIT-0}"
    fi
    if [ -n "${RUN_LASTS-}" ]; then
        trap 'say term run' TERM
        until [ "$(grep -c ^term "$LOG")" -ge "$RUN_LASTS" ]; do sleep 0.05; done
        sleep 0.3
        say over run
    fi
    exit "${RUN_EXIT-0}" ;;
esac
"""


def script(*words: str) -> str:
    return succeed("submit", "--print", *words)


@pytest.mark.parametrize("words", [WORDS, [*WORDS, *VLLM], EVERYTHING])
def test_shellcheck_has_nothing_to_say(words: list[str], tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text(script(*words))
    check = [str(Path(sys.executable).parent / "shellcheck"), "--severity=style", str(file)]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    subprocess.run(["bash", "-n", file], check=True)


def test_what_sbatch_reads() -> None:
    lines = script(*EVERYTHING).splitlines()
    assert lines[0] == "#!/bin/bash"
    options = {line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")}
    assert options == {
        "--job-name=gistmill-a_night", "--dependency=singleton", "--nodes=3",
        "--ntasks-per-node=1", "--cpus-per-task=8", "--gpus-per-node=2", "--time=08:00:00",
        "--mem=200G", "--partition=gpu", "--account=lab", "--requeue", "--open-mode=append",
        "--output=gistmill-a_night-%j.log", "--signal=B:TERM@360", "--exclusive",
        "--constraint=a100&hbm",
    }  # fmt: skip
    first_command = next(n for n, line in enumerate(lines) if line and not line.startswith("#"))
    assert max(n for n, line in enumerate(lines) if line.startswith("#SBATCH")) < first_command

    other = script(*WORDS, "cluster.exclusive=false", "cluster.grace_minutes=1091.0")
    assert "--exclusive" not in other and "#SBATCH --signal=B:TERM@65520\n" in other


class DryRun:
    """The script of these words among stubs, as one job of Slurm on three nodes."""

    def __init__(self, folder: Path, *words: str, **stubs: str) -> None:
        for name in ("srun", "scontrol", "python"):
            (folder / name).write_text(STUB)
            (folder / name).chmod(0o755)
        (folder / "run.sh").write_text(script(*words))
        self.log = folder / "log"
        self.log.write_text("")
        slurm = {
            "SLURM_JOB_ID": "1234", "SLURM_JOB_NUM_NODES": "3", "SLURM_JOB_NODELIST": "n[1-3]",
            "LOG": str(self.log), "STEPS": "2", "PATH": f"{folder}:{os.environ['PATH']}",
        }  # fmt: skip
        self.process = subprocess.Popen(
            ["bash", "run.sh"], env={**os.environ, **slurm, **stubs}, cwd=folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def told(self, name: str) -> list[str]:
        lines = self.log.read_text().splitlines()
        return [line.partition("\t")[2] for line in lines if line.startswith(f"{name}\t")]

    def until_told(self, name: str, what: str) -> None:
        last = time.monotonic() + 30
        while not any(what in line for line in self.told(name)):
            assert time.monotonic() < last, self.log.read_text()
            time.sleep(0.05)

    def end(self) -> tuple[int, str]:
        """Its exit code, and what it printed; every Ray that was started has ended by then."""
        out, _ = self.process.communicate(timeout=30)
        assert sorted(self.told("ended")) == sorted(self.told("up"))
        assert self.told("srun")[-1].endswith("rm -rf /tmp/gistmill-1234-0")
        return self.process.returncode, out


def test_the_steps_in_order(tmp_path: Path) -> None:
    dry = DryRun(tmp_path, *EVERYTHING)
    assert dry.end() == (0, "")
    assert dry.told("scontrol") == ["show hostnames n[1-3]"]
    common = (
        "--export=ALL --ntasks-per-node=1 --kill-on-bad-exit=1 --cpus-per-task=8 --gpus-per-node=2"
    )
    ray = "ray start --block --disable-usage-stats --num-cpus=8 --num-gpus=2"
    head, others, removal = sorted(dry.told("srun"), key=lambda told: (ray not in told, told))
    assert head == (
        f"{common} --nodes=1 --ntasks=1 --nodelist=n1 {ray} --head --port=21234 "
        "--include-dashboard=false --temp-dir=/tmp/gistmill-1234-0"
    )
    assert others == f"{common} --nodes=2 --ntasks=2 --exclude=n1 {ray} --address=n1:21234"
    assert removal == "--nodes=3 --ntasks-per-node=1 rm -rf /tmp/gistmill-1234-0"
    nodes, run = dry.told("python")
    assert nodes == "-m jobs.submit.slurm n1:21234 3 15.0"
    assert run == (
        f"-m gistmill run warehouse=/shared/warehouse {' '.join(VLLM)} cluster.stall_minutes=9.0 "
        "run=a_night cluster=ray cluster.address=auto cluster.autoscales=false "
        "cluster.wait_minutes=15.0"
    )
    assert dry.told("environment") == ["made n1:21234"] * 2


def test_the_token_is_made_for_the_job_and_never_told(tmp_path: Path) -> None:
    tokens = set()
    for _ in range(2):
        dry = DryRun(tmp_path, *WORDS, "cluster.setup=['set -x']")
        _, out = dry.end()
        (told,) = set(dry.told("token"))
        assert re.fullmatch("token [0-9a-f]{64}", told)
        token = told.removeprefix("token ")
        assert token not in "".join([out, *dry.told("srun"), *dry.told("python")])
        tokens.add(token)
    assert len(tokens) == 2


@pytest.mark.parametrize(
    ("stubs", "code", "num_commands"),
    [({"RUN_EXIT": "1"}, 1, 2), ({"RUN_EXIT": "3"}, 3, 2), ({"NODES_EXIT": "4"}, 4, 1)],
)
def test_the_runs_exit_code_is_the_scripts(
    tmp_path: Path, stubs: dict[str, str], code: int, num_commands: int
) -> None:
    """And without its nodes nothing is run."""
    dry = DryRun(tmp_path, *WORDS, **stubs)
    assert dry.end()[0] == code
    assert len(dry.told("python")) == num_commands


@pytest.mark.parametrize("signals", [1, 2])
def test_term_reaches_the_run_and_is_waited_for(tmp_path: Path, signals: int) -> None:
    dry = DryRun(tmp_path, *EVERYTHING, RUN_LASTS=str(signals), RUN_EXIT="4")
    dry.until_told("python", "gistmill run")
    for number in range(signals):
        while len(dry.told("term")) == number:
            dry.process.terminate()
            time.sleep(0.4)
    code, _ = dry.end()
    assert code == 4
    order = [line.partition("\t")[0] for line in dry.log.read_text().splitlines()]
    assert order.index("term") < order.index("over") < order.index("ended")


def test_term_before_the_run_begins(tmp_path: Path) -> None:
    dry = DryRun(tmp_path, *WORDS, STEPS="9")  # nodes that never come
    dry.until_told("python", "jobs.submit.slurm")
    dry.until_told("up", "--address")
    dry.process.terminate()
    code, _ = dry.end()
    assert code == 4
    assert len(dry.told("python")) == 1


RESOLVED = {
    "slurm": read_run(WORDS),
    "kuberay": read_run(["cluster=kuberay", "cluster.image=i", "warehouse=s3://b/w"]),
}
# All that an argument can hold.
ANY_WORD = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@settings(deadline=None, max_examples=30)
@given(values=st.lists(ANY_WORD, max_size=3))
def test_words_survive_as_they_are(values: list[str]) -> None:
    """The last command of the script, read by the shell that reads it then; in the manifest of
    Kubernetes too."""
    words = [f"corpus.name={value}" for value in values]
    manifest = yaml.safe_load(rayjob(RESOLVED["kuberay"], words))
    assert shlex.split(manifest["spec"]["entrypoint"])[5 : 5 + len(words)] == words
    tail = slurm_script(RESOLVED["slurm"], words).partition("\nwork python -m gistmill run ")[2]
    shell = f"work() {{ printf '%s\\0' \"$@\"; }}\nwork {tail}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[: len(words)] == words


def test_it_is_handed_to_sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my script.yaml").write_text("replies: [{reply: so}]")
    monkeypatch.chdir(tmp_path)
    words = [*WORDS, "engine=scripted", "engine.script=my script.yaml"]
    stub = tmp_path / "sbatch"
    stub.write_text(f"#!/bin/sh\ncat > {tmp_path}/given\necho Submitted batch job 17\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    done = gistmill("submit", *words)
    assert done.returncode == 4  # sent is not complete
    given = (tmp_path / "given").read_text()
    assert given == script(*words)
    assert f"engine.script={tmp_path}/my script.yaml" in shlex.split(given.splitlines()[-1])
    assert "Submitted batch job 17. squeue --name gistmill-a_night shows it" in done.stderr
