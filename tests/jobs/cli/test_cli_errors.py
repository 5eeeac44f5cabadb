"""Mistakes on the command line: exit code 2, one line that says where and what to do."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.cli.app import complain, warn
from pipeline.store.runs.run_folder import RunFolder
from tests.support.command import ROOT, gistmill, one_line, refused

pytestmark = pytest.mark.sampled


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_problems_are_red_in_a_terminal_unless_no_color_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def printed() -> str:
        screen = Terminal()
        with monkeypatch.context() as patched:
            patched.setattr("sys.stderr", screen)
            warn("by the way")
            complain("\x1b[2Jbad")
        return screen.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert printed() == "by the way\n\x1b[31m\\x1b[2Jbad\x1b[0m\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert printed() == "by the way\n\\x1b[2Jbad\n"


class Place:
    """A small corpus, some broken files, and a warehouse that must stay empty."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.warehouse = folder / "warehouse"
        self.write("corpus/documents.jsonl", json.dumps({"document_id": "a", "text": "one two"}))
        self.write("empty/documents.jsonl", "")
        self.write("torn/documents.jsonl", '{"document_id": "a", "te\n')
        self.write("file", "no folder")
        self.write("torn.yaml", "replies: [}")
        self.write("number.yaml", "replies:\n- {reply: 3}\n")
        self.write("pattern.yaml", "replies:\n- {match: '('}\n")
        self.write("nothing.yaml", "")
        self.write("family/answer.jinja", "{{ question }}")
        (folder / "bytes.yaml").write_bytes(b"replies: \xff")

    def write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def words(self, *words: str) -> list[str]:
        """`run` on the small corpus with `words`, in which {} is the folder."""
        named = [word.replace("{}", str(self.folder)) for word in words]
        given = {word.partition("=")[0] for word in named}
        usual = ["corpus=tables", f"corpus.path={self.folder / 'corpus'}"]
        usual = [word for word in usual if word.partition("=")[0] not in given]
        return ["run", *usual, f"warehouse={self.warehouse}", *named]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


CORPUS = [
    ("corpus.path=/nowhere/at/all", "/nowhere/at/all: no such file or folder; set corpus.path="),
    ("corpus.path={}/empty", "empty/documents.jsonl: no line or row in it is an object; set"),
    ("corpus.path={}/torn", "documents.jsonl:1: not JSON (Unterminated string starting at, col"),
    ("corpus.path={}/family", "family: no documents.jsonl or documents.parquet here; set corpus"),
    ("corpus.clean=tags", "corpus.clean: no such key; nearest: corpus."),
    ("corpus.format=xml", "corpus.format=xml: no such format; there are asked, huggingface, infi"),
    (
        "corpus.family=nosuch",
        "corpus.family=nosuch: no such family or folder; there are chats, generic",
    ),
]
METHODS = [
    ("methods=bm26", "methods: no method 'bm26'; nearest: bm25"),
    ("methods=,", "methods=,: names no method; gistmill ls lists them"),
    ("methods=", "methods= is empty; give it a value or leave it out"),
    ("methods=bm25(topk=3)", "methods: bm25: no argument 'topk=3'; it takes top_k"),
    ("methods=gist_only(a=1)", "methods: gist_only: no argument 'a=1'; it takes none"),
    (
        "methods=bm25(top_k=x)",
        "bm25.yaml (bm25(top_k=x)): look_up.top_k: Input should be a valid int",
    ),
    ("methods=bm25(top_k=0)", "(bm25(top_k=0)): look_up.top_k: Input should be greater than 0"),
    ("methods=bm25(top_k=3..1)", "methods: bm25: top_k=3..1 counts down; write 1..3"),
    ("methods=bm25(top_k=", "methods: 'bm25(top_k=' is not a method; write it like bm25(top_k=3)"),
    ("methods=bm25(top_k=[1)", "methods: bm25: top_k=[1 is not a value; write a number or a word"),
    ("methods=truncated", "truncated: keep is missing; write truncated(keep=...)"),
    ("methods=truncated(keep=all,keep=all)", "truncated: keep is given twice; write keep=a|b"),
]
KEYS = [
    ("nosuch=3", "nosuch: no such key; nearest: "),
    ("memory.min_word=3", "memory.min_word: no such key; nearest: memory.min_words"),
    (
        "memory=vector",
        "memory=vector: no such choice; memory is one of fitted, given, model, read_once, tokens, "
        "uniform",
    ),
    ("engine=gpt", "engine=gpt: no such choice; engine is one of extractive, "),
    ("rater=gpt", "rater=gpt: no such choice; rater is one of extractive, none, openai"),
    ("corpus=nosuch", "corpus=nosuch: no such choice; corpus is one of csv, demo, hugg"),
    ("experiment=nosuch", "experiment=nosuch: no such choice; experiment is one of ask, demo"),
    ("limit", "'limit' is not an override; write key=value"),
    ("limit=[1", "limit=[1: cannot be parsed; put quotes around the value"),
    ("--limit", "No such option: --limit; see gistmill run --help"),
]
VALUES = [
    (
        "memory.min_words=700",
        "memory=model: paginate: min_words 700 is over max_words 600; lower it",
    ),
    ("memory.min_words=ten", "memory.min_words=ten: Input should be a valid integer"),
    ("engine.temperature=hot", "engine.temperature=hot: Input should be a valid number"),
    ("limit=0", "limit=0: Input should be greater than 0"),
    ("limit=many", "limit=many: Input should be a valid integer"),
    ("max_problem_rate=2", "max_problem_rate=2: Input should be less than or equal to 1"),
    ("repeats=3", "repeats=3: every repeat would be the same, as engine=extractive is"),
    ("run=Bad Name", "run=Bad Name: String should match pattern '^[a-z][a-z0-9_-]*$'"),
    ("run=../up", "run=../up: String should match pattern"),
    ("engine.max_workers=0", "engine.max_workers=0: Input should be greater than 0"),
    ("warehouse={}/file", "file is not a writable folder; name another"),
    ("family=/nowhere/family", "family=/nowhere/family: no such family or folder; there are chats"),
    ("family={}/family", "family: no family.yaml there; name a folder of prompts"),
]
SCRIPTS = [
    ("", "engine.script is not set; add engine.script=..."),
    ("/nowhere.yaml", "engine.script=/nowhere.yaml: No such file or directory; set it, or rater"),
    ("{}/torn.yaml", "torn.yaml: not YAML: while parsing a flow node expected the node content"),
    ("{}/bytes.yaml", "bytes.yaml: not YAML: 'utf-8' codec can't decode byte 0xff"),
    ("{}/number.yaml", "number.yaml: replies.0.reply: Input should be a valid string"),
    ("{}/pattern.yaml", "pattern.yaml: replies.0.match: "),
    ("{}/nothing.yaml", "nothing.yaml: the file: Input should be a valid dictionary"),
]


@pytest.mark.parametrize(("word", "says"), [*CORPUS, *METHODS, *KEYS, *VALUES])
def test_a_run_that_cannot_be(place: Place, word: str, says: str) -> None:
    assert says in refused(*place.words(word))
    assert not place.warehouse.exists()


@pytest.mark.parametrize(("script", "says"), SCRIPTS)
def test_a_scripted_engine_without_a_script(place: Place, script: str, says: str) -> None:
    script_words = [f"engine.script={script}"] if script else []
    assert says in refused(*place.words("engine=scripted", *script_words))
    assert not place.warehouse.exists()


def test_what_is_not_set(place: Place) -> None:
    line = refused("run", "corpus=tables", f"warehouse={place.warehouse}")
    assert line == "corpus.path is not set; add corpus.path=..."
    assert refused(*place.words("limit=1", "sample=1")).startswith("limit and sample are both set")
    assert refused(*place.words("rater=scripted")).startswith("rater.script is not set; add")
    assert not place.warehouse.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nosuch"], "No such command 'nosuch'; see gistmill --help"),
        (["prompts"], "Missing command; see gistmill prompts --help"),
        (["show"], "Missing argument 'document_id'; see gistmill show --help"),
        (["ask"], "Missing argument 'FILE... QUESTION [KEY=VALUE]...'; see"),
        (["trace"], "Missing argument 'question_id'; see gistmill trace --help"),
        (["sql"], "Missing argument 'query'; see gistmill sql --help"),
        (["report", "limit=3"], "'limit=3': unknown option; there are warehouse, run, by, where"),
        (["report", "by="], "by= is empty; give it a value or leave it out"),
        (["status", "warehouse=/nowhere"], "/nowhere: no run there; start one with gistmill run"),
        (["trace", "q1", "warehouse=/nowhere"], "/nowhere: no run there; start one with"),
        (["sql", "select 1", "warehouse=/nowhere"], "/nowhere: no run there; start one with"),
        (["ls", "warehouse=/nowhere"], "/nowhere: no run there; start one with"),
        (["rate", "run=a"], "rate needs a rater: add rater=NAME (gistmill ls lists them)"),
        (["rate", "run=a", "limit=3"], "'limit=3': rate takes rater=, run=, warehouse=, cluster="),
        (["rate", "rater=extractive", "warehouse=/nowhere"], "/nowhere: no run there; start one"),
        (["prompts", "check", "/nowhere"], "/nowhere: no family.yaml there; name a folder of pro"),
    ],
)
def test_other_verbs(words: list[str], says: str) -> None:
    assert refused(*words).startswith(says)


@pytest.mark.slow
def test_a_warehouse_with_another_run(place: Place) -> None:
    here = RunFolder(place.warehouse, "here")
    here.start({}, {}, True)
    here.plan([], here.plan_files)
    warehouse = f"warehouse={place.warehouse}"
    for verb in (["report"], ["status"], ["trace", "q1"], ["sql", "select 1"]):
        line = refused(*verb, warehouse, "run=gone")
        assert line == f"run=gone: not in {place.warehouse}; it has here"
    assert refused("rate", warehouse, "run=gone", "rater=extractive").startswith("run=gone: not in")
    assert refused("sql", "selec 1", warehouse).startswith("sql: Parser Error: syntax error")
    assert '"nosuch"' in refused("sql", "select nosuch from answers", warehouse)
    assert refused("sql", ";", warehouse).startswith("sql: ")
    for verb in (["report"], ["status"], ["trace", "q1"]):
        line = refused(*verb, warehouse)
        assert line == "run=here: started by an earlier version of gistmill; start it again"
    here.start({"report": {"stages": []}}, {}, True)
    assert refused("trace", "q1", warehouse).startswith("q1: no such question in the run")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "corpus=tables"], "corpus.path is not set; add corpus.path=..."),
        (["run", "limit=0"], "limit=0: Input should be greater than 0"),
        (["nosuch"], "No such command 'nosuch'; see gistmill --help"),
        (["sql", "select 1"], "no run there; start one with gistmill run, or set warehouse="),
    ],
)
def test_nothing_is_made(place: Place, words: list[str], says: str) -> None:
    named = [*words, f"warehouse={place.warehouse}"] if len(words) > 1 else words
    assert says in refused(*named)
    assert not place.warehouse.exists()


def test_in_a_process_that_has_imported_nothing(place: Place) -> None:
    command = [sys.executable, "-m", "gistmill", "run", "limit=0", f"warehouse={place.warehouse}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert "limit=0: Input should be greater than 0" in one_line(done)
    assert not place.warehouse.exists()


def test_help_is_no_mistake() -> None:
    asked, bare = gistmill("run", "--help"), gistmill()
    assert (asked.returncode, asked.stderr) == (0, "")
    assert (bare.returncode, bare.stderr) == (2, "")
    assert "gistmill run" in asked.stdout and "trace" in bare.stdout


@pytest.mark.slow
def test_a_corpus_of_any_name_has_a_run(place: Place) -> None:
    """A run is named after its corpus, whose name may hold what a run's may not."""
    words = place.words("corpus.name=My Books (2024)", "methods=constant", "limit=1")
    place.write("corpus/documents.jsonl", '{"document_id": "a", "text": ""}')  # nothing to read
    done = gistmill(*words)
    assert done.returncode == 3, done.stderr  # bad_input
    assert "0 documents, 0 words; no pages" in done.stdout
    [run] = (place.warehouse / "runs").iterdir()
    assert run.name.startswith("my-books-2024-")
    assert f"run {run.name} in warehouse" in done.stdout


@pytest.mark.parametrize(
    "words",
    [("prompts", "export", "qmsum", "{}"), ("prompts", "check", "{}"),
     ("show", "d", "warehouse={}"), ("rm", "run=r", "warehouse={}")],
)  # fmt: skip
def test_a_name_that_no_file_can_have(tmp_path: Path, words: tuple[str, ...]) -> None:
    """No repetition of the command helps, as the exit code 4 would say."""
    long = str(tmp_path / ("n" * 300))
    line = refused(*(word.replace("{}", long) for word in words))
    assert line.endswith("...: File name too long; take a shorter one")
