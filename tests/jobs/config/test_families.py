"""`gistmill prompts export`; and the experiments readagent_* are read as the paper has them."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.graph.resolved_run import read_run
from pipeline.core.prompts import PROMPTS
from pipeline.core.settings import CONF
from pipeline.families.family import load_family
from stages.prompts.readagent_memory import BreakPoint, Labeled
from tests.support.command import gistmill, refused, succeed
from tests.support.reading import FAMILIES, family, written_family

ROOTS = [CONF / "prompts"]
OF_ALL = {
    "tail_words": 350, "label_rule": "notebook", "answer_words": None, "answer_page_tags": False,
    "truncate_by": "spaces", "bm25": "okapi_on_words", "first_page": 0,
}  # fmt: skip
SETTINGS = ("min_words", "max_words", "words", "preceding_words", "following",
            "answer_each_look_up")  # fmt: skip


@pytest.mark.parametrize(
    ("name", "experiment", "form", "settings"),
    [
        ("qmsum", "table3", "Label: <57>", (280, 600, 360, None, "ellipsis", False)),
        ("quality", "table1", "Break point: <57>", (280, 600, 360, None, "paragraph", False)),
        ("narrativeqa_gutenberg", "table2_gutenberg", "Breakpoint: <57>",
         (500, 3000, 2000, 100, "ellipsis", False)),
        ("narrativeqa_movie", "table2_movie", "The break point is: <57>",
         (600, 1000, 800, 0, "nothing", True)),
    ],
)  # fmt: skip
def test_a_dataset_of_readagent_is_read_with_the_papers_prompts_and_settings(
    name: str, experiment: str, form: str, settings: tuple[Any, ...]
) -> None:
    """And with one vector a page; not so the family of our own words."""
    papers, ours = family(f"readagent_{name}"), family(name)
    expected = {**OF_ALL, **dict(zip(SETTINGS, settings, strict=True))}
    assert {key: papers.settings[key] for key in expected} == expected
    assert {ours.settings[key] for key in ("label_rule", "following", "bm25", "truncate_by")} == {
        "within_limits", "nothing", "plus_on_stems", "words",
    }  # fmt: skip
    assert ours.settings["answer_page_tags"] is True and ours.settings["answer_words"]
    window = BreakPoint("Before.", (Labeled("One.", None), Labeled("Two.", 7)), "Next.\n...")
    (message,) = papers.render(window)
    assert all(part in message["content"] for part in (form, "Before.\n", "Next.\n...\n"))
    assert papers.form(BreakPoint) == form.replace("57", "{}")
    for of, read_by, chunk_words in (
        (f"readagent_{experiment}", papers, None), (name, ours, 100),
    ):  # fmt: skip
        run = read_run([f"experiment={of}", "corpus.path=."])
        assert (run.family.name, run.config.embedder.chunk_words) == (read_by.name, chunk_words)


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
        (("qmsum", tmp_path), f"{tmp_path}: is there already and not empty"),
        (("qmsum", file / "below"), f"{file / 'below'}: cannot be written: "),
        (("qmsum", new, "plugins=nowhere"), "plugins=nowhere: no such folder"),
        (("qmsum", new, "run=a"), "'run=a': unknown word"),
    ):
        assert refused("prompts", "export", *words).startswith(says)
    assert not new.exists()
    assert gistmill("prompts", "export", "qmsum").returncode == 2
