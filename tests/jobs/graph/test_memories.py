"""Methods with memories of their own, and with settings of the run of their own in brackets."""

import re
from pathlib import Path
from typing import Any

import pytest

from jobs.graph.resolved_run import ResolvedRun, read_run
from pipeline.core.errors import UsageError
from pipeline.work.units import Step
from tests.support.command import QMSUM, refused, sql_values, succeed
from tests.support.engines.embedding import model_folder
from tests.support.own_methods import methods
from tests.support.texts.small_corpus import UNIFORM

OWN = """
arguments: {words: 80}
stages:
  segments: {stage: paginate, kind: uniform, words: $words}
  gist: {}
  look_up: {kind: bm25, top_k: 1}
  answer: {kind: memory}
"""
# The same memory for another method, under other names.
ALIKE = """
arguments: {}
stages:
  cut: {stage: paginate, kind: uniform, words: 80}
  short: {stage: gist, from: {pages: cut}}
  look_up: {kind: none}
  answer: {kind: memory, from: {gists: short}}
"""
# A memory of its own beside the run's: it looks up in the one, and reads nothing else.
PARTS = """
arguments: {}
stages:
  parts: {stage: paginate, kind: uniform, words: 80}
  embed: {kind: pages}
  look_up: {kind: dense, top_k: 1}
  answer: {kind: pages, from: {pages: parts}}
"""
NAME = "paginate(kind=uniform,words=80)"


def steps(tmp_path: Path, chosen: str, *words: str, **texts: str) -> list[Step]:
    plugins = methods(tmp_path, own=OWN, alike=ALIKE, parts=PARTS, **texts)
    return read_run([plugins, f"methods={chosen}", *UNIFORM, *words]).steps


def memories(found: list[Step], name: str) -> list[str | None]:
    return [step.memory for step in found if step.name == name]


def test_methods_that_ask_for_the_same_share_it(tmp_path: Path) -> None:
    found = steps(tmp_path, "own,alike,gist_only,own(words=20)")
    for name in ("paginate", "gist"):
        assert memories(found, name) == ["shared", NAME, "paginate(kind=uniform,words=20)"]
    answers = {step.method: step for step in found if step.name == "answer"}
    assert {method: step.memory for method, step in answers.items()} == {
        "own(words=80)": NAME, "alike": NAME, "gist_only": "shared",
        "own(words=20)": "paginate(kind=uniform,words=20)",
    }  # fmt: skip
    own, alike, shared = ([up.id for up in answers[m].upstream if not up.per_question]
                          for m in ("own(words=80)", "alike", "gist_only"))  # fmt: skip
    assert own == alike
    assert set(own) & set(shared) == {found[0].id}, "the document alone"


@pytest.mark.parametrize(
    ("chosen", "shared"),
    [
        ("gist_only", ["paginate", "gist"]),
        ("bm25,own", ["paginate"]),  # pages alone
        ("own,memwalker,closed_book,full_text", []),
    ],
)
def test_of_the_shared_memory_is_made_what_a_method_reads(
    tmp_path: Path, chosen: str, shared: list[str]
) -> None:
    found = steps(tmp_path, chosen)
    assert [s.name for s in found if s.memory == "shared" and not s.per_question] == shared
    every = {step.id: step for step in steps(tmp_path, f"{chosen},gist_only")}
    assert {step.id for step in found} <= every.keys(), "names are the same, whoever reads"
    assert [s.memory for s in found] == [every[s.id].memory for s in found]


@pytest.mark.parametrize("words", ["words: 40", "words: 40, max_words: 600"])
def test_the_run_s_own_is_not_made_twice(tmp_path: Path, words: str) -> None:
    """UNIFORM has pages of 40 words; the family's longest paragraph has 600."""
    text = OWN.replace("words: $words", words)
    found = steps(tmp_path, "same,gist_only", same=text)
    assert memories(found, "paginate") == memories(found, "gist") == ["shared"]


def test_embeddings_rest_on_the_pages_they_are_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.engines.embedder.find_spec", lambda name: name)
    model = f"embedder.model={model_folder(tmp_path / 'model')}"
    found = steps(tmp_path, "parts,dense(top_k=1)", model)
    assert memories(found, "embed") == [NAME, "shared"]
    looked_up = {step.method: step.memory for step in found if step.name == "look_up"}
    assert looked_up == {"parts": NAME, "dense(over=pages,top_k=1)": "shared"}


SEGMENTS = "  segments: {stage: paginate, kind: uniform, words: 80}\n"
LOOK_UP = "  look_up: {kind: bm25, top_k: 1}\n"


@pytest.mark.parametrize(
    ("stages", "where", "rows"),
    [
        # Pages of its own, gists of the run's.
        (SEGMENTS + LOOK_UP + "  answer: {kind: memory}\n",
         "answer", f"pages of {NAME} and gists of shared and lookups of {NAME}"),
        # Looked up in the run's pages, read from its own.
        (LOOK_UP + SEGMENTS + "  answer: {kind: pages}\n",
         "answer", f"pages of {NAME} and lookups of shared"),
        # The gists of its own with the pages of the run's.
        (SEGMENTS + "  gist: {}\n  look_up: {kind: parallel, max_pages: 1, "
         "from: {pages: paginate}}\n  answer: {kind: memory}\n",
         "look_up", f"pages of shared and gists of {NAME}"),
    ],
)  # fmt: skip
def test_a_stage_that_would_mix_two_is_refused(
    tmp_path: Path, stages: str, where: str, rows: str
) -> None:
    said = re.escape(f"/mixed.yaml: {where}: would mix two memories, {rows};")
    with pytest.raises(UsageError, match=said):
        steps(tmp_path, "mixed", mixed=f"arguments: {{}}\nstages:\n{stages}")


def resolved(methods: str, *words: str) -> ResolvedRun:
    return read_run([f"methods={methods}", "rater=none", *words])


def settings_of(run: ResolvedRun, table: str = "pages") -> dict[str, Any]:
    """The settings of the steps that write a table, by memory."""
    return {step.memory or "": step.settings for step in run.steps if step.table == table}


def test_each_has_a_memory_of_its_own_name_and_settings() -> None:
    run = resolved("gist_only,gist_only[memory=uniform,memory.words=200|300]", "memory=model")
    assert [method.name for method in run.methods] == [
        "gist_only", *(f"gist_only[memory=uniform,memory.words={n}]" for n in (200, 300)),
    ]  # fmt: skip
    found = settings_of(run)
    assert {name: of.get("words") for name, of in found.items()} == {
        "shared": None, "shared [memory=uniform,memory.words=200]": 200,
        "shared [memory=uniform,memory.words=300]": 300,
    }  # fmt: skip
    assert set(settings_of(run, "gists")) == set(found)
    of_method = {step.memory for step in run.steps if step.method == run.methods[1].name}
    assert of_method == {None, "shared [memory=uniform,memory.words=200]"}


def test_what_is_as_the_run_has_it_is_not_made_twice() -> None:
    plain, given = (
        {step.id for step in resolved(methods, "memory=uniform").steps if step.method is None}
        for methods in ("gist_only,bm25(top_k=1)", "gist_only[memory=uniform],bm25(top_k=1)")
    )
    assert plain == given


def test_an_embedder_or_a_role_is_another_step_on_the_same_memory() -> None:
    run = resolved("dense(top_k=1)[embedder.model=a|b]", "memory=uniform")
    assert list(settings_of(run)) == ["shared"]
    embedded = [step.settings["embedder"]["model"] for step in run.steps
                if step.table == "embeddings"]  # fmt: skip
    assert len({str(one) for one in embedded}) == 2
    method = "longmemeval(retriever=bm25,time_aware=true)[query_expander.model=a|b]"
    corpus = ["corpus=longmemeval", "corpus.path=."]
    run = resolved(method, *corpus, "query_expander=vllm", "query_expander.model=z")
    asked = [engine.identity()["model"] for step, engine in run.steps_with_engines
             if engine and step.table == "queries"]  # fmt: skip
    assert asked == ["a", "b"]
    assert len([step for step in run.steps if step.table == "expansions"]) == 2, "facts and events"


def test_a_reader_s_model_makes_another_memory_and_has_no_price_of_another() -> None:
    words = ("memory=model", "engine=openai", "engine.base_url=http://h/v1", "engine.model=z",
             "engine.price.input=1", "engine.price.output=2")  # fmt: skip
    run = resolved("gist_only,gist_only[engine.model=a]", *words)
    assert sorted(settings_of(run, "gists")) == ["shared", "shared [engine.model=a]"]
    prices = {engine.title: engine.price.input for _, engine in run.steps_with_engines if engine}
    assert prices == {"openai:z": 1, "openai:a": None}


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("gist_only[warehouse=x]", "[warehouse=...]: no setting that a method may have"),
        ("gist_only[engine.model=x]", "[engine.model=x]: Extra inputs are not permitted"),
        ("gist_only[memory=x]", "[memory=x]: no such memory; there are fitted, given"),
        ("gist_only[memory.words=x]", "[memory.words=x]: Input should be a valid integer"),
        ("gist_only[memory.words=9]", "memory.words does nothing here; add memory="),
        ("gist_only[memory.words={]", "memory.words={ is not a value; write a number or a word"),
        ("gist_only[memory.words=200|]", "[memory.words=200|]: write settings of the run"),
        ("gist_only[memory]", "[memory]: write settings of the run, each once, as"),
        ("gist_only[memory=uniform,memory=model]", "[memory=model]: write settings of the run"),
        ("gist_only[]x", "'gist_only[]x' is not a method"),
    ],
)
def test_mistakes_are_one_line(method: str, words: str) -> None:
    assert words in refused("run", f"methods={method}", "memory=model")


@pytest.mark.slow
def test_a_run_of_them_goes_on_from_its_stored_config(tmp_path: Path) -> None:
    """Compared in one table, and rated later: what is stored says all."""
    warehouse = f"warehouse={tmp_path}"
    methods = "methods=gist_only[memory=uniform|model],closed_book"
    corpus = ("corpus=qmsum", f"corpus.path={QMSUM}", "limit=1", "cluster=inline")
    succeed("run", methods, *corpus, "rater=none", "memory=model", "run=r", warehouse)
    memories = sql_values(tmp_path, "select distinct memory from pages order by all")
    assert memories == [("shared",), ("shared [memory=uniform]",)]
    assert sql_values(tmp_path, "select distinct method, memory from answers order by all") == [
        ("closed_book", None), ("gist_only[memory=model]", "shared"),
        ("gist_only[memory=uniform]", "shared [memory=uniform]"),
    ]  # fmt: skip
    calls, script = sql_values(tmp_path, "select count(*) from calls"), tmp_path / "yes.yaml"
    script.write_text("replies: [{reply: 'Yes'}]\n")
    succeed("rate", "rater=scripted", f"rater.script={script}", "run=r", warehouse)
    assert sql_values(tmp_path, "select count(*) from calls where stage <> 'rate'") == calls
