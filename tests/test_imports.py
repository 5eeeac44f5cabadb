"""Imports go one way, each heavy library lives in its place, and nothing is swallowed."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter

import pytest

from tests.command import ROOT

PACKAGES = ("pipeline", "stages", "jobs", "gistmill")
MAY_IMPORT = {
    "pipeline": {"pipeline"},
    "stages": {"pipeline", "stages"},
    "jobs": {"pipeline", "stages", "jobs"},
    "gistmill": {"pipeline", "jobs", "gistmill"},
}
HOMES = {
    "ray": ("pipeline/cluster/",),
    "vllm": ("pipeline/vllm_engine/",),
    "openai": ("pipeline/openai_client.py",),
    "duckdb": ("pipeline/store/views.py",),
    "pyarrow": ("pipeline/store/", "pipeline/rows.py", "pipeline/arrow.py", "pipeline/cluster/"),
    "sentence_transformers": ("pipeline/embedder.py",),
    "torch": (),
    "hydra": ("pipeline/config.py",),
    "omegaconf": ("pipeline/config.py",),
    "ijson": ("stages/corpora/containers.py",),
    "pypdfium2": ("stages/extract/pdf.py",),
    "mammoth": ("stages/extract/word.py",),
    "datasets": ("stages/corpora/huggingface.py",),
}
BROAD_HANDLER = "pipeline/executor.py"
OF_VARIABLES = "pipeline/plugins.py"  # imports what a user names
FILES = sorted(
    file.relative_to(ROOT).as_posix() for name in PACKAGES for file in (ROOT / name).rglob("*.py")
)


def tree(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"), file)


def imported(file: str) -> Iterator[str]:
    """The top package of every import, wherever in the file it stands."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: a relative import"
            yield (node.module or "").partition(".")[0]
        elif isinstance(node, ast.Call) and _called(node.func) and file != OF_VARIABLES:
            (first, *_) = node.args
            assert isinstance(first, ast.Constant), f"{file}:{node.lineno}: import of a variable"
            yield str(first.value).partition(".")[0]


def _called(function: ast.expr) -> str:
    names = {"__import__", "import_module"}
    name = getattr(function, "id", "") or getattr(function, "attr", "")
    return name if name in names else ""


def broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {getattr(kind, "id", getattr(kind, "attr", "")) for kind in kinds}
    return bool(names & {"Exception", "BaseException"})


def broad_handlers(file: str) -> list[ast.ExceptHandler]:
    nodes = [node for node in ast.walk(tree(file)) if isinstance(node, ast.ExceptHandler)]
    return [node for node in nodes if broad(node)]


def test_the_files_are_found() -> None:
    assert {"pipeline/store/views.py", "stages/corpora/qmsum.py", "jobs/cli/__init__.py"} <= set(
        FILES
    )
    assert "duckdb" in set(imported("pipeline/store/views.py"))


@pytest.mark.parametrize("file", FILES)
def test_imports_go_one_way(file: str) -> None:
    own = {name for name in imported(file) if name in (*PACKAGES, "tests")}
    assert own <= MAY_IMPORT[file.partition("/")[0]]


def modules_imported(file: str, known: set[str]) -> set[str]:
    """Modules of ours that a file imports anywhere: within functions, and for types alone, too."""
    found = set()
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (names & known) or {node.module or ""}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & known


def test_modules_import_in_no_circle() -> None:
    names = {
        file.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): file for file in FILES
    }
    graph = {name: modules_imported(file, {*names}) - {name} for name, file in names.items()}
    assert "jobs.status" in graph["jobs.cli.reading"], "the import of a name from a module"
    assert "pipeline.store.views" in graph["pipeline.store"], "within a function"
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError


@pytest.mark.parametrize("library", HOMES)
def test_a_heavy_library_lives_in_its_place(library: str) -> None:
    strangers = [
        file for file in FILES if library in imported(file) and not file.startswith(HOMES[library])
    ]
    assert strangers == []


@pytest.mark.parametrize("file", [file for file in FILES if file != BROAD_HANDLER])
def test_nothing_is_swallowed(file: str) -> None:
    lines = [handler.lineno for handler in broad_handlers(file)]
    assert lines == [], f"{file}: except Exception in lines {lines}"


def test_the_one_broad_handler_makes_failed_rows() -> None:
    (handler,) = broad_handlers(BROAD_HANDLER)
    assert "unit_failed" in ast.unparse(handler)


@pytest.mark.parametrize(
    ("handler", "is_broad"),
    [
        ("except:", True),
        ("except Exception:", True),
        ("except builtins.BaseException as e:", True),
        ("except (OSError, Exception):", True),
        ("except (OSError, ValueError):", False),
        ("except EngineError:", False),
    ],
)
def test_broad_handlers_are_told_from_others(handler: str, is_broad: bool) -> None:
    (statement,) = ast.parse(f"try:\n    pass\n{handler}\n    pass\n").body
    assert isinstance(statement, ast.Try)
    assert broad(statement.handlers[0]) is is_broad
