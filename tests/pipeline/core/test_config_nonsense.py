"""Every key of the configuration, and arguments and settings of a method, with values that make no
sense: taken with a meaning, or refused in one line that names file and key. Those of a family.yaml
are in tests/pipeline/families."""

import copy
import json
import re
from functools import reduce
from operator import getitem
from typing import Any

import pytest

from jobs.graph.resolved_run import read_run, run_of
from pipeline.core.compose import compose
from pipeline.core.errors import UsageError

pytestmark = pytest.mark.sampled

VALUES: list[Any] = [
    *(None, True, "x", -1, 0, 1.5, float("inf"), float("nan"), [], {}),
    *("", " ", "two\nlines", "l" * 300, [None], {"a": None}, "{{", "${x}"),
]
SECTIONS = (
    "engine=extractive", "engine=openai engine.base_url=http://h/v1 engine.model=m",
    "engine=vllm engine.model=m/m", "cluster=local", "cluster=inline",
    "cluster=ray cluster.address=auto", "cluster=kuberay cluster.image=i", "cluster=slurm",
    "corpus=demo", "corpus=qmsum corpus.path=.", "corpus=jsonl corpus.path=.", "corpus=synthetic",
    "memory=fitted", "memory=tokens", "embedder.device=cpu",
)  # fmt: skip


def plain(*words: str) -> dict[str, Any]:
    """The values of a command line before they are checked."""
    composed = compose(words)
    composed["raters"] = [composed.pop("rater")]
    composed.pop("experiment", None)
    return composed


def check(values: dict[str, Any], key: tuple[str, ...], value: Any) -> None:
    """The value is taken, and can be stored, or it is refused in a line that names key or value."""
    changed = copy.deepcopy(values)
    reduce(getitem, key[:-1], changed)[key[-1]] = value
    try:
        run = run_of(changed)
    except UsageError as error:
        said = str(error)
        assert said.isprintable() and len(said) < 1500, (key, value)
        assert any(name in said for name in (key[-1], key[0], f"{value}"[:40])), said
        return
    json.dumps(run.config.model_dump(mode="json"), allow_nan=False).encode()


@pytest.mark.slow
@pytest.mark.parametrize("words", [*SECTIONS, ""])
def test_every_key_of_a_section(words: str) -> None:
    """Or, without one, every key outside of sections."""
    values, section = plain(*words.split()), re.split("[.=]", words)[0]
    above = (section,) if section else ()
    for key in values[section] if section else values:
        for value in VALUES if key != "raters" else ():
            check(values, (*above, key), value)


REFUSED = [
    ("engine.temperature=-1", "engine.temperature=-1: Input should be greater than or equal to 0"),
    ("engine.sequences=1000000", "engine.sequences=1000000: Input should be less than or equal to"),
    ("engine.deadline_seconds=1e30", "engine.deadline_seconds=1e+30: Input should be less than"),
    ("warehouse=nosuch://x", "nosuch://x: Unsupported filesystem: 'nosuch'"),
    ("warehouse=http://h/x", "warehouse=http://h/x: cannot be written; name a folder, or s3://"),
    ("warehouse= ", "warehouse= : cannot be written"),
    (f"run={'r' * 201}", "String should have at most 200 characters"),
    (f"family={'f' * 300}", "File name too long"),
    ("methods=bm25(top_k=true)", "look_up.top_k: Input should be a valid integer"),
    ("methods=bm25(top_k=[])", "bm25: top_k=[] is not a value; write a number or a word"),
    ("methods=bm25(top_k=1..99999999)", "bm25: top_k=1..99999999: count up, to at most 10,000"),
]


@pytest.mark.parametrize(("word", "says"), REFUSED)
def test_nonsense_is_refused_in_one_line(word: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_run([word])
    assert says in str(caught.value)
    assert str(caught.value).isprintable()


def test_the_name_of_a_run_fits_a_file_name() -> None:
    assert len(read_run([f"run={'r' * 200}"]).name) == 200
    for name, begins in (("word " * 100, "word-word"), ("1" * 999, "")):
        of_corpus = read_run([f"corpus.name={name}"]).name
        assert of_corpus.startswith(begins) and len(of_corpus) <= 200


def test_a_message_is_one_line_whatever_it_names() -> None:
    said = str(UsageError("a\nb\x1b[31m\u2028\ud800 é"))
    assert said == "a\\nb\\x1b[31m\\u2028\\ud800 é" == str(UsageError(said))
