"""Execute the commands of README and docs as a reader does, page by page."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.support.command import DATA, WHOLE
from tests.support.docs.pages import README, base, commands, missing, page, pages

COMMANDS = {name: commands(page(name)) for name in pages() if commands(page(name))}
# Pages with tables of all of QMSum's validation set.
OF_WHOLE_QMSUM = ("docs/report.md", "docs/papers.md")


class Outcome(NamedTuple):
    """A page's commands, executed: the folder they ran in, and what each block printed."""

    folder: Path
    outputs: list[str]


def execute(
    name: str, folder: Path, outcome: Callable[[str], Outcome], without_ray: Path
) -> Outcome:
    """Run a page's commands in `folder`; a page that builds on another begins with a copy of the
    folder in that one's `outcome`. README's are the real command, the others that in the folder
    `without_ray`."""
    before = base(page(name))
    if before:
        shutil.copytree(outcome(before).folder, folder, symlinks=True)
    else:  # what a clone has; and QMSum as its authors lay it out, where a page reads all of it
        (folder / "tests").mkdir(parents=True)
        (folder / "tests" / "data").symlink_to(DATA)
        if name in OF_WHOLE_QMSUM:
            corpus = folder / "QMSum" / "data" / "ALL" / "jsonl"
            corpus.mkdir(parents=True)
            (corpus / "val.jsonl").symlink_to(WHOLE / "qmsum" / "val.jsonl")
    binaries = Path(sys.executable).parent if name == README else without_ray
    return Outcome(folder, [run(one.code, folder, binaries) for one in COMMANDS[name]])


def check(name: str, outcome: Outcome) -> None:
    """Each command prints something, and all that the page shows of it."""
    for command, output in zip(COMMANDS[name], outcome.outputs, strict=True):
        assert output.strip(), command.code
        for shown in command.printed:
            assert missing(shown, output) == [], command.code


def run(block: str, folder: Path, binaries: Path) -> str:
    """What a block of commands prints, with the commands in `binaries`. Whatever terminal the tests
    were started from, what is shown is no terminal's width."""
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=folder,
        env={**environment, "PATH": f"{binaries}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    return done.stdout
