"""What is wrong with a method's YAML: one line of the real command, exit 2, nothing written."""

from pathlib import Path

import pytest

from tests.support.command import ROOT, refused
from tests.support.own_methods import file_of, methods

pytestmark = pytest.mark.sampled

HEAD = "arguments: {k: 3}\nstages:\n"
ANSWER = "  answer: {kind: pages}\n"
THERE = {"answer", "embed", "gist", "look_up", "paginate", "rate", "score"}


def said(tmp_path: Path, text: str, *words: str) -> str:
    """The line without the file's name at its beginning."""
    plugins, warehouse = methods(tmp_path, mine=text), tmp_path / "warehouse"
    line = refused("run", plugins, "methods=mine", f"warehouse={warehouse}", *words)
    assert not warehouse.exists()
    file = str(file_of(plugins, "mine"))
    assert line.startswith(file)
    return line.removeprefix(file)


UNKNOWN = [
    ("  retrieve: {kind: bm25, top_k: 3}\n" + ANSWER,
     ": retrieve: no stage 'retrieve'; there are "),
    ("  first: {stage: lookup, kind: bm25}\n" + ANSWER, ": first: no stage 'lookup'; there are "),
    ("  look_up: {stage: [look_up], kind: bm25}\n", ": look_up: no stage ['look_up']; there are "),
    ("  look_up: {stage: 7}\n", ": look_up: no stage 7; there are "),
    ("  look_up: {kind: bm52, top_k: 3}\n" + ANSWER,
     ": look_up: no kind 'bm52'; the stage look_up has bm25, dense, latest, none, oracle, parallel,"
     " random, refined, sequential"),
    ("  look_up: {kind: [bm25]}\n", ": look_up: no kind ['bm25']; the stage look_up has bm25, "),
    ("  look_up: {top_k: 3}\n" + ANSWER,
     ": look_up: kind is missing; the stage look_up has bm25, dense, "),
    ("  look_up: {kind: null, top_k: 3}\n" + ANSWER,
     ": look_up: kind is missing; the stage look_up has bm25, dense, "),
    ("  gist: {kind: long}\n", ": gist: no kind 'long'; the stage gist has conditional, fitted"),
    ("  look_up:\n" + ANSWER, ": look_up: kind is missing; "),
    ("  look_up: bm25\n" + ANSWER, ": look_up: write its settings as {key: value}"),
    ("  [look_up, answer]\n", ": stages: write a list of stages, `name: {settings}` each"),
    ("  {}\n", ": stages: write a list of stages, `name: {settings}` each"),
]  # fmt: skip


@pytest.mark.parametrize(("stages", "line"), UNKNOWN)
def test_a_stage_or_kind_that_does_not_exist(tmp_path: Path, stages: str, line: str) -> None:
    found = said(tmp_path, HEAD + stages)
    assert found.startswith(line)
    if "no stage" in line:
        assert set(found.removeprefix(line).split(", ")) >= THERE


OPTIONAL = ": optional: write {name: {argument: its default where name is given}}"


@pytest.mark.parametrize("written", ["[k]", "{b: null}", "{b: 3}", "{b: {l: 3}}"])
def test_optional_arguments_change_defaults_of_others(tmp_path: Path, written: str) -> None:
    text = f"arguments: {{k: 3}}\noptional: {written}\nstages:\n{LOOK_UP}{ANSWER}"
    assert said(tmp_path, text) == OPTIONAL


LOOK_UP = "  look_up: {kind: bm25, top_k: $k}\n"
UNREAD = [
    (ANSWER,
     ": answer: reads lookups, which no earlier stage writes; put look_up or search or search_keys"
     " before it"),
    (ANSWER + LOOK_UP,
     ": answer: reads lookups, which no earlier stage writes; put look_up or search or search_keys"
     " before it"),
    ("  look_up: {kind: dense, top_k: 3}\n" + ANSWER,
     ": look_up: reads embeddings, which no earlier stage writes; put embed before it"),
    # judged as the family says, but there is nothing to judge
    (LOOK_UP,
     ", judged as {family} says: rate: reads answers, which no earlier stage writes; put answer "
     "before it"),
]  # fmt: skip


@pytest.mark.parametrize(("stages", "line"), UNREAD)
def test_an_input_that_no_earlier_stage_writes(tmp_path: Path, stages: str, line: str) -> None:
    family = ROOT / "conf" / "prompts" / "generic" / "family.yaml"
    words = ("embedder.model=some-model",) if "dense" in stages else ()
    assert said(tmp_path, HEAD + stages, *words) == line.replace("{family}", str(family))


FROM = [
    # a later stage, itself, one that is not there, one that writes another table, and no circle
    ("  look_up: {kind: bm25, top_k: 3, from: {pages: short}}\n"
     "  short: {stage: paginate, kind: uniform}\n" + ANSWER,
     ": look_up: from: pages: no earlier stage 'short' writes it; paginate does"),
    ("  short: {stage: paginate, kind: uniform}\n"
     "  look_up: {kind: bm25, top_k: 3, from: {pages: look_up}}\n" + ANSWER,
     ": look_up: from: pages: no earlier stage 'look_up' writes it; paginate or short does"),
    ("  look_up: {kind: bm25, top_k: 3, from: {pages: nobody}}\n" + ANSWER,
     ": look_up: from: pages: no earlier stage 'nobody' writes it; paginate does"),
    ("  look_up: {kind: bm25, top_k: 3, from: {pages: gist}}\n" + ANSWER,
     ": look_up: from: pages: no earlier stage 'gist' writes it; paginate does"),
    ("  answer: {kind: pages, from: {lookups: look_up}}\n" + LOOK_UP,
     ": answer: reads lookups, which no earlier stage writes; put look_up or search or search_keys"
     " before it"),
    ("  look_up: {kind: bm25, top_k: 3, from: {gists: gist}}\n" + ANSWER,
     ": look_up: from: it does not read gists; it reads pages"),
    ("  short: {stage: paginate, kind: uniform, from: {pages: paginate}}\n" + LOOK_UP + ANSWER,
     ": short: from: it does not read pages; it reads no table of another stage"),
    ("  look_up: {kind: bm25, top_k: 3, from: paginate}\n" + ANSWER,
     ": look_up: from: write {table: stage}"),
    ("  short: {stage: gist, from: {pages: long}}\n  long: {stage: paginate, kind: uniform}\n",
     ": short: from: pages: no earlier stage 'long' writes it; paginate does"),
]  # fmt: skip


@pytest.mark.parametrize(("stages", "line"), FROM)
def test_from_names_an_earlier_stage_that_writes_the_table(
    tmp_path: Path, stages: str, line: str
) -> None:
    assert said(tmp_path, HEAD + stages) == line


SETTINGS = [
    ("  look_up: {kind: bm25, topk: 3}\n" + ANSWER,
     " (mine(k=3)): look_up.topk: no such setting; look_up (kind bm25) has top_k, bm25"),
    ("  look_up: {kind: none, top_k: 3}\n" + ANSWER,
     " (mine(k=3)): look_up.top_k: no such setting; look_up (kind none) has none"),
    ("  gist: {words: 3}\n" + LOOK_UP + ANSWER,
     " (mine(k=3)): gist.words: no such setting; gist has page_breaks"),
    ("  look_up: {kind: bm25}\n" + ANSWER,
     " (mine(k=3)): look_up.top_k: is not set, here or by the family; give it a value"),
    ("  look_up: {kind: bm25, top_k: three}\n" + ANSWER,
     " (mine(k=3)): look_up.top_k: Input should be a valid integer"),
    ("  look_up: {kind: bm25, top_k: [3]}\n" + ANSWER,
     " (mine(k=3)): look_up.top_k: Input should be a valid integer"),
    ("  look_up: {kind: bm25, top_k: true}\n" + ANSWER,
     " (mine(k=3)): look_up.top_k: Input should be a valid integer"),
    ("  look_up: {kind: parallel, max_pages: null}\n" + ANSWER,
     " (mine(k=3)): look_up.max_pages: Input should be a valid integer"),
    ("  look_up: {kind: bm25, top_k: 0}\n" + ANSWER,
     " (mine(k=3)): look_up.top_k: Input should be greater than 0"),
    ("  short: {stage: paginate, kind: model, min_words: 99, max_words: 9}\n" + LOOK_UP + ANSWER,
     " (mine(k=3)): short: min_words 99 is over max_words 9; lower it"),
    ("  look_up: {kind: bm25, top_k: $top_k}\n" + ANSWER,
     ": $top_k: no such argument; `arguments` has k"),
]  # fmt: skip


@pytest.mark.parametrize(("stages", "line"), SETTINGS)
def test_a_setting_that_is_wrong(tmp_path: Path, stages: str, line: str) -> None:
    assert said(tmp_path, HEAD + stages) == line


FILES = [
    (HEAD + LOOK_UP + "  look_up: {kind: none}\n" + ANSWER,
     ": look_up occurs twice; give one of them another name"),
    (HEAD + "  look_up: {kind: bm25, top_k: 1, top_k: 2}\n" + ANSWER,
     ": top_k occurs twice; give one of them another name"),
    ("stages:\n" + LOOK_UP, ": arguments missing; see the other methods"),
    ("arguments: {}\n", ": stages missing; see the other methods"),
    ("", ": arguments, stages missing; see the other methods"),
    ("# nothing but a comment\n", ": arguments, stages missing; see the other methods"),
    ("bm25\n", ": arguments, stages missing; see the other methods"),
    ("- look_up\n- answer\n", ": arguments, stages missing; see the other methods"),
    (HEAD + LOOK_UP + ANSWER + "judge: {}\n",
     ": judge: no such key; a method has `arguments`, `optional`, `stages` and `papers`"),
    ("arguments: [k]\nstages:\n" + LOOK_UP + ANSWER,
     ": arguments: write {name: default}, null where it must be given"),
    ("arguments: {}\nlook_up: {kind: bm25, top_k: 3}\n",
     ": stages missing; see the other methods"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line"), FILES)
def test_a_file_that_is_no_method(tmp_path: Path, text: str, line: str) -> None:
    assert said(tmp_path, text) == line


@pytest.mark.parametrize("text", ["a: [1\n", "a: b: c\n", "\tstages:\n", "a: @b\n", "? [x] : 1\n"])
def test_what_is_no_yaml(tmp_path: Path, text: str) -> None:
    assert said(tmp_path, text).startswith(": not YAML: ")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    plugins = methods(tmp_path, mine="")
    file_of(plugins, "mine").write_bytes(b"stages: \xff\xfe")
    line = refused("run", plugins, "methods=mine", f"warehouse={tmp_path / 'warehouse'}")
    assert line.startswith(f"{file_of(plugins, 'mine')}: not YAML: ")


def test_a_role_without_an_engine(tmp_path: Path) -> None:
    """A judge that the method itself asks is needed; those that judge its answers are not."""
    own = HEAD + LOOK_UP + ANSWER + "  rate: {}\n"
    line = ": rate: asks the role judge, which has no engine; set rater=..."
    assert said(tmp_path, own, "rater=none") == line


def test_a_method_of_a_built_in_name(tmp_path: Path) -> None:
    plugins = methods(tmp_path, bm25=HEAD + LOOK_UP + ANSWER)
    line = refused("run", plugins, "methods=bm25", f"warehouse={tmp_path / 'warehouse'}")
    assert line.startswith(f"{file_of(plugins, 'bm25')}: the method bm25 exists already, in ")
    assert line.endswith("conf/method/bm25.yaml; give it another name")
