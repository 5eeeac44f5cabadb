"""The words of verbs, in any order; and mistakes in them: exit code 2, one line that says where and
what to do."""

import json
from pathlib import Path

import pytest

from jobs.config.options import WORDS, read_options
from pipeline.store.runs.run_folder import RunFolder
from tests.support.command import refused, succeed
from tests.support.runs.warehouse import Warehouse, chunk, question, step
from tests.support.runs.written_plan import write_units

NOWHERE = "warehouse=/nowhere"
IN_FOLDER = {  # {} of the words below
    "corpus/documents.jsonl": json.dumps({"document_id": "a", "text": "one two"}),
    "empty/documents.jsonl": "",
    "torn/documents.jsonl": '{"document_id": "a", "te\n',
    "file": "no folder",
    "number.yaml": "replies:\n- {reply: 3}\n",
    "family/answer.jinja": "{{ question }}",
}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        # Of what tests/jobs/config/test_config.py refuses, a few through the command.
        (["corpus.path=/nowhere/at/all"], "/nowhere/at/all: no such file or folder"),
        (["corpus.path={}/empty"], "empty/documents.jsonl: "),
        (["corpus.path={}/torn"], "documents.jsonl:1: not JSON"),
        (["corpus.format=xml"], "corpus.format=xml: no such format"),
        (["corpus.family=nosuch"], "corpus.family=nosuch: no such family or folder"),
        (["--limit"], "No such option: --limit"),
        (["warehouse={}/file"], "file is not a writable folder"),
        (["family={}/family"], "family: no family.yaml there"),
        (["engine=scripted"], "engine.script is not set"),
        (["engine=scripted", "engine.script={}/number.yaml"], "number.yaml: replies.0.reply: "),
    ],
)
def test_a_run_that_cannot_be_makes_nothing(tmp_path: Path, words: list[str], says: str) -> None:
    for name, text in IN_FOLDER.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    usual = ("corpus=tables", f"corpus.path={tmp_path}/corpus", f"warehouse={tmp_path}/warehouse")
    words = [word.replace("{}", str(tmp_path)) for word in words]
    keys = {word.partition("=")[0] for word in words}
    line = refused("run", *(word for word in usual if word.partition("=")[0] not in keys), *words)
    assert says in line
    assert not (tmp_path / "warehouse").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nosuch"], "No such command 'nosuch'"),
        (["prompts"], "Missing command"),
        (["ask"], "Missing argument"),
        (["trace"], "Missing argument 'question_id'"),
        (["status", NOWHERE], "/nowhere: no run there"),
        (["sql", "select 1", NOWHERE], "/nowhere: no run there"),
        (["rate", "run=a"], "rate needs a rater"),
        (["rate", "run=a", "limit=3"], "'limit=3': "),
        (["prompts", "check", "/nowhere"], "/nowhere: no family.yaml there"),
        (["report", "day=1"], "'day=1': unknown word; there are warehouse, run, by, where, "),
        (["report", "run"], "'run': unknown word; there are warehouse, run, "),
        (["report", "--day=1"], "No such option: --day"),
        (["report", "run="], "run= is empty; give it a value or leave it out"),
        (["report", "--run=r"], "--run: write run=VALUE"),
        (["gc", "--older-than", "x"], "--older-than: write older_than=VALUE"),
        (["gc", "older_than=x", NOWHERE], "older_than=x: not a duration; write 24h"),
        (["trace", "q=1", "day=1"], "'day=1': unknown word; there are warehouse, run, method"),
        (["trace", "q=1", NOWHERE], "/nowhere: no run there"),
        (["trace", "run=r", "q1"], "'q1': unknown word; there are warehouse, run, method"),
        (["compare", "bm25(top_k=1)", NOWHERE], "/nowhere: no run there"),
        (["compare", NOWHERE, "a"], "/nowhere: no run there"),
        (["compare", "a", "day=1"], "'day=1': unknown word; there are warehouse, run, "),
        (["ls", NOWHERE], "/nowhere: no run there"),
        (["ls", "nosuch"], "ls nosuch: no such kind; "),
        (["schema", "day=1"], "'day=1': unknown word; there are plugins=..."),
        (["rate", "sheet", "n=many"], "n=many: Input should be a valid integer"),
        (["view", "port=65536"], "port=65536: Input should be less than 65536"),
        (["sql", "select 1", "rows=0"], "rows=0: Input should be greater than or equal to 1"),
    ],
)
def test_a_mistake_in_another_verb_is_one_line(words: list[str], says: str) -> None:
    assert refused(*words).startswith(says)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A warehouse with the runs r, of one question, and s, which was planned last, of none."""
    questions = step("questions")
    warehouse, unit = Warehouse(tmp_path), chunk(questions, "d1", "q1")
    warehouse.commit(questions, unit, [question()])
    warehouse.plan("r", (questions, [unit]))
    warehouse.plan("s")
    return f"warehouse={tmp_path}"


@pytest.mark.parametrize("words", [["run=r", "--json"], ["--json", "run=r"], ["run=r"]])
def test_words_follow_the_argument_in_any_order(folder: str, words: list[str]) -> None:
    query = "select count(*) = 1 as is_it from questions"  # holds a =, and is no word
    printed = succeed("sql", query, folder, *words)
    assert "is_it" in printed and "true" in printed.casefold()


def test_what_follows_two_dashes_is_no_option(folder: str) -> None:
    line = refused("show", "--", "--json", folder, "run=r")
    assert line.startswith("--json: no such document in the run")


def test_words_have_the_types_of_their_options() -> None:
    options = read_options(["cluster.address=http://h:1", "n=3"], [*WORDS])
    assert (options.address, options.n, options.seed) == ("http://h:1", 3, 0)


@pytest.mark.slow
def test_a_warehouse_with_another_run(tmp_path: Path) -> None:
    here, warehouse = RunFolder(tmp_path, "here"), f"warehouse={tmp_path}"
    here.start({}, {}, True)
    write_units(here, [], [])
    for verb in (["report"], ["status"], ["trace", "q1"], ["sql", "select 1"]):
        assert refused(*verb, warehouse, "run=gone") == f"run=gone: not in {tmp_path}; it has here"
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
    "words",
    [("prompts", "export", "qmsum", "{}"), ("prompts", "check", "{}"),
     ("show", "d", "warehouse={}"), ("rm", "run=r", "warehouse={}")],
)  # fmt: skip
def test_a_name_that_no_file_can_have(tmp_path: Path, words: tuple[str, ...]) -> None:
    """No repetition of the command helps, as the exit code 4 would say."""
    long = str(tmp_path / ("n" * 300))
    line = refused(*(word.replace("{}", long) for word in words))
    assert line.endswith("...: File name too long; take a shorter one")
