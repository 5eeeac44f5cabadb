"""`gistmill prompts export`: the copy renders the same texts, and its steps have the same names."""

import json
from pathlib import Path

import pytest

from jobs.graph.read_run import read_run
from jobs.graph.resolved_run import ResolvedRun
from pipeline.core.prompts import PROMPTS
from pipeline.core.settings import CONF
from pipeline.families.family import load_family
from tests.support.command import gistmill, refused, succeed
from tests.support.reading import FAMILIES, family, written_family

ROOTS = [CONF / "prompts"]
METHODS = "methods=gist_only,readagent_p(max_pages=2),readagent_s(max_pages=2),bm25(top_k=1)"


def steps(of: str | Path) -> set[str]:
    """The names of a run's steps with this family."""
    return {step.id for step in run_of(of).steps}


def run_of(of: str | Path) -> ResolvedRun:
    return read_run(["experiment=demo", METHODS, f"family={of}"])


@pytest.mark.parametrize("name", FAMILIES)
def test_a_copy_renders_the_same_and_passes_its_check(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    succeed("prompts", "export", name, folder)
    copy, ours = load_family(folder, ROOTS), family(name)
    for prompt in PROMPTS.values():
        if f"{prompt.name}.jinja" in ours.sources:
            assert [copy.render(s) for s in prompt.samples()] == [
                ours.render(s) for s in prompt.samples()
            ]
            assert copy.sha(prompt) == ours.sha(prompt)
            assert copy.form(prompt) == ours.form(prompt)
            assert copy.max_reply_tokens(prompt) == ours.max_reply_tokens(prompt)
    assert (copy.settings, copy.judging) == (ours.settings, ours.judging)
    assert copy.refusals == ours.refusals
    succeed("prompts", "check", folder)


@pytest.mark.parametrize("name", ["generic", "readagent_qmsum"])
def test_its_steps_are_those_of_the_family(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    succeed("prompts", "export", name, folder)
    assert steps(folder) == steps(name)
    (folder / "gist.jinja").write_text("Shorten this: {{ page }}")
    assert steps(folder) != steps(name)


def test_a_family_of_ones_own_and_json(tmp_path: Path) -> None:
    mine = written_family(tmp_path, base="qmsum", settings={"answer_words": 7})
    (mine / "gist.jinja").write_text("Shorten\r\nthis: {{ page }}", newline="")
    made = json.loads(succeed("prompts", "export", mine, tmp_path / "copy", "--json"))
    assert made["folder"] == str(tmp_path / "copy")
    origins = made["templates"]
    assert (origins["gist.jinja"], origins["answer.jinja"]) == ("mine", "qmsum")
    assert origins["_memory.jinja"] == "generic"
    copy = load_family(tmp_path / "copy", ROOTS)
    assert copy.sources == load_family(mine, ROOTS).sources
    assert copy.settings["answer_words"] == 7


def test_words_that_it_does_not_take(tmp_path: Path) -> None:
    new = tmp_path / "new"
    assert refused("prompts", "export", "qmsumm", new) == (
        "qmsumm: no such family or folder; nearest: qmsum"
    )
    assert refused("prompts", "export", "x", new).startswith(
        "x: no such family or folder; there are chats, generic"
    )
    (tmp_path / "file").write_text("mine")
    for taken in (tmp_path, tmp_path / "file"):
        assert refused("prompts", "export", "qmsum", taken) == (
            f"{taken}: is there already and not empty; name a new folder"
        )
    below = tmp_path / "file" / "below"
    assert refused("prompts", "export", "qmsum", below).startswith(f"{below}: cannot be written: ")
    assert refused("prompts", "export", "qmsum", new, "plugins=nowhere").startswith(
        "plugins=nowhere: no such folder"
    )
    assert refused("prompts", "export", "qmsum", new, "run=a").startswith("'run=a': unknown word")
    assert not new.exists()
    assert gistmill("prompts", "export", "qmsum").returncode == 2
