"""Every line in its room: imports between folders go one way, each heavy library lives in its
place, no folder is a hall, and nothing is swallowed."""

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from tests.support.command import ROOT

# Every room, lowest first. A folder imports from itself and from folders of earlier lines; rooms on
# one line do not know each other. `stages` are in the order in which they run.
FLOORS = (
    ("pipeline.core",),
    ("pipeline.files", "pipeline.families"),
    ("pipeline.engines.vllm",),
    ("pipeline.engines",),
    ("pipeline.asking",),
    ("pipeline.work",),
    ("pipeline.store.shards",),
    ("pipeline.store.runs",),
    ("pipeline.store.sql",),
    ("pipeline.store",),
    ("pipeline.worker",),
    ("pipeline.cluster",),
    ("pipeline",),
    ("stages",),
    ("stages.tables",),
    ("stages.text",),
    ("stages.extract",),
    ("stages.prompts",),
    ("stages.corpora.reading",),
    ("stages.corpora.formats", "stages.corpora.own", "stages.corpora.audits"),
    ("stages.corpora",),
    ("stages.index",),
    ("stages.gathered",),
    ("stages.query",),
    ("stages.retrieve",),
    ("stages.read",),
    ("stages.judge",),
    ("stages.score",),
    ("jobs.config", "jobs.output"),
    ("jobs.graph",),
    ("jobs.statistics", "jobs.problems"),
    ("jobs.audit",),
    ("jobs.run", "jobs.report", "jobs.trace"),
    ("jobs.cite",),
    ("jobs.compare", "jobs.plan", "jobs.people", "jobs.submit"),
    ("jobs.export", "jobs.warehouse", "jobs.api"),
    ("jobs.html", "jobs.plugin"),
    ("jobs.ask",),
    ("benchmarks.simulated", "benchmarks.peers"),
    ("benchmarks",),
    ("benchmarks.gpu",),
    ("jobs.cli",),
    ("jobs",),
    ("gistmill",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
PACKAGES = ("pipeline", "stages", "jobs", "benchmarks", "gistmill")
MAY_IMPORT = {
    "pipeline": {"pipeline"},
    "stages": {"pipeline", "stages"},
    "jobs": {"pipeline", "stages", "jobs"},
    "benchmarks": {"pipeline", "stages", "jobs", "benchmarks"},
    "gistmill": {"pipeline", "stages", "jobs", "gistmill"},
}
BENCH_ENTRY = "jobs/cli/execute_verbs.py"  # imports benchmarks, where there are any
HOMES = {
    "ray": ("pipeline/cluster/", "benchmarks/schedule.py", "benchmarks/peers/ray_data_llm.py"),
    "vllm": ("pipeline/engines/vllm/", "benchmarks/peers/"),
    "openai": ("pipeline/engines/openai_client.py", "benchmarks/peers/openai_server.py"),
    "duckdb": ("pipeline/store/sql/connection.py",),
    "pyarrow": (
        *("pipeline/store/", "pipeline/core/rows.py"),
        *("pipeline/cluster/", "pipeline/files/parquet.py"),
    ),
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
}
BROAD_HANDLER = "pipeline/core/errors.py"
CALL_PLUGINS = {  # what a plugin's code raises there becomes a problem, a line or a warning
    "pipeline.core.registry", "pipeline.worker.executor", "stages.score.score",
    "pipeline.core.engine", "pipeline.asking.reader",
    "pipeline.work.stage", "pipeline.core.rows",
    "stages.corpora.reading.corpus",
    "pipeline.engines.vllm.chat_tokenizer",  # a model's chat template is code, too
    "pipeline.cluster.joining",  # Ray raises a bare Exception if it does not start in time
}  # fmt: skip
OF_VARIABLES = "pipeline/core/registry.py"  # imports what a user names
# A prompt is called as the stage that asks it, for they are one thing to a reader.


@cache
def trees() -> dict[str, ast.Module]:
    """Every file of ours, parsed once; not while tests are collected."""
    files = (file for name in PACKAGES for file in sorted((ROOT / name).rglob("*.py")))
    return {
        file.relative_to(ROOT).as_posix(): ast.parse(file.read_text(encoding="utf-8"), str(file))
        for file in files
    }


@cache
def modules() -> dict[str, str]:
    """The files of modules, by name."""
    return {
        file.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): file
        for file in trees()
    }


@cache
def libraries_of() -> dict[str, set[str]]:
    """What each file imports, by top package."""
    return {file: set(libraries(file, tree)) for file, tree in trees().items()}


@cache
def graph() -> dict[str, set[str]]:
    """The modules of ours that each module imports."""
    return {
        name: modules_imported(trees()[file], {*modules()}) - {name}
        for name, file in modules().items()
    }


def libraries(file: str, tree: ast.Module) -> Iterator[str]:
    """The top package of every import, wherever in the file it stands."""
    for node in ast.walk(tree):
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


def room(module: str, file: str) -> str:
    """The folder of a module, as a package; a package's own `__init__` is in it."""
    return module if file.endswith("__init__.py") else module.rpartition(".")[0]


def modules_imported(tree: ast.Module, known: set[str]) -> set[str]:
    """Modules of ours that a file imports anywhere: within functions, and for types alone, too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if name in known else node.module or "")
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & known


def upward(imports: dict[str, set[str]]) -> list[str]:
    """The imports that do not go down: from a room to one of its own floor or above."""
    files = modules()
    pairs = ((a, b) for a in imports for b in imports[a])
    arrows = ((a, b, room(a, files[a]), room(b, files[b])) for a, b in pairs)
    return sorted(
        f"{a} imports {b}"
        for a, b, low, high in arrows
        if low != high and FLOOR[low] <= FLOOR[high]
    )


def broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {getattr(kind, "id", getattr(kind, "attr", "")) for kind in kinds}
    return bool(names & {"Exception", "BaseException"})


def broad_handlers(tree: ast.Module) -> list[ast.ExceptHandler]:
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)]
    return [node for node in nodes if broad(node)]


def test_every_room_has_a_floor_and_a_contract() -> None:
    rooms = {room(name, file) for name, file in modules().items()}
    assert rooms == {*FLOOR}
    silent = [name for name in rooms if not ast.get_docstring(trees()[modules()[name]])]
    assert silent == [], "say in a sentence what a folder is for"


def test_imports_go_down() -> None:
    assert upward(graph()) == []


def test_packages_import_in_one_direction() -> None:
    for file, names in libraries_of().items():
        allowed = MAY_IMPORT[file.partition("/")[0]]
        own = names & {*PACKAGES, "tests"} - ({"benchmarks"} if file == BENCH_ENTRY else set())
        assert own <= allowed, file


def test_the_machinery_imports_no_stage() -> None:
    """Commands read corpora and what is gathered of documents, which are none."""
    allowed = ("stages.corpora", "stages.builtin", "stages.gathered.gathered_pages")
    for name, imported in graph().items():
        if name.startswith(("jobs", "pipeline", "benchmarks")):
            stages = [module for module in imported if module.startswith("stages")]
            assert all(module.startswith(allowed) for module in stages), name


@pytest.mark.parametrize("library", HOMES)
def test_a_heavy_library_lives_in_its_place(library: str) -> None:
    users = (file for file, names in libraries_of().items() if library in names)
    assert [file for file in users if not file.startswith(HOMES[library])] == []


def test_nothing_is_swallowed() -> None:
    lines = [
        f"{file}:{handler.lineno}"
        for file, tree in trees().items()
        for handler in broad_handlers(tree)
        if file != BROAD_HANDLER
    ]
    assert lines == [], "except Exception"


def test_the_one_broad_handler_is_around_plugins_alone() -> None:
    assert len(broad_handlers(trees()[BROAD_HANDLER])) == 1
    files = [file for file, tree in trees().items() if "with contained(" in ast.unparse(tree)]
    users = {file.removesuffix(".py").replace("/", ".") for file in files}
    assert users == CALL_PLUGINS
