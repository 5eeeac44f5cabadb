"""An installed wheel, beside the libraries of this environment."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.command import ROOT

pytestmark = pytest.mark.slow

PACKAGES = ("pipeline", "stages", "jobs", "gistmill")


class Installed:
    """A virtual environment with the wheel, and a project with a package `pipeline` of its own."""

    def __init__(self, folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        source = folder / "source"  # what is built leaves a folder `build` beside it
        for name in PACKAGES:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, source / name)
        subprocess.run([*pip, "wheel", "--no-deps", "-w", folder, source], check=True)
        (self.wheel,) = folder.glob("gistmill-*.whl")
        venv.create(folder / "venv")
        (site,) = (folder / "venv").glob("lib/python3*/site-packages")
        # Of a folder named in a .pth no .pth is read: an editable gistmill there is not found.
        (site / "libraries.pth").write_text(sysconfig.get_paths()["purelib"])
        there = ["--python", str(folder / "venv" / "bin" / "python")]
        subprocess.run([*pip, *there, "install", "--no-deps", str(self.wheel)], check=True)
        self.bin = folder / "venv" / "bin"
        self.elsewhere = folder / "elsewhere"
        self.elsewhere.mkdir()
        self.project = folder / "project"
        (self.project / "pipeline").mkdir(parents=True)
        (self.project / "pipeline" / "__init__.py").write_text("STEPS = 3\n")

    def run(self, name: str, *words: str, cwd: Path) -> "CompletedProcess[str]":
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        command = [str(self.bin / name), *words]
        return subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"))


def test_it_holds_the_packages_and_no_more(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    files = {
        str(file.relative_to(ROOT))
        for folder in (*PACKAGES, "conf")
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert names == {f"gistmill/{name}" if name.startswith("conf/") else name for name in files}


def test_it_runs_without_the_checkout(installed: Installed) -> None:
    done = installed.run("gistmill", "run", "experiment=demo", "limit=1", cwd=installed.elsewhere)
    assert done.returncode == 0, done.stderr


def test_bench_says_how_to_get_it(installed: Installed) -> None:
    done = installed.run("gistmill", "bench", "limit", cwd=installed.elsewhere)
    assert done.returncode == 2
    assert done.stderr.startswith("gistmill: bench: not installed with the package; ")


def test_a_script_is_told_which_folder_hides_a_package(installed: Installed) -> None:
    (installed.project / "script.py").write_text("import gistmill\nprint('imported')\n")
    done = installed.run("python", "script.py", cwd=installed.project)
    assert done.returncode == 1
    hides = f"{installed.project}/pipeline/__init__.py hides gistmill's own package 'pipeline';"
    assert done.stderr.splitlines()[-1].startswith(f"ImportError: {hides}")


def test_a_worker_is_told(installed: Installed) -> None:
    """What the driver sees is right, but Ray's workers are started with another PYTHONPATH."""
    code = (
        "import os, gistmill\n"
        f"os.environ['PYTHONPATH'] = {str(installed.project)!r}\n"
        "try:\n"
        "    gistmill.run('experiment=demo', 'limit=1', 'run=hidden', 'warehouse=hidden')\n"
        "except gistmill.UsageError as error:\n"
        "    print(error)\n"
    )
    (installed.elsewhere / "driver.py").write_text(code)
    done = installed.run("python", "driver.py", cwd=installed.elsewhere)
    (line,) = done.stdout.splitlines()
    assert line.startswith("workers cannot import gistmill (No module named 'pipeline."), (
        done.stderr
    )
