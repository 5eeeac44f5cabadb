"""Which units are still to do: planned from keys and from what is committed, without any file."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.graph.resolved_run import read_run
from pipeline.core.rows import Document, Question, Span
from pipeline.work.units import (
    RETRY_TIMEOUTS_ONCE,
    Committed,
    DocumentKey,
    RetryPolicy,
    Unit,
    _shas,
    plan_document,
)
from pipeline.work.units import mask_fields as given_to
from tests.support.runs.warehouse import document, question

STEPS = read_run(["methods=readagent_p(max_pages=2)", "memory=uniform"]).steps
BY_ID = {step.id: step for step in STEPS}
OF_DOCUMENTS = ("documents", "paginate", "gist")
OF_STAGES = ("look_up", "answer", "score", "rate")
OF_QUESTIONS = ("questions", *OF_STAGES)  # the questions' own rows rest on no text


class Store:
    """What is committed, as the warehouse has it: the lowest of several units counts."""

    def __init__(self) -> None:
        self.units: dict[str, set[str]] = {step.id: set() for step in STEPS}
        self.inputs: dict[str, dict[str, str]] = {s.id: {} for s in STEPS if s.per_question}
        self.attempts: dict[str, int] = {}

    def commit(self, units: Iterable[Unit]) -> None:
        for unit in units:
            self.units[unit.step_id].add(unit.unit)
            for input_sha in unit.inputs.values():
                unit_of = self.inputs[unit.step_id]
                unit_of[input_sha] = min(unit.unit, unit_of.get(input_sha, unit.unit))

    def plan(self, key: DocumentKey, retries: RetryPolicy | None = None) -> list[Unit]:
        """Every unit has a problem, which only `retries` mind."""
        last, failed = self.attempts, frozenset({"timeout"})
        units = {of: {u: last.get(u, 1) for u in names} for of, names in self.units.items()}
        problems = {of: dict.fromkeys(names, failed) for of, names in units.items()}
        return plan_document(STEPS, key, Committed(units, self.inputs, problems, retries), 50)

    def pending(self, key: DocumentKey) -> dict[str, Unit]:
        """The unit that each stage still has to do; never more than one a document."""
        units = [unit for unit in self.plan(key) if not unit.is_done]
        by_stage = {stage(unit): unit for unit in units}
        assert len(by_stage) == len(units)
        return by_stage

    def finish(self, key: DocumentKey) -> None:
        self.commit(self.pending(key).values())


def stage(unit: Unit) -> str:
    return BY_ID[unit.step_id].name


def key(*questions: Question, of: Document | None = None) -> DocumentKey:
    return DocumentKey.of(of or document(), questions, STEPS)


def asked(pending: Mapping[str, Unit]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(unit.inputs) for name, unit in pending.items()}


Q1, Q2, Q3 = question("q1"), question("q2"), question("q3")
MEMORY: dict[str, tuple[str, ...]] = dict.fromkeys(OF_DOCUMENTS, ())


@pytest.fixture
def store() -> Store:
    """Document d1 with questions q1 and q2, all done."""
    store = Store()
    store.finish(key(Q1, Q2))
    return store


ANSWERED = dict.fromkeys(OF_STAGES, ("q1", "q2"))
BOTH = dict.fromkeys(OF_QUESTIONS, ("q1", "q2"))
FIRST = [  # a document with its questions, and what of it is to do at first
    (key(Q1, Q2), MEMORY | BOTH),
    (key(), MEMORY),
    (key(Q1, Q2, of=document(skipped=True)), {"documents": (), **BOTH}),
    (key(Q1, Q2, of=document(problem="bad_input")), {"documents": (), **BOTH}),
    (key(Q1, replace(Q2, problem="bad_input", detail="line 3")),  # is in `questions` alone
     MEMORY | dict.fromkeys(OF_QUESTIONS, ("q1",)) | {"questions": ("q1", "q2")}),
]  # fmt: skip


GOLD = {"questions": ("q1",), "score": ("q1",)}  # what is judged by it is judged again
LATER = [  # d1 with q1 and q2 as it is now, and what is to do once all was done
    (key(Q2, Q1), {}),
    (key(Q2), {}),
    (key(Q1, Q2, Q3), dict.fromkeys(OF_QUESTIONS, ("q3",))),
    (key(replace(Q1, question="What else?"), Q2), dict.fromkeys(OF_QUESTIONS, ("q1",))),
    (key(replace(Q1, options=("a", "b")), Q2), dict.fromkeys(OF_QUESTIONS, ("q1",))),
    # Raters see references, and no evidence.
    (key(replace(Q1, references=("A wheel.",)), Q2), {**GOLD, "rate": ("q1",)}),
    (key(replace(Q1, answer_index=1), Q2), GOLD),
    (key(replace(Q1, evidence=(Span(0, 3),)), Q2), GOLD),
    (key(replace(Q1, only_judged=True), Q2), GOLD),
    (key(replace(Q1, task="trec", classes=("place", "person")), Q2), GOLD),
    (key(replace(Q1, metadata='{"kind": "why"}', question_type="why"), Q2),
     {"questions": ("q1",)}),
    (key(Q1, Q2, of=document(title="A mill")), {"documents": ()}),
    (key(Q1, Q2, of=document(text="One two three.")), MEMORY | ANSWERED),
    (key(Q1, Q2, of=document(problem="bad_input", detail="line 3")),
     {"documents": (), **ANSWERED}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("is_later", "now", "to_do"),
    [*((False, *row) for row in FIRST), *((True, *row) for row in LATER)],
)
def test_what_is_to_do(
    store: Store, is_later: bool, now: DocumentKey, to_do: dict[str, Any]
) -> None:
    assert asked((store if is_later else Store()).pending(now)) == to_do


def test_what_is_wrong_with_a_document_names_its_units() -> None:
    """The same text, now without the problem: what said `upstream` must be made after all."""
    store = Store()
    store.finish(key(Q1, of=document(problem="bad_input", detail="line 3")))
    pending = asked(store.pending(key(Q1)))
    assert pending == MEMORY | dict.fromkeys(OF_STAGES, ("q1",))
    moved = asked(store.pending(key(Q1, of=document(problem="bad_input", detail="line 4"))))
    assert moved == {"documents": (), **dict.fromkeys(OF_STAGES, ("q1",))}


QUESTIONS = st.sets(st.integers(1, 5), max_size=5)
EDITS = st.tuples(QUESTIONS, st.booleans(), st.integers(0, len(STEPS)))


@settings(deadline=None, max_examples=150)
@given(st.lists(EDITS, min_size=1, max_size=6))
def test_whatever_happened_a_finished_plan_leaves_nothing(
    history: list[tuple[set[int], bool, int]],
) -> None:
    """Runs with other questions and texts, each cut off after some steps, after which the same
    units form again; then one to the end."""
    store = Store()
    for numbers, other_text, committed in history:
        text = "Other words." if other_text else "One two."
        now = key(*(question(f"q{n}") for n in sorted(numbers)), of=document(text=text))
        planned = store.plan(now)
        of_step: dict[str, set[str]] = {}
        for unit in planned:
            of_step.setdefault(stage(unit), set()).update(unit.inputs)
            assert not unit.inputs or stage(unit) in OF_QUESTIONS
        asked_for = {f"q{n}" for n in numbers}
        assert all(of_step.get(name, set()) == asked_for for name in OF_QUESTIONS)
        first = {step.id for step in STEPS[:committed]}
        store.commit([unit for unit in planned if unit.step_id in first])
        expected = {(u.step_id, u.unit, u.is_done or u.step_id in first) for u in planned}
        assert {(u.step_id, u.unit, u.is_done) for u in store.plan(now)} == expected
    store.finish(now)
    assert store.pending(now) == {}


@settings(deadline=None, max_examples=100)
@given(QUESTIONS, QUESTIONS, st.booleans())
def test_two_runs_at_once_end_with_nothing_to_do(
    mine: set[int], theirs: set[int], first: bool
) -> None:
    """Both planned before either committed; where they overlap, one unit counts for both."""
    store = Store()
    keys = [key(*(question(f"q{n}") for n in sorted(numbers))) for numbers in (mine, theirs)]
    plans = [store.plan(each) for each in keys]
    for planned in plans if first else reversed(plans):
        store.commit(planned)
    assert [store.pending(each) for each in keys] == [{}, {}]


def test_a_stage_is_given_what_names_its_units_and_no_more() -> None:
    row = document(title="A mill", metadata='{"kind": "book"}', num_paragraphs=1, detail="line 3")
    seen = given_to(row, ("text", "num_words"))
    assert seen == document(detail="line 3")
    asked_for = replace(Q1, options=("a", "b"), evidence=(Span(0, 3),), problem="bad_input")
    assert given_to(asked_for, ("question", "options")) == Question(
        document_id="d1", question_id="q1", question=Q1.question, options=("a", "b"),
        problem="bad_input",
    )  # fmt: skip


def test_a_unit_is_planned_once_more_and_what_reads_it_anew(store: Store) -> None:
    now, asking = key(Q1, Q2), {step.id for step in STEPS if step.prompts}
    first = store.plan(now)
    names = {(unit.step_id, unit.unit) for unit in first}
    again = store.plan(now, RETRY_TIMEOUTS_ONCE)
    for unit in again:
        is_retried = (unit.step_id, unit.unit) in names and unit.step_id in asking
        assert unit.attempt == (2 if is_retried else 1)
        assert unit.is_done == ((unit.step_id, unit.unit) in names and not is_retried)
    assert any(unit.attempt == 2 for unit in again)
    store.attempts = {unit.unit: 2 for unit in first}
    last = {(unit.attempt, unit.is_done) for unit in store.plan(now, RETRY_TIMEOUTS_ONCE)}
    assert last == {(1, False), (2, True)}, "once"


def test_calls_without_their_rows_are_no_earlier_attempt() -> None:
    """A worker died between the two commits: the rows are made from those calls."""
    planned = Store().plan(key(Q1))
    timeouts = {unit.step_id: {unit.unit: frozenset({"timeout"})} for unit in planned}
    committed = Committed({}, {}, timeouts, RETRY_TIMEOUTS_ONCE)
    assert plan_document(STEPS, key(Q1), committed, 50) == planned


def test_questions_of_another_run_are_not_lost_by_a_retry(store: Store) -> None:
    """Its unit has more questions than this run, which therefore leaves it as it is."""
    names = {unit.unit for unit in store.plan(key(Q1, Q2))}
    lookups = {step.id for step in STEPS if step.per_question and step.prompts}
    plan = store.plan(key(Q1), RETRY_TIMEOUTS_ONCE)
    assert not [u for u in plan if u.step_id in lookups and u.unit in names and not u.is_done]


def hashed(content: Any) -> str:
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("detail", [None, "line 3"])
def test_hashes_are_those_of_json(detail: str | None) -> None:
    """By the library's own JSON of all that a question has: names of units that are committed
    stay. A text of over 1,000 characters is hashed by its own hash."""
    row = question(
        "q1", question="long " * 250, references=("\u00e9\n\"", ""), detail=detail,
        evidence=(Span(start_char=3, end_char=4),), answer_index=2, only_judged=True,
    )  # fmt: skip
    of_json = asdict(row) | {"question": hashed(row.question)}
    chosen = ("only_judged", "references", "evidence")
    some = {name: of_json[name] for name in chosen} | ({"detail": detail} if detail else {})
    shas = _shas(row, [None, chosen])
    assert shas[None] == hashed([["d1", "q1"], of_json])[:32]
    assert shas[chosen] == hashed([["d1", "q1"], some])[:32]


@pytest.mark.parametrize("field", fields(Document), ids=lambda field: field.name)
def test_the_hash_of_a_key_is_another_where_a_field_is(field: Any) -> None:
    """Of all fields; a question that is missing or elsewhere is another key, too."""
    values: dict[type, Any] = {int: 7, bool: True}
    row = document("d1", metadata="{}")
    value = values.get(type(getattr(row, field.name)), "another")
    assert key(of=row).sha() == key(of=document("d1", metadata="{}")).sha()
    assert key(of=row).sha() != key(of=replace(row, **{field.name: value})).sha()
    asked_for = ((Q1, Q2), (Q2, Q1), (Q1,), (Q2,), (), (replace(Q1, only_judged=True), Q2))
    assert len({key(*questions, of=row).sha() for questions in asked_for}) == len(asked_for)
