"""A plugin: a method with a stage, a prompt and a table of its own, in tests/support/quote_plugin.
It runs in processes of its own, as what a plugin brings is known to a whole process."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.jobs.html.test_html import chunk
from tests.support import command
from tests.support.command import ROOT, one_line, own_process, refused, succeed, succeeded
from tests.support.texts.small_corpus import UNIFORM, document, question, write

PLUGIN = ROOT / "tests" / "support" / "quote_plugin"
SCRIPT = {
    "replies": [
        {"prompt": "gist", "reply": "A short gist."},
        # Quotes of page 0 say so; those of other pages cannot be read.
        {"prompt": "quote", "match": "paragraph one", "reply": "it ends here"},
        {"prompt": "quote", "reply": ""},
        {"prompt": "answer", "match": "it ends here", "reply": "It ends."},
        {"prompt": "answer", "reply": "Nothing is known."},
        {"prompt": "rate_strict", "reply": "NO"},
        {"prompt": "rate_permissive", "reply": "No"},
    ]
}


def copied(folder: Path, file: str = "__init__.py", text: str = "") -> Path:
    """A copy of the plugin, with one more file or another content of one it has."""
    without = shutil.ignore_patterns("__pycache__")
    copy = shutil.copytree(PLUGIN, folder / "quote_plugin", ignore=without)
    (copy / file).parent.mkdir(parents=True, exist_ok=True)
    (copy / file).write_text(text)
    return copy


def words(folder: Path, plugin: Path = PLUGIN) -> list[str]:
    """A run of the plugin's method beside one of ours, on four documents with a question each."""
    numbers = range(4)
    write(folder / "corpus", [document(n) for n in numbers], [question(n, of=n) for n in numbers])
    (folder / "script.yaml").write_text(yaml.safe_dump(SCRIPT))
    return [
        "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, f"plugins={plugin}",
        "methods=quotes(top_k=1),bm25(top_k=1)", "engine=scripted",
        f"engine.script={folder / 'script.yaml'}", "engine.sequences=2", "run=night",
        f"warehouse={folder / 'warehouse'}", "max_problem_rate=1",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_method_of_a_plugin_from_plan_to_page(tmp_path: Path) -> None:
    run, folder = words(tmp_path), tmp_path / "warehouse"
    warehouse = f"warehouse={folder}"
    plan = json.loads(succeeded(own_process("plan", *run, "--json")))
    # Four documents: a quote and two answers a question, two verdicts an answer; no gists.
    calls = {"quote": 4, "answer": 8, "rate": 16}
    assert {stage["stage"]: stage["expected"]["calls"] for stage in plan["stages"]} == calls
    out = json.loads(succeeded(own_process("run", *run, "cluster=local", "--json")))
    assert out["report"]["inputs"]["not_done"] == 0

    # BM25 finds the same words in all pages of a document: ties go to page 0, whose quote is read.
    query = "select method, memory, place, page_index, quote, problem from quotes"
    row = ("quotes(top_k=1,max_words=30)", "shared", 0, 0, "it ends here", None)
    assert command.sql_values(folder, query) == [row] * 4
    query = "select method, answer, count(*) from answers group by all order by all"
    assert command.sql_values(folder, query) == [
        ("bm25(top_k=1)", "Nothing is known.", 4), ("quotes(top_k=1,max_words=30)", "It ends.", 4),
    ]  # fmt: skip
    query = "select stage, count(*) from calls group by all"
    assert dict(command.sql_values(folder, query)) == calls

    printed = succeed("report", warehouse)
    assert "| quotes(top_k=1,max_words=30) |" in printed and "| quote " in printed
    assert "it ends here" in succeed("trace", "q2", warehouse)
    # What was sent is stored, so that it is shown without the plugin, too.
    traced = json.loads(succeed("trace", "q2", "--prompts", "--json", warehouse))
    messages = [call["messages"] for method in traced["methods"] for call in method["calls"]]
    assert len(messages) == 7 and all(messages)  # a quote, and an answer and two verdicts a method

    # Rows are shown with the plugin, and without it.
    for number, plugin in enumerate(([], [f"plugins={PLUGIN}"])):
        file = tmp_path / f"page{number}.html"
        succeeded(own_process("report", f"html={file}", warehouse, *plugin))
        (shown,) = chunk(file.read_text(encoding="utf-8"), "part-2")["questions"].values()
        (quotes,) = [section for section in shown["sections"] if section["table"] == "quotes"]
        assert "place 0" in quotes["lines"][-1]
        sent = [call["messages"] for call in shown["calls"] if call["stage"] == "quote"]
        assert sent and all(sent)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("verb", "file", "text", "told"),
    [
        ("run", "quotes.sql", "-- name: measure\nselect 1",
         "quotes.sql: section 'measure': neither `create view {prefix}measure as` nor one of "),
        ("run", "conf/prompts/generic/family.yaml", "wording: ours\n",
         "a family generic exists already"),
        ("run", "conf/prompts/generic/quote.jinja", "{{ nosuch }}",
         "quote.jinja: 'nosuch' is undefined"),
        ("schema", "quotes.sql", "-- name: quoted\ncreate view {prefix}quoted as\n"
         "select {run}qote from {prefix}quotes\n",
         "section 'quoted': Binder Error: Referenced column \"qote\" not found"),
        ("schema", "quotes.sql", "-- name: measures\nselect nosuch as value from quotes\n",
         "section 'measures': Binder Error: Referenced column \"nosuch\" not found"),
    ],
)  # fmt: skip
def test_a_plugin_that_cannot_be_used(
    tmp_path: Path, verb: str, file: str, text: str, told: str
) -> None:
    plugin = copied(tmp_path / "plugins", file, text)
    run = words(tmp_path, plugin) if verb == "run" else [f"plugins={plugin}"]
    line = one_line(own_process(verb, *run))
    assert told in line and "quote_plugin" in line


def test_a_folder_that_cannot_be_a_plugin(tmp_path: Path) -> None:
    folder = copied(tmp_path).rename(tmp_path / "my-plugin")
    line = refused("run", *words(tmp_path, folder))
    told = "'my-plugin' cannot be imported; name the folder like my_plugin"
    assert line.startswith(f"plugins={folder}: {told}")


def python(folder: Path, path: str, *words: str) -> str:
    """The standard output of Python in a folder, with this PYTHONPATH."""
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True,
                          timeout=300, env={**os.environ, "PYTHONPATH": path})  # fmt: skip
    return succeeded(done)


@pytest.mark.slow
def test_it_runs_by_a_script_that_imports_it(tmp_path: Path) -> None:
    """It is importable by its own name, too, here and on workers."""
    copied(tmp_path)
    script = "import sys, gistmill, quote_plugin.quote; gistmill.run(*sys.argv[1:])"
    run = [*words(tmp_path, Path("quote_plugin")), "cluster=local"]
    python(tmp_path, str(ROOT), "-c", script, *run)
    assert command.sql_values(tmp_path / "warehouse", "select count(*) from quotes") == [(4,)]


def test_tests_beside_its_modules_are_left_out(tmp_path: Path) -> None:
    """They may import what no worker has."""
    plugin = copied(tmp_path, "conftest.py", "import no_such_module\n")
    schema = ("schema", f"plugins={plugin}", "--json")
    assert "quotes" in str(json.loads(succeeded(own_process(*schema)))["tables"])
    (plugin / "quote.py").rename(plugin / "test_quote.py")
    assert "quotes" not in str(json.loads(succeeded(own_process(*schema)))["tables"])


@pytest.mark.slow
def test_an_installed_plugin(tmp_path: Path) -> None:
    """What pip leaves of a package with an entry point: its modules and its metadata."""
    copied(tmp_path / "site")
    metadata = tmp_path / "site" / "quote_plugin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: quote-plugin\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[gistmill.plugins]\nquotes = quote_plugin\n")
    path = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
    folder = tmp_path / "warehouse"

    def installed(*words: str) -> str:
        return python(ROOT, path, "-m", "gistmill", *words, f"warehouse={folder}")

    installed("run", "experiment=demo", "methods=quotes", "limit=1")
    (counted,) = command.sql(folder, "select count(*) as n from quotes where quote is not null")
    assert json.loads(installed("sql", "select count(*) as n from quoted", "--json")) == [counted]
    assert counted["n"] > 0
