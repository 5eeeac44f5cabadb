"""Imports between folders go one way, each heavy library lives in its place, plugins import the
public modules alone; and one document passes few files from the command to the report."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import ROOT
from tests.support.docs.pages import blocks

# Every room, lowest first. A folder imports from itself and from lower floors; rooms of one floor
# do not know each other. `stages` are in the order in which they run.
FLOORS = (
    ("pipeline.core",), ("pipeline.files", "pipeline.families"), ("pipeline.engines.vllm",),
    ("pipeline.engines",), ("pipeline.asking",), ("pipeline.work",), ("pipeline.store.shards",),
    ("pipeline.store.runs",), ("pipeline.store.sql",), ("pipeline.store",), ("pipeline.worker",),
    ("pipeline.cluster",), ("pipeline",), ("stages",), ("stages.tables",), ("stages.text",),
    ("stages.extract",), ("stages.prompts",), ("stages.corpora.reading",),
    ("stages.corpora.formats", "stages.corpora.own", "stages.corpora.audits"),
    ("stages.corpora",), ("stages.index",), ("stages.gathered",), ("stages.query",),
    ("stages.retrieve",), ("stages.read",), ("stages.judge",), ("stages.score",),
    ("jobs.config", "jobs.output"), ("jobs.graph",), ("jobs.statistics", "jobs.problems"),
    ("jobs.audit",), ("jobs.run", "jobs.report", "jobs.trace"), ("jobs.cite",),
    ("jobs.compare", "jobs.plan", "jobs.people", "jobs.submit"),
    ("jobs.export", "jobs.warehouse", "jobs.api"), ("jobs.html", "jobs.plugin"), ("jobs.ask",),
    ("benchmarks.simulated", "benchmarks.peers"), ("benchmarks",), ("benchmarks.gpu",),
    ("jobs.cli",), ("jobs",), ("gistmill",),
)  # fmt: skip
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
PACKAGES = ("pipeline", "stages", "jobs", "benchmarks", "gistmill")
HOMES: dict[str, tuple[str, ...]] = {
    "tests": (),
    "": (),  # relative imports
    "?": ("pipeline/core/registry.py",),  # modules that a user names
    "gistmill": ("gistmill/",),
    "jobs": ("jobs/", "benchmarks/", "gistmill/"),
    "stages": ("stages/", "jobs/", "benchmarks/", "gistmill/"),
    "benchmarks": ("benchmarks/", "jobs/cli/execute_verbs.py"),  # which imports it if it is there
    "ray": ("pipeline/cluster/", "benchmarks/schedule.py", "benchmarks/peers/ray_data_llm.py"),
    "vllm": ("pipeline/engines/vllm/", "benchmarks/peers/"),
    "openai": ("pipeline/engines/openai_client.py", "benchmarks/peers/openai_server.py"),
    "duckdb": ("pipeline/store/sql/connection.py",),
    "pyarrow": ("pipeline/store/", "pipeline/core/rows.py", "pipeline/cluster/",
                "pipeline/files/parquet.py"),
    "sentence_transformers": ("pipeline/engines/embedder.py",),
    "torch": ("pipeline/engines/vllm/vllm_settings.py",),
    "hydra": ("pipeline/core/compose.py",),
    "omegaconf": ("pipeline/core/compose.py",),
    "charset_normalizer": ("stages/text/encodings.py",),
    "ijson": ("stages/corpora/reading/files.py",),
    "pypdfium2": ("stages/extract/pdf_pages.py",),
    "pdfplumber": ("stages/extract/pdf_pages.py",),
    "pdfminer": ("stages/extract/pdf_pages.py",),
    "mammoth": ("stages/extract/documents.py",),
    "lxml": ("stages/extract/",),
    "html_to_markdown": ("stages/extract/documents.py",),
}  # fmt: skip


@cache
def imports() -> dict[str, set[str]]:
    """What each file of ours imports; not read while tests are collected."""
    files = (file for name in PACKAGES for file in sorted((ROOT / name).rglob("*.py")))
    return {f.relative_to(ROOT).as_posix(): {*imported(f.read_text("utf-8"))} for f in files}


def imported(code: str) -> Iterator[str]:
    """The names that it imports, wherever it does: within functions, and for types alone, too."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "" if node.level else node.module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "id", "") or getattr(node.func, "attr", "")
            if name in ("__import__", "import_module"):
                yield str(node.args[0].value) if isinstance(node.args[0], ast.Constant) else "?"


@cache
def graph() -> dict[str, set[str]]:
    """The modules of ours that each module imports."""
    named = {
        file.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): names
        for file, names in imports().items()
    }
    return {
        module: {name if name in named else name.rpartition(".")[0] for name in names}
        & named.keys() - {module}
        for module, names in named.items()
    }


def room(module: str) -> str:
    """The folder of a module, as a package; a package's own `__init__` is in it."""
    is_package = (ROOT / module.replace(".", "/")).is_dir()
    return module if is_package else module.rpartition(".")[0]


def test_imports_go_down() -> None:
    assert {*map(room, graph())} == {*FLOOR}
    upward = [
        f"{module} imports {other}"
        for module, names in graph().items()
        for other in sorted(names)
        if (low := room(module)) != (high := room(other)) and FLOOR[low] <= FLOOR[high]
    ]
    assert upward == []


def test_the_machinery_imports_no_stage() -> None:
    """Commands read corpora and what is gathered of documents, which are none."""
    allowed = ("stages.corpora", "stages.builtin", "stages.gathered.gathered_pages")
    for name, imported in graph().items():
        if name.startswith(("jobs", "pipeline", "benchmarks")):
            stages = [module for module in imported if module.startswith("stages")]
            assert all(module.startswith(allowed) for module in stages), name


@pytest.mark.parametrize("library", HOMES)
def test_what_is_heavy_or_apart_is_imported_in_its_place(library: str) -> None:
    users = [file for file, names in imports().items()
             if library in {name.partition(".")[0] for name in names}]  # fmt: skip
    assert [file for file in users if not file.startswith(HOMES[library])] == []


def sources() -> Iterator[Any]:
    """Our examples and templates of plugins, contrib's, those of tests, the blocks of the page."""
    files = [
        *(ROOT / "docs" / "examples").rglob("*.py"),
        *(ROOT / "contrib").rglob("*.py"),
        *(ROOT / "jobs" / "plugin" / "templates").rglob("*.py.txt"),
        *(ROOT / "tests" / "support").glob("*_plugin/*.py"),
    ]
    for file in files:
        yield pytest.param(file.read_text(), id=file.relative_to(ROOT).as_posix())
    for code in blocks("docs/extending.md", "python"):
        yield pytest.param(code, id=code.splitlines()[0])


@pytest.mark.parametrize("source", [*sources()])
def test_plugins_import_the_public_modules_alone(source: str) -> None:
    public = {"gistmill", "gistmill.plugin", "gistmill.testing"}
    ours = [name for name in imported(source) if name.partition(".")[0] in PACKAGES]
    assert [name for name in ours if not {name, name.rpartition(".")[0]} & public] == []


@pytest.mark.parametrize(
    ("module", "heavy"),
    [("gistmill.plugin", {"jobs", "ray", "scipy"}), ("jobs.cli", {"ray", "pandas", "scipy"})],
)
def test_a_light_module_loads_no_heavy_library(module: str, heavy: set[str]) -> None:
    """What plugins and workers import, and what `gistmill --help` waits for."""
    code = f"import json, sys, {module}; print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert heavy.isdisjoint(name.partition(".")[0] for name in json.loads(done.stdout))


# A function counts when it is called, a module not by being imported. Threads count, too.
COUNT = """
import json, sys, threading
root, files = sys.argv[1] + "/", set()
def profile(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root) and code.co_name != "<module>":
        files.add(code.co_filename[len(root):])
sys.argv = ["gistmill", *sys.argv[2:]]
sys.path.insert(0, root)
from jobs.cli import main
threading.setprofile(profile)
sys.setprofile(profile)
try:
    main()
finally:
    sys.setprofile(None)
    ours = ("pipeline/", "stages/", "jobs/", "gistmill/")
    print(json.dumps(sorted(file for file in files if file.startswith(ours))), file=sys.stderr)
"""


def test_one_document_passes_few_files(tmp_path: Path) -> None:
    words = ("experiment=demo", "limit=1", "methods=gist_only", "rater=none", "cluster=inline")
    run = subprocess.run(
        [sys.executable, "-c", COUNT, str(ROOT), "run", *words, f"warehouse={tmp_path / 'w'}"],
        capture_output=True, text=True, check=True, cwd=tmp_path, timeout=120,
    )  # fmt: skip
    files = json.loads(run.stderr.splitlines()[-1])
    assert "stages/index/gist_pages.py" in files and "jobs/report/report.py" in files
    assert len(files) <= 80, files
