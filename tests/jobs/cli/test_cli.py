"""The words of verbs, and mistakes in them; `--help`, `--version`; and what the environment of a
command may hold: proxies and certificates, an encoding that lacks what is printed."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from jobs.cli.app import app
from jobs.config.run_config import RunConfig
from pipeline.store.runs.run_folder import RunFolder
from tests.pipeline.engines.test_openai_engine import settings, start_error
from tests.support.clusters.ray_head import free_ports
from tests.support.command import ROOT, refused, succeed
from tests.support.engines.loopback_server import LoopbackServer
from tests.support.runs.warehouse import Warehouse, document_unit, gist, step
from tests.support.runs.written_plan import write_units
from tests.support.texts.small_corpus import UNIFORM, document, question, write

NOWHERE = "warehouse=/nowhere"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        # Of what tests/jobs/config/test_config.py refuses, and readers of corpora, a few.
        (["warehouse={}/file"], "file is not a writable folder"),
        (["corpus=text", "corpus.path=/nowhere/at/all"], "/nowhere/at/all: no such file or folder"),
        (["corpus.format=xml"], "corpus.format=xml: no such format"),
        (["corpus.family=nosuch"], "corpus.family=nosuch: no such family or folder"),
        (["engine=scripted", "engine.script={}/number.yaml"], "number.yaml: replies.0.reply: "),
    ],
)
def test_a_run_that_cannot_be_makes_nothing(tmp_path: Path, words: list[str], says: str) -> None:
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "number.yaml").write_text("replies:\n- {reply: 3}\n")
    warehouse = [] if words[0].startswith("warehouse=") else ["warehouse={}/warehouse"]
    assert says in refused("run", *(w.replace("{}", str(tmp_path)) for w in (*words, *warehouse)))
    assert not (tmp_path / "warehouse").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nosuch"], "No such command 'nosuch'"),
        (["trace"], "Missing argument 'question_id'"),
        (["rate", "run=a"], "rate needs a rater"),
        (["rate", "run=a", "limit=3"], "'limit=3': "),
        (["prompts", "check", "/nowhere"], "/nowhere: no family.yaml there"),
        (["report", "day=1"], "'day=1': unknown word; there are warehouse, run, by, where, "),
        (["report", "--day=1"], "No such option: --day"),
        (["report", "run="], "run= is empty; give it a value or leave it out"),
        (["report", "--run=r"], "--run: write run=VALUE"),
        (["gc", "--older-than", "x"], "--older-than: write older_than=VALUE"),
        (["gc", "older_than=x", NOWHERE], "older_than=x: not a duration; write 24h"),
        (["trace", "run=r", "q1"], "'q1': unknown word; there are warehouse, run, method"),
        (["compare", NOWHERE, "a"], "/nowhere: no run there"),
        (["ls", "stags"], "ls stags: no such kind; nearest: stages"),
        (["schema", "gisst"], "gisst: no table, view, stage, "),
        (["schema", "plugins=nowhere"], "plugins=nowhere: no such folder"),
        (["view", "port=65536"], "port=65536: Input should be less than 65536"),
        (["sql", "select 1", "rows=0"], "rows=0: Input should be greater than or equal to 1"),
    ],
)
def test_a_mistake_in_another_verb_is_one_line(words: list[str], says: str) -> None:
    assert refused(*words).startswith(says)


def test_words_follow_the_argument_in_any_order(tmp_path: Path) -> None:
    """What follows two dashes is no option. The run s, which was planned last, has no gist."""
    gists, folder = step("gists"), f"warehouse={tmp_path}"
    warehouse, unit = Warehouse(tmp_path), document_unit(gists, "d1")
    warehouse.commit(gists, unit, [gist(0)])
    warehouse.plan("r", (gists, [unit]))
    warehouse.plan("s")
    query = "select count(*) = 1 as is_it from gists"  # holds a =, and is no word
    for words in (["run=r", "--json"], ["--json", "run=r"], ["run=r"]):
        printed = succeed("sql", query, folder, *words)
        assert "is_it" in printed and "true" in printed.casefold()
    line = refused("show", "--", "--json", folder, "run=r")
    assert line.startswith("--json: no such document in the run")


@pytest.mark.slow
def test_a_warehouse_with_another_run(tmp_path: Path) -> None:
    here, warehouse = RunFolder(tmp_path, "here"), f"warehouse={tmp_path}"
    here.start({}, {}, True)
    write_units(here, [], [])
    for verb in (["report"], ["status"], ["trace", "q1"], ["sql", "select 1"]):
        assert refused(*verb, warehouse, "run=gone") == f"run=gone: not in {tmp_path}; it has here"
    assert refused("rate", warehouse, "run=gone", "rater=extractive").startswith("run=gone: not in")
    for query, says in (("selec 1", "Parser Error: "), ("select nosuch from answers", '"nosuch"'),
                        (";", "")):  # fmt: skip
        line = refused("sql", query, warehouse)
        assert line.startswith("sql: ") and says in line
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


def test_the_version() -> None:
    assert succeed("--version") == f"gistmill {importlib.metadata.version('gistmill')}\n"


def verbs_of(group: Any, *above: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every verb of the command with its words, and the groups of verbs."""
    for name, verb in group.commands.items():
        yield (*above, name), verb
        if hasattr(verb, "commands"):
            yield from verbs_of(verb, *above, name)


VERBS = dict(verbs_of(typer.main.get_command(app)))


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_the_help_of_a_verb_has_an_example_and_all_options(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = succeed(*words, "--help")
    assert max(map(len, text.splitlines())) <= 80
    if not hasattr(VERBS[words], "commands"):
        example = re.search(r"Example:\n    gistmill (.+)", text)
        assert example and example[1].split()[: len(words)] == [*words]
    assert all(param.opts[0] in text for param in VERBS[words].params if param.opts[0][:1] == "-")


def test_run_help_names_every_key() -> None:
    text = succeed("run", "--help")
    words = set(re.findall(r"(\w+)(?:\.\w+)?=", text))
    keys = {*RunConfig.model_fields, "experiment", "rater"}
    assert keys - words == {"name", "raters", "predictions", "audit_of"}


DEAD = "http://me:proxy-5f3e9c1d@127.0.0.1:9"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("https_proxy", "socks5h://me:proxy-5f3e9c1d@127.0.0.1:9"),
        ("HTTP_PROXY", DEAD),
        ("all_proxy", DEAD),
        ("HTTP_PROXY", "http://me:proxy-5f3e9c1d"),
        ("HTTP_PROXY", "ftp://127.0.0.1:9"),
        ("SSL_CERT_FILE", "/no/such/file.pem"),
        ("SSL_CERT_FILE", str(Path(__file__))),
    ],
)
def test_what_cannot_be_used_is_one_line_that_names_the_variable(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with LoopbackServer() as server:
        line = start_error(settings(server.url))
    assert name in line and "proxy-5f3e9c1d" not in line


def test_a_proxy_that_is_not_before_the_server_is_no_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}/v1"
    monkeypatch.setenv("HTTPS_PROXY", DEAD)
    assert "PROXY" not in start_error(settings(url))
    monkeypatch.setenv("HTTP_PROXY", DEAD)
    assert "HTTP_PROXY" in start_error(settings(url))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    assert "PROXY" not in start_error(settings(url))


def test_a_proxy_that_answers_in_the_server_s_place_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with LoopbackServer(models_status=503) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        line = start_error(settings("http://server.invalid/v1", retries=0))
    assert "503 through the proxy that HTTP_PROXY names: " in line


def command(*words: str, **environment: str) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "gistmill", *words],
        cwd=ROOT, capture_output=True, timeout=300, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_standard_output_that_is_not_utf8(tmp_path: Path) -> None:
    """Tables lose the characters; JSON and exports are UTF-8, as in a file."""
    row = {**question(1, of=1), "question": "Où est mill1, à Łódź?", "references": ["Łódź"]}
    text = document(1)["text"].replace("gist1", "Łódź")
    write(tmp_path / "corpus", [{**document(1), "text": text}], [row])
    warehouse, latin = f"warehouse={tmp_path / 'w'}", {"PYTHONIOENCODING": "latin-1"}
    corpus = ("corpus=tables", f"corpus.path={tmp_path / 'corpus'}", *UNIFORM, "rater=none")
    command("run", *corpus, "methods=full_text", "cluster=inline", warehouse,
            PYTHONIOENCODING="ascii")  # fmt: skip
    c_locale = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    for encoding in ({"PYTHONIOENCODING": "ascii"}, c_locale):
        assert b"O? est mill1, ? ??d??" in command("trace", "q1", warehouse, **encoding)
    found = command("sql", "select question as q from questions", warehouse, "--json", **latin)
    assert json.loads(found.decode()) == [{"q": "Où est mill1, à Łódź?"}]
    exported = command("export", "predictions", "method=full_text", "to=-", warehouse, **latin)
    assert "Łódź" in exported.decode()
