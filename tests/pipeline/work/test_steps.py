"""Step ids, from real command lines: what changes them and what must not."""

import re
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from jobs.graph.read_run import read_run
from pipeline.core.engine import EngineSettings
from pipeline.core.settings import CONF
from pipeline.work.units import Step

METHODS = "readagent_p(max_pages=2),bm25(top_k=1),constant"
# Everything that follows from asking an engine; `constant` and `bm25` ask for no look-up.
ASKED = {"paginate", "gist", "look_up", "answer", "rate", "score"}
EVERYTHING = {"documents", "questions", *ASKED}
OF_METHODS = ("look_up", "answer", "rate", "score")
READAGENT, BM25 = "readagent_p(max_pages=2)", "bm25(top_k=1)"
Key = tuple[str, str | None, int]


def following(stages: Sequence[str], *methods: str) -> set[str]:
    return {f"{stage} {method}" for stage in stages for method in methods}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.yaml"
    path.write_text("replies: [{reply: one}]\n")
    return path


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    """A copy of the shipped families, to be changed."""
    return Path(shutil.copytree(CONF / "prompts", tmp_path / "prompts"))


def placed(*words: str) -> Sequence[tuple[Step, EngineSettings | None]]:
    return read_run([f"methods={METHODS}", *words]).steps_with_engines


def ids_now(*words: str) -> dict[Key, str]:
    """The step ids of a command, by stage, method and repeat."""
    steps = placed(*words)
    found = {(step.name, step.method, step.repeat): step.id for step, _ in steps}
    assert len(found) == len(steps), "the key names one step"
    return found


ids = cache(ids_now)  # of words that name no file that a test changes


def changed(before: dict[Key, str], after: dict[Key, str]) -> set[str]:
    """The stages whose steps have other ids; of all their methods, or `stage method` of some."""
    assert before.keys() == after.keys()
    other = {key for key in before if before[key] != after[key]}
    whole = {
        stage for stage in {key[0] for key in before}
        if {key for key in before if key[0] == stage} <= other
    }  # fmt: skip
    return whole | {f"{stage} {method}" for stage, method, _ in other if stage not in whole}


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_a_step_is_named_by_its_stage_and_8_hex_and_comes_after_what_it_reads() -> None:
    seen: set[str] = set()
    for step, _ in placed():
        assert re.fullmatch(f"{step.name}-[0-9a-f]{{8}}", step.id)
        assert {upstream.id for upstream in step.upstream} <= seen
        seen.add(step.id)


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


@pytest.mark.parametrize(
    ("words", "stages"),
    [
        (["corpus.name=other"], EVERYTHING),
        (["corpus.format=tables"], EVERYTHING),
        (["memory.max_words=500"], {"paginate", "gist", *following(OF_METHODS, READAGENT, BM25)}),
        # bm25 searches pages, not gists.
        (["reply_tokens.gist=99"], {"gist", *following(OF_METHODS, READAGENT)}),
    ],
)
def test_what_changes_which_id(words: list[str], stages: set[str]) -> None:
    assert changed(ids(), ids(*words)) == stages


@pytest.mark.parametrize("word", ["engine.context_tokens=5000", "engine.temperature=0.5"])
def test_the_reader_changes_all_that_it_replies_to(word: str) -> None:
    """Rated by another engine, so that `constant`, which asks nobody, keeps its every step."""
    rater = ("rater=extractive", "rater.context_tokens=7777")
    of_readers = {"paginate", "gist", *following(OF_METHODS, READAGENT, BM25)}
    assert changed(ids(*rater), ids(*rater, word)) == of_readers


def test_the_rater_changes_ratings_alone() -> None:
    other = ("rater=extractive", "rater.context_tokens=7777")
    assert changed(ids(), ids(*other)) == {"rate"}
    assert ids("rater=extractive") == ids("rater=reader"), "the same engine by its own name"
    left = {key: value for key, value in ids().items() if key[0] != "rate"}
    assert ids("rater=none") == left


def test_the_seed_counts_where_something_is_drawn() -> None:
    hot = ("engine.temperature=0.7", "rater=none")
    of_readers = changed(ids("rater=none"), ids(*hot))
    assert changed(ids(*hot), ids(*hot, "engine.seed=7")) == of_readers
    assert "paginate" in of_readers
    drawn = ("methods=random_pages(top_k=2)", "rater=none")
    assert changed(ids(*drawn), ids(*drawn, "engine.seed=7")) == {"look_up", "answer", "score"}


def test_the_script_of_a_scripted_engine_counts(script: Path) -> None:
    words = ("engine=scripted", f"engine.script={script}")
    before = ids_now(*words)
    copy = script.with_name("copy.yaml")
    shutil.copy(script, copy)
    assert ids("engine=scripted", f"engine.script={copy}") == before, "by its content"
    script.write_text("replies: [{reply: two}]\n")
    assert {"paginate", "gist", "rate"} <= changed(before, ids_now(*words))


def family(prompts: Path) -> str:
    return f"family={prompts / 'generic'}"


@pytest.mark.parametrize(
    ("prompt", "stages"),
    [
        ("answer", following(OF_METHODS[1:], READAGENT, BM25)),
        ("look_up_p", following(OF_METHODS, READAGENT)),
        ("look_up_s", set()),
        ("gist", {"gist", *following(OF_METHODS, READAGENT)}),
        ("break_point", {"paginate", "gist", *following(OF_METHODS, READAGENT, BM25)}),
        ("rate_strict", {"rate"}),
    ],
)  # fmt: skip
def test_a_changed_prompt_changes_its_stage_and_what_follows(
    prompts: Path, prompt: str, stages: set[str]
) -> None:
    before = ids_now(family(prompts))
    assert before == ids("family=generic"), "where a family lies does not matter"
    file = prompts / "generic" / f"{prompt}.jinja"
    file.write_text(file.read_text() + "\nThink of the reader.\n")
    assert changed(before, ids_now(family(prompts))) == stages


@pytest.mark.parametrize(
    ("old", "new", "stages"),
    [
        ("answer_words: 40", "answer_words: 41", {"answer", "rate", "score"}),
        ("longbench_f1, squad_em]", "longbench_f1]", {"score"}),
        ("wording: ours", "reply_tokens: {rate_strict: 17}\nwording: ours", {"rate"}),
        ("what the matter is", "what matters", following(OF_METHODS[1:], "constant")),
        ('"Partially. The reason is missing."', '"Partially."', set()),
        ("wording: ours", "wording: authors", set()),
    ],
)  # fmt: skip
def test_a_changed_family_setting_changes_what_it_shapes(
    prompts: Path, old: str, new: str, stages: set[str]
) -> None:
    before = ids_now(family(prompts))
    edit(prompts / "generic" / "family.yaml", old, new)
    assert changed(before, ids_now(family(prompts))) == stages


def test_a_shared_part_counts_where_it_is_drawn_in(prompts: Path) -> None:
    """Gists and verdicts have no question part; look-ups and answers have."""
    before = ids_now(family(prompts))
    part = prompts / "generic" / "_question.jinja"
    part.write_text(part.read_text() + "{# other #}")
    names = {name.split()[0] for name in changed(before, ids_now(family(prompts)))}
    assert names == {"look_up", "answer", "rate", "score"}


def test_methods_share_one_memory_and_leave_each_other_alone() -> None:
    methods = "gist_only,readagent_p(max_pages=1..6),bm25(top_k=1..6),full_text"
    many = read_run([f"methods={methods}"]).steps_with_engines
    names = [step.name for step, _ in many]
    assert [names.count(stage) for stage in ("documents", "paginate", "gist")] == [1, 1, 1]
    assert [names.count(stage) for stage in ("look_up", "answer", "rate", "score")] == [14] * 4
    few = {step.id for step, _ in read_run(["methods=bm25(top_k=2),gist_only"]).steps_with_engines}
    assert few < {step.id for step, _ in many}


def test_a_repeat_is_a_step_of_its_own(script: Path) -> None:
    words = ("engine=scripted", f"engine.script={script}", "engine.temperature=0.7")
    once, twice = ids(*words), ids(*words, "repeats=2")
    assert {key: twice[key] for key in once} == once, "the first keeps its name"
    added = twice.keys() - once.keys()
    assert {key[2] for key in added} == {1}
    assert len(added) == len(once) - 4, "all but documents, questions, paginate and gist"
    assert len(set(twice.values())) == len(twice)
