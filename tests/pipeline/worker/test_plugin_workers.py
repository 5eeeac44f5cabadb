"""A plugin's stage on a worker: it is sent there, for the machine has no such folder."""

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.core.registry import load_plugins, pickle_with_plugins
from pipeline.core.rows import Document, Question, UnitRows
from pipeline.work.stage import STAGES
from tests.support.command import ROOT

# Two modules, one in a folder without __init__.py that imports the other.
MODULES = {
    ".venv/not_ours.py": "raise SystemExit('no part of the plugin')",
    "rows.py": """
from dataclasses import dataclass
from gistmill.plugin import QuestionRow

@dataclass(frozen=True, slots=True, kw_only=True)
class Shout(QuestionRow):
    table = "shouts"
    key = ("question_id",)
    shout: str | None
""",
    "shout/stage.py": """
from gistmill.plugin import Stage
from ..rows import Shout

class ShoutQuestion(Stage):
    name = "shout"
    version = 1
    writes = Shout
    mark: str

    async def run(self, rows, ask):
        return [Shout.about(q, shout=q.question.upper() + self.mark) for q in rows.questions]
""",
    "shouts.sql": "-- name: loud\n"
    "create view {prefix}loud as select {run}shout from {prefix}shouts;",
}
# What a worker's process does first, elsewhere.
ELSEWHERE = """
import asyncio, json, sys
from pathlib import Path
from pipeline.core.registry import unpickle_with_plugins
made = Path(sys.argv[1]).read_bytes()
stage, rows = unpickle_with_plugins(made)
(made,) = asyncio.run(stage.run(rows, None))
file = sys.modules[type(stage).__module__].__file__
print(json.dumps([made.shout, file, type(made).__module__, [*type(made).sql()]]))
"""


def elsewhere(folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-P", "-c", ELSEWHERE, str(folder / "sent")]
    there = {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=there, capture_output=True, text=True)


@pytest.mark.usefixtures("registries")
def test_a_process_that_cannot_import_the_folder_executes_its_stage(tmp_path: Path) -> None:
    folder = tmp_path / "here" / "loud_plugin"
    for name, text in MODULES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    load_plugins([str(folder)])
    stage = STAGES["shout"].model_validate({"mark": "!"})
    asked = Question(document_id="d1", question_id="q1", question="Who?")
    rows = UnitRows(document=Document(document_id="d1"), questions=(asked,))
    (tmp_path / "sent").write_bytes(pickle_with_plugins((stage, rows)))
    shutil.rmtree(folder)
    done = elsewhere(tmp_path)
    assert done.returncode == 0, done.stderr
    shout, module, package, sections = json.loads(done.stdout)
    assert (shout, package, sections) == ("WHO?!", "gistmill_plugins.loud_plugin.rows", ["loud"])
    assert not module.startswith(str(tmp_path)) and not Path(module).exists()


@pytest.mark.usefixtures("registries")
def test_an_installed_plugin_that_is_missing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "installed_here.py").write_text("class Stage:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    import installed_here  # type: ignore[import-not-found]

    (tmp_path / "sent").write_bytes(pickle_with_plugins((installed_here.Stage(), None)))
    done = elsewhere(tmp_path)
    assert done.stderr.splitlines()[-1] == (
        f"pipeline.core.errors.UsageError: on the machine {platform.node()}: "
        "No module named 'installed_here'; install there what plugins need"
    )
