"""Step ids, from real command lines: what changes them and what must not."""

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from jobs.graph.resolved_run import read_run
from pipeline.core.settings import CONF

METHODS = "readagent_p(max_pages=2),bm25(top_k=1),constant"
# Everything that follows from asking an engine; `constant` and `bm25` ask for no look-up.
ASKED = {"paginate", "gist", "look_up", "answer", "rate", "score"}
EVERYTHING = {"documents", "questions", *ASKED}
OF_METHODS = ("look_up", "answer", "rate", "score")
READAGENT, BM25 = "readagent_p(max_pages=2)", "bm25(top_k=1)"
Key = tuple[str, str | None]


def following(stages: Sequence[str], *methods: str) -> set[str]:
    return {f"{stage} {method}" for stage in stages for method in methods}


def ids_now(*words: str) -> dict[Key, str]:
    """The step ids of a command, by stage and method."""
    steps = read_run([f"methods={METHODS}", *words]).steps
    ids_by_key = {(step.name, step.method): step.id for step in steps}
    assert len(ids_by_key) == len(steps), "the key names one step"
    return ids_by_key


ids = cache(ids_now)  # of words that name no file that a test changes


def changed(before: dict[Key, str], after: dict[Key, str]) -> set[str]:
    """The stages whose steps have other ids; of all their methods, or `stage method` of some."""
    assert before.keys() == after.keys()
    other = {key for key in before if before[key] != after[key]}
    whole = {
        stage for stage in {key[0] for key in before}
        if {key for key in before if key[0] == stage} <= other
    }  # fmt: skip
    return whole | {f"{stage} {method}" for stage, method in other if stage not in whole}


def test_a_step_is_named_by_its_stage_and_8_hex_and_comes_after_what_it_reads() -> None:
    seen: set[str] = set()
    for step in read_run([f"methods={METHODS}"]).steps:
        assert re.fullmatch(f"{step.name}-[0-9a-f]{{8}}", step.id)
        assert {upstream.id for upstream in step.upstream} <= seen
        seen.add(step.id)
    others: list[dict[str, Any]] = [{"version": 99}, {"method": "other"}, {"repeat": 1}]
    assert len({step.id, *(replace(step, **other).id for other in others)}) == 1 + len(others)


@pytest.mark.parametrize(
    "word",
    [
        "limit=1", "sample=2", "corpus.path=elsewhere", "corpus.seed=5", "run=night",
        "warehouse=elsewhere", "engine.max_workers=1", "engine.cpus_per_worker=0.5",
        "questions_per_unit=3", "engine.sequences=99", "engine.deadline_seconds=3.0",
        "engine.seed=7", "max_problem_rate=0.9", "max_fallback_rate=0.9",
    ],
)  # fmt: skip
def test_what_changes_no_id(word: str) -> None:
    assert ids(word) == ids()


RATER = ["rater=extractive", "rater.context_tokens=7777"]
UNRATED = {"paginate", "gist", *following(("look_up", "answer", "score"), READAGENT, BM25)}
OF_READERS = UNRATED | following(["rate"], READAGENT, BM25)
CHANGES = [  # the words of a command, others, and the stages whose ids those change
    ([], ["corpus.name=other"], EVERYTHING),
    ([], ["corpus.format=tables"], EVERYTHING),
    ([], ["memory.max_words=500"], OF_READERS),
    # bm25 searches pages, not gists.
    ([], ["reply_tokens.gist=99"], {"gist", *following(OF_METHODS, READAGENT)}),
    # Rated by another engine, so that `constant`, which asks nobody, keeps its every step.
    (RATER, ["engine.context_tokens=5000"], OF_READERS),
    (RATER, ["engine.temperature=0.5"], OF_READERS),
    ([], RATER, {"rate"}),
    # The seed counts where something is drawn.
    (["engine.temperature=0.7", "rater=none"], ["engine.seed=7"], UNRATED),
    (["methods=random_pages(top_k=2)", "rater=none"], ["engine.seed=7"],
     {"look_up", "answer", "score"}),
]  # fmt: skip


@pytest.mark.parametrize(("words", "others", "stages"), CHANGES)
def test_what_changes_which_id(words: list[str], others: list[str], stages: set[str]) -> None:
    assert changed(ids(*words), ids(*words, *others)) == stages


def test_ids_do_not_depend_on_the_rater_s_name_or_presence() -> None:
    assert ids("rater=extractive") == ids("rater=reader"), "the same engine by its own name"
    left = {key: value for key, value in ids().items() if key[0] != "rate"}
    assert ids("rater=none") == left


THINK = "\nThink of the reader.\n"
EDITS = [  # a file of a family, what is replaced by what, and the stages whose ids change
    ("answer.jinja", "", THINK, following(OF_METHODS[1:], READAGENT, BM25)),
    ("look_up_p.jinja", "", THINK, following(OF_METHODS, READAGENT)),
    ("look_up_s.jinja", "", THINK, set()),
    ("gist.jinja", "", THINK, {"gist", *following(OF_METHODS, READAGENT)}),
    ("break_point.jinja", "", THINK, OF_READERS),
    ("rate_strict.jinja", "", THINK, {"rate"}),
    ("family.yaml", "answer_words: 40", "answer_words: 41", {"answer", "rate", "score"}),
    ("family.yaml", "longbench_f1, squad_em]", "longbench_f1]", {"score"}),
    ("family.yaml", "wording: ours", "reply_tokens: {rate_strict: 17}\nwording: ours", {"rate"}),
    ("family.yaml", "what the matter is", "what matters", following(OF_METHODS[1:], "constant")),
    ("family.yaml", '"Partially. The reason is missing."', '"Partially."', set()),
    ("family.yaml", "wording: ours", "wording: authors", set()),
    # A shared part counts where it is drawn in: gists and verdicts have no question part.
    ("_question.jinja", "", "{# other #}",
     following(OF_METHODS, READAGENT) | following(OF_METHODS[1:], BM25)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "stages"), EDITS)
def test_a_changed_family_changes_what_it_shapes(
    tmp_path: Path, name: str, old: str, new: str, stages: set[str]
) -> None:
    prompts = Path(shutil.copytree(CONF / "prompts", tmp_path / "prompts"))
    own, file = f"family={prompts / 'generic'}", prompts / "generic" / name
    before = ids_now(own)
    assert before == ids("family=generic"), "where a family lies does not matter"
    text = file.read_text(encoding="utf-8")
    assert not old or text.count(old) == 1
    file.write_text(text.replace(old, new) if old else text + new, encoding="utf-8")
    assert changed(before, ids_now(own)) == stages
