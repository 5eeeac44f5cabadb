"""Methods with a memory of their own: named, shared by hash, and never mixed with another."""

from pathlib import Path

import pytest

from jobs.graph.resolved_run import read_run
from pipeline.core.errors import UsageError
from pipeline.work.units import Step
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
    resolved = read_run([plugins, f"methods={chosen}", *UNIFORM, *words])
    return resolved.steps


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
    assert {step.memory for step in found if step.name == "answer"} == {"shared"}


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
MIXED = [
    # pages of its own, gists of the run's
    (SEGMENTS + LOOK_UP + "  answer: {kind: memory}\n",
     f"answer: would mix two memories, pages of {NAME} and gists of shared and lookups of {NAME}"),
    # looked up in the run's pages, read from its own
    (LOOK_UP + SEGMENTS + "  answer: {kind: pages}\n",
     f"answer: would mix two memories, pages of {NAME} and lookups of shared"),
    # the gists of its own with the pages of the run's
    (SEGMENTS + "  gist: {}\n  look_up: {kind: parallel, max_pages: 1, from: {pages: paginate}}\n"
     "  answer: {kind: memory}\n",
     f"look_up: would mix two memories, pages of shared and gists of {NAME}"),
]  # fmt: skip


@pytest.mark.parametrize(("stages", "line"), MIXED)
def test_a_stage_that_would_mix_two_is_refused(tmp_path: Path, stages: str, line: str) -> None:
    with pytest.raises(UsageError) as raised:
        steps(tmp_path, "mixed", mixed=f"arguments: {{}}\nstages:\n{stages}")
    assert str(raised.value).endswith(
        f"/mixed.yaml: {line}; read all from stages that use the same one, with `from` where "
        "several write a table"
    )
