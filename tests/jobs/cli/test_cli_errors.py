"""Mistakes on the command line: exit code 2, one line that says where and what to do."""

import json
from pathlib import Path

import pytest

from pipeline.store.runs.run_folder import RunFolder
from tests.support.command import gistmill, refused
from tests.support.runs.written_plan import write_units

pytestmark = pytest.mark.sampled


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


# Of what tests/jobs/config/test_config.py refuses, a few through the command: nothing is made.
WORDS = [
    ("corpus.path=/nowhere/at/all", "/nowhere/at/all: no such file or folder"),
    ("corpus.path={}/empty", "empty/documents.jsonl: "),
    ("corpus.path={}/torn", "documents.jsonl:1: not JSON"),
    ("corpus.format=xml", "corpus.format=xml: no such format"),
    ("corpus.family=nosuch", "corpus.family=nosuch: no such family or folder"),
    ("methods=,", "methods=,: names no method"),
    ("methods=truncated(keep=all,keep=all)", "truncated: keep is given twice"),
    ("--limit", "No such option: --limit"),
    ("warehouse={}/file", "file is not a writable folder"),
    ("family={}/family", "family: no family.yaml there"),
]
SCRIPTS = [
    ("", "engine.script is not set"),
    ("/nowhere.yaml", "engine.script=/nowhere.yaml: "),
    ("{}/torn.yaml", "torn.yaml: not YAML"),
    ("{}/bytes.yaml", "bytes.yaml: not YAML"),
    ("{}/number.yaml", "number.yaml: replies.0.reply: "),
    ("{}/pattern.yaml", "pattern.yaml: replies.0.match: "),
    ("{}/nothing.yaml", "nothing.yaml: the file: "),
]


@pytest.mark.parametrize(("word", "says"), WORDS)
def test_a_run_that_cannot_be(place: Place, word: str, says: str) -> None:
    assert says in refused(*place.words(word))
    assert not place.warehouse.exists()


@pytest.mark.parametrize(("script", "says"), SCRIPTS)
def test_a_scripted_engine_without_a_script(place: Place, script: str, says: str) -> None:
    script_words = [f"engine.script={script}"] if script else []
    assert says in refused(*place.words("engine=scripted", *script_words))
    assert not place.warehouse.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nosuch"], "No such command 'nosuch'"),
        (["prompts"], "Missing command"),
        (["ask"], "Missing argument"),
        (["trace"], "Missing argument 'question_id'"),
        (["status", "warehouse=/nowhere"], "/nowhere: no run there"),
        (["sql", "select 1", "warehouse=/nowhere"], "/nowhere: no run there"),
        (["rate", "run=a"], "rate needs a rater"),
        (["rate", "run=a", "limit=3"], "'limit=3': "),
        (["prompts", "check", "/nowhere"], "/nowhere: no family.yaml there"),
    ],
)
def test_other_verbs(words: list[str], says: str) -> None:
    assert refused(*words).startswith(says)


@pytest.mark.slow
def test_a_warehouse_with_another_run(place: Place) -> None:
    here = RunFolder(place.warehouse, "here")
    here.start({}, {}, True)
    write_units(here, [], [])
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
