"""`gistmill prompts export`: the copy renders the same texts."""

import json
from pathlib import Path

import pytest

from pipeline.core.prompts import PROMPTS
from pipeline.core.settings import CONF
from pipeline.families.family import load_family
from tests.support.command import gistmill, refused, succeed
from tests.support.reading import FAMILIES, family, written_family

ROOTS = [CONF / "prompts"]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_copy_renders_the_same_and_passes_its_check(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    succeed("prompts", "export", name, folder)
    copy, ours = load_family(folder, ROOTS), family(name)
    for prompt in PROMPTS.values():
        if f"{prompt.name}.jinja" in ours.sources:
            assert all(copy.render(s) == ours.render(s) for s in prompt.samples())
            assert copy.sha(prompt) == ours.sha(prompt)
            assert copy.form(prompt) == ours.form(prompt)
            assert copy.max_reply_tokens(prompt) == ours.max_reply_tokens(prompt)
    assert (copy.settings, copy.judging) == (ours.settings, ours.judging)
    assert copy.own_refusals == ours.own_refusals
    succeed("prompts", "check", folder)


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
    new, file = tmp_path / "new", tmp_path / "file"
    file.write_text("mine")
    for words, says in (
        (("qmsumm", new), "qmsumm: no such family or folder; nearest: qmsum"),
        (("x", new), "x: no such family or folder; there are chats, generic"),
        (("qmsum", tmp_path), f"{tmp_path}: is there already and not empty; name a new folder"),
        (("qmsum", file), f"{file}: is there already and not empty; name a new folder"),
        (("qmsum", file / "below"), f"{file / 'below'}: cannot be written: "),
        (("qmsum", new, "plugins=nowhere"), "plugins=nowhere: no such folder"),
        (("qmsum", new, "run=a"), "'run=a': unknown word"),
    ):
        assert refused("prompts", "export", *words).startswith(says)
    assert not new.exists()
    assert gistmill("prompts", "export", "qmsum").returncode == 2
