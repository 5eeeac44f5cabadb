"""Which engine goes when, and in which executions: engines once, chunks of questions shared."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from jobs.graph.phases import Phase, phases, with_scoring
from jobs.graph.resolved_run import read_run
from pipeline.core.rows import Document, Question
from pipeline.work.units import Committed, DocumentKey, RetryPolicy, Step, Unit, plan_document
from stages.index.gist_pages import GistPages
from stages.retrieve.look_up import NoLookUp
from tests.support.runs.warehouse import document, question
from tests.support.runs.written_plan import plan_of

NOTHING = Committed(units={}, inputs={})
RUN = read_run(["methods=gist_only", "memory=uniform"])
STEPS, READING = RUN.steps, RUN.phases[0]


def _key(name: str, num_questions: int) -> DocumentKey:
    questions = [question(f"{name}-q{n}", name) for n in range(num_questions)]
    return DocumentKey.of(document(name), questions, STEPS)


# Steps by hand, in order: the name of each, whom it asks, and what it reads. The engines of the
# roles differ.
PAGES, GISTS = ("pages", None, ""), ("gists", "reader", "pages")
GRAPHS = {
    "an engine that can finish goes before one that would have to come back": (
        [PAGES, GISTS, ("recall", "memory", "pages"), ("answer", "reader", "gists,recall")],
        {"building memories": ["pages", "recall"], "reading": ["gists", "answer"]},
    ),
    "judges judge once, at the end": (
        [PAGES, GISTS, ("answer 1", "reader", "gists"), ("rate 1", "judge", "answer 1"),
         ("recall", "memory", "gists"), ("facts", "extractor", "recall"),
         ("answer 2", "reader", "facts"), ("rate 2", "judge", "answer 2")],
        {"reading": ["pages", "gists", "answer 1"], "building memories": ["recall"],
         "extracting": ["facts"], "reading (2)": ["answer 2"], "rating": ["rate 1", "rate 2"]},
    ),
    "what asks nobody goes with what reads it": (
        [PAGES, GISTS, ("recall", "memory", "gists"), ("look up", None, "pages"),
         ("ranked", None, "recall"), ("answer", "reader", "ranked,look up"),
         ("score", None, "answer"), ("nobody's", None, "pages")],
        {"reading": ["pages", "gists"], "building memories": ["recall"],
         "reading (2)": ["look up", "ranked", "answer"], "scoring": ["score", "nobody's"]},
    ),
}  # fmt: skip
ROLES = ("reader", "memory", "extractor", "judge")
ENGINES = {role: read_run([f"engine.seed={n}"]).config.engine for n, role in enumerate(ROLES)}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_order_of_phases(name: str) -> None:
    graph, expected = GRAPHS[name]
    given: dict[str, Any] = {"corpus": "c", "version": 1, "settings": {}}
    loading = [Step(name=r.table, writes=r, **given) for r in (Document, Question)]
    steps: dict[str, Step] = {}
    with_engines = [(step, None) for step in loading]
    for step_name, role, reads in graph:
        stage = GistPages(page_breaks=False) if role else NoLookUp()
        if role:
            stage.__dict__["role"] = role  # of this object, not of its class
        upstream = [steps[other] for other in filter(None, reads.split(","))]
        steps[step_name] = Step(
            name=step_name, writes=stage.writes, stage=stage, upstream=(loading[0], *upstream),
            **given,
        )  # fmt: skip
        with_engines.append((steps[step_name], ENGINES[role] if role else None))  # type: ignore[arg-type]
    ordered = phases(with_engines)
    assert {phase.name: [step.name for step in phase.steps] for phase in ordered} == expected
    assert [phase.name for phase in ordered] == [*expected]
    sections = {"reader": "engine", "memory": "memory_engine", "judge": "rater"}
    section_of = {repr(ENGINES[role]): sections.get(role, role) for role in ROLES}
    assert all(p.section == section_of[repr(p.engine)] for p in ordered if p.engine)


GPU = ("engine=vllm", "engine.model=m", "engine.gpus_per_worker=1")
JUDGE = ("rater=vllm", "rater.model=m", "rater.gpus_per_worker=1")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ((), ["reading"]),
        (GPU, ["reading", "scoring"]),
        ((*GPU, "rater=extractive"), ["reading", "rating"]),
        (JUDGE, ["reading", "rating", "scoring"]),
    ],
)
def test_the_last_engines_workers_score_unless_they_hold_gpus(
    words: Sequence[str], names: list[str]
) -> None:
    before, units = _planned(_key("long", 3), *words)
    joined = with_scoring(before, plan_of(STEPS, units))
    assert [phase.name for phase in joined] == names
    in_order = [[s.id for phase in of for s in phase.steps] for of in (joined, before)]
    assert in_order[0] == in_order[1], "every step in its order, once"


def test_no_engine_starts_for_a_document_that_asks_it_nothing() -> None:
    """Read before, and only its scores are missing: beside a new one or alone."""
    found, units = _planned(_key("old", 3))
    asking = {step.id for step in found[0].steps}
    old = [replace(unit, is_done=unit.step_id in asking) for unit in units]
    new = [replace(unit, document_id="new") for unit in units]
    for planned in (old, [*old, *new]):
        assert with_scoring(found, plan_of(STEPS, planned)) == found
    done = [replace(unit, is_done=True) for unit in old]
    assert len(with_scoring(found, plan_of(STEPS, [*done, *new]))) == 1


def _planned(key: DocumentKey, *words: str) -> tuple[list[Phase], list[Unit]]:
    """The phases of a run, and the units of its one document."""
    placed = read_run(["methods=gist_only", "memory=uniform", *words]).steps_with_engines
    return phases(placed), plan_document([step for step, _ in placed], key, NOTHING, 50)


@pytest.mark.parametrize(
    ("per_unit", "workers", "names"),
    [(50, 4, ["reading"]), (5, 1, ["reading"]),
     (5, 2, ["reading: memory", "reading: questions"])],
)  # fmt: skip
def test_two_executions_only_for_several_chunks_and_workers(
    per_unit: int, workers: int, names: list[str]
) -> None:
    keys = [_key("long", 30), _key("short", 2)]
    units = [unit for key in keys for unit in plan_document(STEPS, key, NOTHING, per_unit)]
    plan = plan_of(STEPS, units)
    executions = list(READING.executions(plan, lambda: workers))
    assert [execution.name for execution, _ in executions] == names
    worked_on = [document for _, work in executions for document in work.documents]
    assert len(worked_on) == sum(work.num_documents or 0 for _, work in executions)
    words = sum(work.words or 0 for _, work in executions)
    assert sum(document.words for document in worked_on) == pytest.approx(words)
    pending = [u for document in worked_on for u in document.units if not u.is_done]
    own = {step.id for step in READING.steps}
    every = [(u.step_id, u.unit) for u in units if u.step_id in own]
    assert sorted((u.step_id, u.unit) for u in pending) == sorted(every), "each in one, once"


def test_a_unit_of_several_chunks_is_executed_with_all_of_them() -> None:
    """A unit that is asked again was formed from more questions than a chunk has now."""
    key = _key("d", 6)
    (step,) = [s for s in STEPS if s.name == "look_up"]
    (old,) = [u for u in plan_document(STEPS, key, NOTHING, 6) if u.step_id == step.id]
    committed = Committed(
        units={step.id: {old.unit: 1}},
        inputs={step.id: dict.fromkeys(old.inputs.values(), old.unit)},
        problems={step.id: {old.unit: frozenset({"unit_failed"})}},
    )

    def items(held: Committed) -> list[Sequence[Unit]]:
        plan = plan_of(STEPS, plan_document(STEPS, key, held, 2))
        executions = READING.executions(plan, lambda: 2)
        return [document.units for _, work in executions for document in work.documents]

    assert len(items(committed)) > 2, "the memory, then chunks: what is done is in none"
    (together,) = items(replace(committed, retry_policy=RetryPolicy(frozenset({"unit_failed"}))))
    (again,) = [unit for unit in together if unit.step_id == step.id]
    assert (again.unit, again.attempt, again.is_done) == (old.unit, 2, False)
    answers = {s.id for s in STEPS if s.name == "answer"}
    assert {q for u in together if u.step_id in answers for q in u.inputs} == {*old.inputs}
