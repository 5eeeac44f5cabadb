"""Every key of a family.yaml, and arguments and settings of a method, with values that make no
sense: refused in one line that names file and key, or taken with a meaning."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.graph.read_run import read_run
from pipeline.core.errors import UsageError
from pipeline.core.settings import CONF
from tests.pipeline.core.test_config_nonsense import HUGE, NEVER, VALUES, keys, put
from tests.support.reading import written_family

pytestmark = pytest.mark.sampled

METHODS = "methods=gist_only,readagent_s(max_pages=2),bm25(top_k=1)"
SAMPLES: dict[str, Any] = {  # of the keys that generic's file leaves out
    "base": ["generic"],
    "forms": {"answer": "Answer: {}"},
    "reply_tokens": {"gist": 100},
}


def family_file() -> dict[str, Any]:
    text = (CONF / "prompts" / "generic" / "family.yaml").read_text(encoding="utf-8")
    shipped: dict[str, Any] = yaml.safe_load(text)
    return {**shipped, **SAMPLES, "examples": {}}


def said_of(*words: str) -> str:
    """The refusal of a command; empty where it is taken."""
    try:
        read_run([*words])
    except UsageError as error:
        return str(error)
    return ""


def check(folder: Path, key: tuple[str, ...], value: Any) -> None:
    mine = written_family(folder, yaml.safe_dump(put(family_file(), key, value)))
    if said := said_of(f"family={mine}", METHODS):
        assert said.isprintable() and len(said) < 1500, (key, value)
        assert f"{mine}/family.yaml" in said, said
        assert key[-1] in said or f"{value}"[:40] in said, said
    else:
        assert not any(value is never for never in NEVER), key


@pytest.mark.parametrize("value", [None, "x", HUGE, [[]], "l" * 300, "l" * 5000])
@pytest.mark.parametrize("key", ["metrics", "max_words", "constant_answer"])
def test_a_setting(tmp_path: Path, key: str, value: Any) -> None:
    check(tmp_path, ("settings", key), value)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("key", list(keys(family_file())), ids=".".join)
def test_every_key(tmp_path: Path, key: tuple[str, ...]) -> None:
    for value in VALUES:
        check(tmp_path, key, value)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("base", "l" * 300, "base.0: String should have at most 63 characters"),
        ("settings", {"metrics": 1}, "settings.metrics: write a list of names"),
        ("settings", {"metrics": [[]]}, "settings.metrics: '[]' is none of rouge1_stem"),
        ("settings", {"words": HUGE}, "settings.words: beyond 64 bits; write a smaller number"),
        ("reply_tokens", {"gist": HUGE}, "reply_tokens.gist: beyond 64 bits"),
        ("settings", {"constant_answer": "\0"}, "settings.constant_answer='\\x00': holds a cont"),
    ],
)
def test_what_is_said(tmp_path: Path, key: str, value: Any, says: str) -> None:
    mine = written_family(tmp_path, **{key: value})
    assert said_of(f"family={mine}", METHODS).startswith(f"{mine}/family.yaml: {says}")


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        (str(HUGE), "methods: bm25: top_k: beyond 64 bits; write a smaller number"),
        (".inf", "methods: bm25: top_k=inf: not a number that is finite"),
        ('"\\0"', "methods: bm25: top_k='\\x00': holds a control character; remove it"),
    ],
)
def test_an_argument(argument: str, says: str) -> None:
    assert said_of(f"methods=bm25(top_k={argument})") == says


@pytest.mark.parametrize("value", NEVER)
def test_a_method_of_ones_own(tmp_path: Path, value: Any) -> None:
    file = tmp_path / "conf" / "method" / "mine.yaml"
    file.parent.mkdir(parents=True)
    stages = {"look_up": {"kind": "bm25", "top_k": "$top_k"}, "answer": {"kind": "pages"}}
    for arguments, own in (({"top_k": value}, stages), ({}, {"look_up": {"kind": value}})):
        file.write_text(yaml.safe_dump({"arguments": arguments, "stages": own}))
        said = said_of(f"plugins={tmp_path}", "methods=mine")
        assert said.startswith(f"{file}: ") and len(said) < 500
