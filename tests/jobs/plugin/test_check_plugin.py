"""`gistmill plugin check`: what it finds of the plugins that `plugin new` writes, and of broken
ones."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from jobs.plugin.brought import words_of, words_of_each
from tests.support.command import ROOT, one_line, refused, succeeded

BRINGS = {
    "method": {("stage", "look_up (kind mine)"), ("method", "mine")},
    "metric": {("metric", "mine"), ("family", "mine")},
    "engine": {("engine", "mine"), ("rater", "mine")},
    "judge": {("stage", "rate (kind mine)"), ("prompt", "judge_mine"), ("rubric", "mine"),
              ("column", "mine"), ("family", "mine")},
    "corpus": {("corpus", "mine"), ("format", "mine")},
    "family": {("family", "mine")},
}  # fmt: skip
# Of 1200 words model pagination makes 9 pages by 8 requests; 3 answers, 2 verdicts on each. The
# other methods ask for 9 gists more; the judge gives one verdict; what the engine `mine` replies
# ends no page, so that other windows are asked about; the sample's document is one page.
REQUESTS = {"method": 8 + 3 + 6, "metric": 8 + 9 + 3 + 6, "judge": 8 + 9 + 3 + 3,
            "family": 8 + 9 + 3 + 6, "corpus": 1 + 1 + 2}  # fmt: skip
BROUGHT = ROOT / "tests" / "support" / "brought_plugin"
MOST_IN_FLIGHT = 5  # 1.25 of engine.sequences


def command(folder: Path, *words: str) -> "CompletedProcess[str]":
    """The command in a process of its own, in that folder."""
    return subprocess.run(
        [sys.executable, "-m", "jobs", "plugin", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )


def changed(folder: Path, kind: str, file: str, old: str, new: str) -> None:
    """A new plugin, with one change."""
    succeeded(command(folder, "new", "mine", f"--{kind}"))
    text = (folder / "mine" / file).read_text()
    assert old in text
    (folder / "mine" / file).write_text(text.replace(old, new))


@pytest.mark.slow
@pytest.mark.parametrize("kind", BRINGS)
def test_it_passes_on_each_kind(kind: str, tmp_path: Path) -> None:
    succeeded(command(tmp_path, "new", "mine", f"--{kind}"))
    found = json.loads(succeeded(command(tmp_path, "check", "mine", "--json")))
    assert {(row["kind"], row["name"]) for row in found["brings"]} == BRINGS[kind]
    assert {row["used"] for row in found["brings"]} == {"yes"}
    (run,) = found["runs"]
    assert run["wrong"] == []
    asked = 1 if kind == "corpus" else 3
    inputs = {row["stage"]: (row["inputs"], row["ok"]) for row in run["steps"]}
    assert inputs["documents"] == (1, 1) and inputs["answer"] == (asked, asked)
    assert run["requests"] == REQUESTS.get(kind, run["requests"])
    assert run["killed_at"] == run["requests"] // 2 + 1
    assert 1 <= run["sent_again"] <= MOST_IN_FLIGHT


@pytest.mark.slow
def test_each_engine_and_extractor_is_run(tmp_path: Path) -> None:
    plugin = shutil.copytree(BROUGHT, tmp_path / "brought_plugin")
    (plugin / "sample.tsv").write_text("The river rose.\tWhat did the river do?\tRise.\n")
    other = (plugin / "conf/engine/echo.yaml").read_text().replace("sequences: ", "sequences: 1")
    (plugin / "conf/engine/echo_slow.yaml").write_text(other)
    told = succeeded(command(tmp_path, "check", "brought_plugin"))
    assert told.endswith("has a file for it: sample.srt\n") and told.count("the run: ") == 2
    (plugin / "sample.srt").write_text("0:01 --> 0:02\nThe river rose.\n")
    found = json.loads(succeeded(command(tmp_path, "check", "brought_plugin", "--json")))
    assert {row["used"] for row in found["brings"]} == {"yes"}
    assert [[word for word in run["words"] if word.startswith(("engine", "corpus="))]
            for run in found["runs"]] == [
        ["engine=echo", "corpus=lines"], ["engine=echo_slow", "corpus=text"]
    ]  # fmt: skip


@pytest.mark.slow
def test_each_experiment_is_run_where_it_can_be(tmp_path: Path) -> None:
    folder = tmp_path / "mine" / "conf" / "experiment"
    folder.mkdir(parents=True)
    text = "# @package _global_\ndefaults:\n  - override /corpus: {}\nmethods: closed_book\n"
    (folder / "small.yaml").write_text(text.format("demo"))
    (folder / "far.yaml").write_text(text.format("jsonl"))
    model = text.format("demo").replace("  -", "  - override /engine: openai\n  -")
    (folder / "model.yaml").write_text(f"{model}engine: {{base_url: http://h/v1, model: m}}\n")
    found = json.loads(succeeded(command(tmp_path, "check", "mine", "--json")))
    assert [(row["name"], row["used"]) for row in found["brings"]] == [
        ("far", "no"), ("model", "no"), ("small", "yes")
    ]  # fmt: skip
    assert [line.partition("; a check")[0] for line in found["not_run"]] == [
        "experiment=far is not tried: corpus.path is not set; add corpus.path=...",
        "experiment=model is not tried: it asks a model (engine openai)",
    ]
    asked = [{row["stage"]: row["inputs"] for row in run["steps"]} for run in found["runs"]]
    assert [row["answer"] for row in asked] == [3, 10], "the demo's first text has 10 questions"
    assert "gist" in asked[0] and "gist" not in asked[1]
    nowhere = ["experiment=far", "corpus.path=nowhere"]
    found = json.loads(succeeded(command(tmp_path, "check", "mine", "--json", *nowhere)))
    assert found["runs"] == [] and "nowhere: no such file or folder" in found["not_run"][0]
    (folder / "small.yaml").write_text(text.format("demo").replace("closed_", "closde_"))
    assert "no method 'closde_book'" in one_line(
        command(tmp_path, "check", "mine", "experiment=small")
    )


def test_the_words_of_each(tmp_path: Path) -> None:
    """Of all experiments, or the one that is named with words of its own."""
    found = [("experiment", "a"), ("method", "m"), ("experiment", "b")]
    own = [f"plugins={tmp_path}", "limit=1", "cluster=inline"]
    assert words_of_each("experiment", tmp_path, found, ["methods=bm25"]) == {
        "a": [*own, "experiment=a", "methods=bm25"], "b": [*own, "experiment=b", "methods=bm25"]
    }  # fmt: skip
    given = ["experiment=b", "corpus.path=p"]
    assert words_of_each("experiment", tmp_path, found, given) == {"b": [*own, *given]}
    assert words_of(tmp_path, found, given) == []
    assert len(words_of(tmp_path, found, ["experiment=demo"])) == 1
    assert words_of_each("experiment", tmp_path, found, ["experiment=demo"]) == {}


@pytest.mark.slow
def test_it_prints_what_it_finds(tmp_path: Path) -> None:
    changed(tmp_path, "metric", "conf/prompts/mine/family.yaml", "[mine, ", "[")
    with (tmp_path / "mine" / "mine.py").open("a") as module:
        module.write("print('{')\n")
    done = command(tmp_path, "check", "mine", "methods=closed_book", "rater=none")
    told = succeeded(done)
    (line,) = done.stderr.splitlines()
    assert "plugins=mine: its import takes " in line and "prints '{'" in line
    assert "| metric | mine | no   |" in told and "| family | mine | yes  |" in told
    assert "killed at request 2 of 3 and resumed: " in told
    assert "methods=closed_book rater=none" in told.splitlines()[-1]


@pytest.mark.slow
def test_a_method_that_asks_nothing(tmp_path: Path) -> None:
    succeeded(command(tmp_path, "new", "mine", "--family"))
    told = succeeded(command(tmp_path, "check", "mine", "methods=constant", "rater=none"))
    assert "it sends no request" in told


BROKEN = [  # kind, file, what is replaced, by what; the line on standard error, exit code 3
    ("method", "mine.py", "return [", "return 1 / 0 and [",
     "3 questions of 1 document, such as: ZeroDivisionError: division by zero (mine.py:18); see"),
    ("method", "mine.py", "return [page.page_index for page in pages]",
     "import random\n        return random.sample(range(len(pages)), len(pages))",
     "lookups: its rows were others without the kill: make them of rows and settings alone"),
    ("family", "conf/prompts/mine/gist.jinja", "Write", "{{ range(10**4) | random }} Write",
     "requests were sent again, more than were in flight: make them of rows and"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "file", "old", "new", "told"), BROKEN)
def test_a_broken_plugin_is_a_line(
    kind: str, file: str, old: str, new: str, told: str, tmp_path: Path
) -> None:
    changed(tmp_path, kind, file, old, new)
    done = command(tmp_path, "check", "mine", *(["corpus.words=4000"] * (kind == "family")))
    assert done.returncode == 3, done.stderr
    assert any(told in line for line in done.stderr.splitlines()), done.stderr
    assert "no row has a problem" not in done.stdout


def test_what_cannot_be_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "wrong").mkdir()
    (tmp_path / "wrong" / "mine.py").write_text("nothing.here\n")
    assert "NameError: name 'nothing'" in refused("plugin", "check", tmp_path / "wrong")
    (tmp_path / "empty").mkdir()
    assert "brings nothing" in refused("plugin", "check", tmp_path / "empty")
    assert "no such folder" in refused("plugin", "check", tmp_path / "missing")


@pytest.mark.slow
def test_a_metric_that_is_none_is_refused(tmp_path: Path) -> None:
    changed(tmp_path, "metric", "conf/prompts/mine/family.yaml", "[mine", "[mime")
    assert "'mime' is none of" in one_line(command(tmp_path, "check", "mine"))


def test_the_words_of_its_run(tmp_path: Path) -> None:
    """All methods, and each engine, corpus, memory and family, unless others are given."""
    found = [("stage", "look_up (kind a)"), ("method", "a"), ("method", "b"), ("engine", "e"),
             ("corpus", "c"), ("corpus", "d"), ("family", "f"), ("extractor", "srt"),
             ("memory", "m"), ("memory", "n")]  # fmt: skip
    (tmp_path / "sample.csv").write_text("")
    place = [f"plugins={tmp_path}", "limit=1", "cluster=inline"]
    (tmp_path / "sample.srt").write_text("")
    assert words_of(tmp_path, found, ["engine=extractive", "limit=2"]) == [
        [f"plugins={tmp_path}", "cluster=inline", "methods=a,b", "family=f", f"memory={memory}",
         f"corpus={corpus}", f"corpus.path={tmp_path / file}", "engine=extractive", "limit=2"]
        for memory, corpus, file in (
            ("m", "c", "sample.csv"), ("n", "d", "sample.csv"), ("n", "text", "sample.srt")
        )
    ]  # fmt: skip
    ours = ["corpus=synthetic", "corpus.num_documents=1", "corpus.words=1200", "corpus.questions=3"]
    assert words_of(tmp_path, [], []) == [[*place, "methods=gist_only", *ours]]
    assert words_of(tmp_path, found[-3:], ["corpus=demo", "memory=m"]) == [
        [*place, "methods=gist_only", "corpus=demo", "memory=m"]
    ]


@pytest.mark.parametrize("word", ["cluster=local", "plugins=other", "warehouse=w", "run=r"])
def test_words_of_the_check_are_refused(word: str, tmp_path: Path) -> None:
    (tmp_path / "conf" / "method").mkdir(parents=True)
    (tmp_path / "conf" / "method" / "short.yaml").write_text("arguments: {}\n")
    told = refused("plugin", "check", tmp_path, word)
    assert told == f"{word.partition('=')[0]}=: a check has its own; leave it out"
