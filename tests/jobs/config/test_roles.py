"""Roles: who reads, remembers, extracts and judges is said on the command line."""

from pathlib import Path

import pytest
import yaml

from jobs.graph.read_run import read_run
from pipeline.core.errors import UsageError
from pipeline.work.stage import Role
from tests.support.command import ROOT, own_process, sql, succeeded
from tests.support.texts.small_corpus import UNIFORM, document, question, write

# What a plugin brings is known to a whole process: these runs have processes of their own.
PLUGIN = f"plugins={ROOT / 'tests' / 'support' / 'recall_plugin'}"
VLLM = ("memory_engine=vllm", "memory_engine.model=some/model")


def names(role: Role, *words: str) -> list[str]:
    return [engine.name for engine in read_run(words).config.engines(role)]


@pytest.mark.slow
def test_every_role_is_the_reader_s_unless_it_is_chosen() -> None:
    for role in ("memory", "extractor", "query_expander", "judge"):
        resolved = read_run(["engine.seed=7"])
        assert resolved.config.engines(role) == [resolved.config.engine]
    words = (*VLLM, "extractor=none", "rater=none")
    assert names("reader", *words) == ["extractive"]
    assert names("memory", *words) == ["vllm"]
    assert names("extractor", *words) == names("judge", *words) == []


def test_a_role_s_settings_are_its_own(tmp_path: Path) -> None:
    script = tmp_path / "it's a [script].yaml"
    script.write_text("replies: []\n")
    resolved = read_run(
        ["extractor=scripted", f"extractor.script={script}", "extractor.sequences=3",
         "memory_engine=vllm", "memory_engine.model=some/model", "memory_engine.args.foo=1"]
    )  # fmt: skip
    dumped = resolved.config.model_dump(mode="json")
    assert (dumped["extractor"]["script"], resolved.config.extractor.name) == (
        str(script),
        "scripted",
    )
    assert resolved.config.engines("extractor")[0].sequences == 3
    assert (dumped["memory_engine"]["model"], dumped["memory_engine"]["args"]) == (
        "some/model", {"foo": 1},
    )  # fmt: skip
    assert resolved.config.engine.name == "extractive"


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["memory_engine=gpt"], "memory_engine=gpt: "),
        (["extractor=null"], "extractor=null: "),
        (["extractor=scripted"], "extractor.script is not set"),
        (["extractor=extractive", "extractor.seed=x"], "extractor.seed=x: "),
        (["memory_engine=extractive", "memory_engine.temprature=1"], "memory_engine.temprature: "),
        (["extractr=none"], "extractr: no such key; nearest: extractor"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_role(words: list[str], key: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_run(words)
    assert str(raised.value).startswith(key) and "\n" not in str(raised.value)


@pytest.mark.slow
def test_each_stage_asks_the_engine_of_its_role(tmp_path: Path) -> None:
    """A run with four scripts: whose reply it was is in every row."""
    write(tmp_path / "corpus", [document(1)], [question(1, of=1), question(2, of=1)])
    words = []
    for section in ("engine", "memory_engine", "extractor", "rater"):
        file = tmp_path / f"{section}.yaml"
        replies = [{"prompt": "rate_strict", "reply": "YES"},
                   {"prompt": "rate_permissive", "reply": "Yes"},
                   {"reply": f"said by {section}"}]  # fmt: skip
        file.write_text(yaml.safe_dump({"replies": replies}))
        words += [f"{section}=scripted", f"{section}.script={file}"]
    warehouse = tmp_path / "warehouse"
    corpus = ("corpus=tables", f"corpus.path={tmp_path / 'corpus'}", *UNIFORM)
    succeeded(
        own_process("run", PLUGIN, "methods=recall", *corpus, *words, f"warehouse={warehouse}")
    )
    query = "select stage, engine, count(*) as n from calls group by all order by stage"
    rows = sql(warehouse, query)
    assert [(row["stage"], row["engine"], row["n"]) for row in rows] == [
        ("answer", "scripted:engine", 2), ("facts", "scripted:extractor", 2),
        ("gist", "scripted:engine", 3), ("rate", "scripted:rater", 4),
        ("recall", "scripted:memory_engine", 2),
    ]  # fmt: skip
    query = """select r.text as recalled, f.text as fact, a.answer from recollections r
        join facts f using (question_id) join answers a using (question_id)"""
    assert sql(warehouse, query) == 2 * [
        {"recalled": "said by memory_engine", "fact": "said by extractor",
         "answer": "said by engine"}
    ]  # fmt: skip
