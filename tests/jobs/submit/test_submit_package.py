"""What travels to a cluster: code that runs there by itself, files, the commit, no secrets."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.graph.resolved_run import read_run
from jobs.submit import rendered
from jobs.submit.package import pack, words_on_cluster
from tests.support.command import ROOT
from tests.support.docs.pages import blocks

COMMANDS = [
    shlex.split(command.replace("\\\n", ""))
    for block in blocks("docs/clusters.md", "sh")
    for command in re.findall(r"^(?:nohup )?(gistmill (?:run|submit) (?:.*\\\n)*.*)$", block, re.M)
]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_pages_commands_are_understood(command: list[str]) -> None:
    words = [word for word in command[2:] if "=" in word]
    if command[1] == "run":
        assert read_run(words).config.run == "nqa"
    else:
        assert "run=nqa" in rendered(words)


@pytest.mark.slow
def test_the_code_runs_where_there_is_nothing_else(tmp_path: Path) -> None:
    pack(tmp_path)
    told = "import jobs, pipeline.core.settings as s; print(jobs.__file__, s.CONF)"
    for command in (["-c", told], ["-m", "jobs", "prompts", "check"]):
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        if command[0] == "-c":
            assert done.stdout.split() == [
                f"{tmp_path}/jobs/__init__.py",
                f"{tmp_path}/gistmill/conf",
            ]


def test_a_family_of_prompts_travels(tmp_path: Path) -> None:
    family = tmp_path / "mine"
    shutil.copytree(ROOT / "conf" / "prompts" / "generic", family)
    words = ["cluster=ray", "cluster.address=http://h:1", f"family={family}", "run=r"]
    resolved = read_run(words)
    there = tmp_path / "there"
    sent = words_on_cluster(resolved, words, pack(there))
    assert "family=files/family/mine" in sent
    assert f"family={family}" not in sent
    assert {file.name for file in (there / "files/family/mine").iterdir()} == {
        file.name for file in family.iterdir()
    }


def test_secrets_of_the_jobs_environment_stand_in_no_word() -> None:
    words = [
        "cluster=ray", "cluster.address=http://h:1",
        "cluster.runtime_env.env_vars.HF_TOKEN=hunter3", "warehouse=/x",
    ]  # fmt: skip
    assert "hunter" not in rendered(words)
