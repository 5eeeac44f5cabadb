"""Methods with settings of the run of their own, in square brackets: their steps and memories."""

from pathlib import Path
from typing import Any

import pytest

from jobs.graph.resolved_run import ResolvedRun, read_run
from tests.support.command import QMSUM, refused, sql, succeed


def resolved(methods: str, *words: str) -> ResolvedRun:
    return read_run([f"methods={methods}", "rater=none", *words])


def memories(run: ResolvedRun, table: str = "pages") -> dict[str, Any]:
    """The settings of the steps that write a table, by memory."""
    return {step.memory or "": step.settings for step in run.steps if step.table == table}


def test_each_has_a_memory_of_its_own_name_and_settings() -> None:
    run = resolved("gist_only,gist_only[memory=uniform,memory.words=200|300]", "memory=model")
    assert [method.name for method in run.methods] == [
        "gist_only", *(f"gist_only[memory=uniform,memory.words={n}]" for n in (200, 300)),
    ]  # fmt: skip
    found = memories(run)
    assert {name: of.get("words") for name, of in found.items()} == {
        "shared": None, "shared [memory=uniform,memory.words=200]": 200,
        "shared [memory=uniform,memory.words=300]": 300,
    }  # fmt: skip
    assert set(memories(run, "gists")) == set(found)
    assert {step.memory for step in run.steps if step.method == run.methods[1].name} - {None} == {
        "shared [memory=uniform,memory.words=200]"
    }


def test_what_is_as_the_run_has_it_is_not_made_twice() -> None:
    plain = resolved("gist_only,bm25(top_k=1)", "memory=uniform")
    given = resolved("gist_only[memory=uniform],bm25(top_k=1)", "memory=uniform")
    assert memories(plain, "gists") == memories(given, "gists")
    names = [{step.id for step in run.steps if step.method is None} for run in (plain, given)]
    assert names[0] == names[1]


def test_an_embedder_or_a_role_is_another_step_on_the_same_memory() -> None:
    run = resolved("dense(top_k=1)[embedder.model=a|b]", "memory=uniform")
    assert list(memories(run)) == ["shared"]
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


def test_a_reader_s_model_makes_another_memory() -> None:
    words = ["engine=vllm", "engine.model=z", "memory=model"]
    run = resolved("gist_only[engine.model=a|b]", *words)
    assert sorted(memories(run, "gists")) == ["shared [engine.model=a]", "shared [engine.model=b]"]


def test_the_price_of_an_engine_is_not_that_of_another_model() -> None:
    words = ("engine=openai", "engine.base_url=http://h/v1", "engine.model=z",
             "engine.price.input=1", "engine.price.output=2")  # fmt: skip
    run = resolved("closed_book,closed_book[engine.model=a]", *words)
    prices = {engine.title: engine.price.input for _, engine in run.steps_with_engines if engine}
    assert prices == {"openai:z": 1, "openai:a": None}


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("gist_only[memory.foo=1]", "[memory.foo=...]: no setting that a method may have"),
        ("gist_only[warehouse=x]", "[warehouse=...]: no setting that a method may have"),
        ("gist_only[engine.model=x]", "engine=extractive has no model; set engine=..."),
        ("gist_only[extractor.model=x]", "extractor=reader has no model; set extractor=..."),
        ("gist_only[memory=x]", "[memory=x]: no such memory; there are fitted, given"),
        ("gist_only[memory.words=x]", "[memory.words=x]: Input should be a valid integer"),
        ("gist_only[memory.words=9]", "memory.words does nothing here; add memory="),
        ("gist_only[memory.words={]", "memory.words={ is not a value; write a number or a word"),
        ("gist_only[memory.words=']", "memory.words=' is not a value; write a number or a word"),
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
    pages = sql(tmp_path, "select memory, count(*) as n from pages group by all order by all")
    assert [row["memory"] for row in pages] == ["shared", "shared [memory=uniform]"]
    answered = sql(tmp_path, "select distinct method, memory from answers order by all")
    assert [tuple(row.values()) for row in answered] == [
        ("closed_book", None), ("gist_only[memory=model]", "shared"),
        ("gist_only[memory=uniform]", "shared [memory=uniform]"),
    ]  # fmt: skip
    calls = sql(tmp_path, "select count(*) as n from calls")
    succeed("rate", "rater=scripted", f"rater.script={_yes(tmp_path)}", "run=r", warehouse)
    again = sql(tmp_path, "select count(*) as n from calls where stage <> 'rate'")
    assert again == calls


def _yes(folder: Path) -> Path:
    script = folder / "yes.yaml"
    script.write_text("replies: [{reply: 'Yes'}]\n")
    return script
