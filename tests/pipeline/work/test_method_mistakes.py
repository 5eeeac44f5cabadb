"""What is wrong with a method's YAML: one line of the real command, exit 2, nothing written."""

from pathlib import Path

import pytest

from tests.support.command import ROOT, refused
from tests.support.own_methods import file_of, methods

pytestmark = pytest.mark.sampled

HEAD = "arguments: {k: 3}\nstages:\n"
LOOK_UP = "  look_up: {kind: bm25, top_k: $k}\n"
ANSWER = "  answer: {kind: pages}\n"
MINE = " (mine(k=3)): "  # a setting is wrong for a method with all its arguments
STAGES = [  # the stages, and how the line goes on
    ("  retrieve: {kind: bm25, top_k: 3}\n" + ANSWER,
     ": retrieve: no stage 'retrieve'; there are answer, "),
    ("  look_up: {stage: [look_up], kind: bm25}\n", ": look_up: no stage ['look_up']; there are "),
    ("  look_up: {kind: bm52, top_k: 3}\n" + ANSWER,
     ": look_up: no kind 'bm52'; the stage look_up has bm25, dense, latest, none, oracle, parallel,"
     " random, sequential"),
    ("  look_up: {top_k: 3}\n" + ANSWER,
     ": look_up: kind is missing; the stage look_up has bm25, dense, "),
    ("  look_up: bm25\n" + ANSWER, ": look_up: write its settings as {key: value}"),
    ("  [look_up, answer]\n", ": stages: write a list of stages, `name: {settings}` each"),
    (ANSWER + LOOK_UP, ": answer: reads lookups, which no earlier stage writes; put look_up or "
     "search or search_keys before it"),
    # a later stage, itself, and one that writes another table
    ("  look_up: {kind: bm25, top_k: 3, from: {pages: short}}\n"
     "  short: {stage: paginate, kind: uniform}\n" + ANSWER,
     ": look_up: from: pages: no earlier stage 'short' writes it; paginate does"),
    ("  short: {stage: paginate, kind: uniform}\n"
     "  look_up: {kind: bm25, top_k: 3, from: {pages: look_up}}\n" + ANSWER,
     ": look_up: from: pages: no earlier stage 'look_up' writes it; paginate or short does"),
    ("  look_up: {kind: bm25, top_k: 3, from: {gists: gist}}\n" + ANSWER,
     ": look_up: from: it does not read gists; it reads pages"),
    ("  short: {stage: paginate, kind: uniform, from: {pages: paginate}}\n" + LOOK_UP + ANSWER,
     ": short: from: it does not read pages; it reads no table of another stage"),
    ("  look_up: {kind: bm25, top_k: 3, from: paginate}\n" + ANSWER,
     ": look_up: from: write {table: stage}"),
    ("  look_up: {kind: bm25, topk: 3}\n" + ANSWER,
     f"{MINE}look_up.topk: Extra inputs are not permitted"),
    ("  look_up: {kind: bm25}\n" + ANSWER,
     f"{MINE}look_up.top_k: Field required"),
    ("  short: {stage: paginate, kind: model, min_words: 99, max_words: 9}\n" + LOOK_UP + ANSWER,
     f"{MINE}short: min_words 99 is over max_words 9; lower it"),
    ("  look_up: {kind: bm25, top_k: $top_k}\n" + ANSWER,
     ": $top_k: no such argument; `arguments` has k"),
    (LOOK_UP + "  look_up: {kind: none}\n" + ANSWER,
     ": look_up occurs twice; give one of them another name"),
    (LOOK_UP + ANSWER + "judge: {}\n", ": judge: Extra inputs are not permitted"),
]  # fmt: skip


FILES: list[tuple[str, tuple[str, ...], str]] = [  # a file, other words, and how the line goes on
    *((HEAD + stages, (), line) for stages, line in STAGES),
    ("stages:\n" + LOOK_UP, (), ": arguments: Field required"),
    ("- look_up\n- answer\n", (), ": the file: Input should be a valid dictionary"),
    (f"optional: {{b: {{l: 3}}}}\n{HEAD}{ANSWER}", (), ": optional.b.l: no such argument"),
    ("\tstages:\n", (), ": not YAML: "),
    (HEAD + "  look_up: {kind: dense, top_k: 3}\n" + ANSWER, ("embedder.model=some-model",),
     ": look_up: reads embeddings, which no earlier stage writes; put embed before it"),
    (HEAD + LOOK_UP, (), f", judged as {ROOT / 'conf/prompts/generic/family.yaml'} says: "
     "rate: reads answers, which no earlier stage writes; put answer before it"),
    # A judge that the method itself asks is needed; those that judge its answers are not.
    (HEAD + LOOK_UP + ANSWER + "  rate: {}\n", ("rater=none",),
     ": rate: asks the role judge, which has no engine; set rater=..."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words", "line"), FILES)
def test_a_file_that_is_no_method(
    tmp_path: Path, text: str, words: tuple[str, ...], line: str
) -> None:
    plugins, warehouse = methods(tmp_path, mine=text), tmp_path / "warehouse"
    told = refused("run", plugins, "methods=mine", f"warehouse={warehouse}", *words)
    assert told.startswith(f"{file_of(plugins, 'mine')}{line}")
    assert not warehouse.exists()


def test_a_method_of_a_built_in_name(tmp_path: Path) -> None:
    plugins = methods(tmp_path, bm25=HEAD + LOOK_UP + ANSWER)
    line = refused("run", plugins, "methods=bm25", f"warehouse={tmp_path / 'warehouse'}")
    assert line.startswith(f"{file_of(plugins, 'bm25')}: the method bm25 exists already, in ")
    assert line.endswith("conf/method/bm25.yaml; give it another name")
