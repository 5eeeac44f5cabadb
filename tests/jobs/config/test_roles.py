"""Roles: who reads, remembers, extracts and judges is said on the command line."""

from pathlib import Path

import pytest

from jobs.graph.resolved_run import read_run
from pipeline.core.errors import UsageError
from pipeline.work.stage import Role

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
