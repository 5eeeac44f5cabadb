"""Steps and units of work, named by hashes of all that determines their rows; which units of a
document are pending, and which of them an execution works on together. Reads no files."""

import dataclasses
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from pipeline.core.calls import UNANSWERED
from pipeline.core.rows import Document, Question, Record, is_per_question
from pipeline.core.settings import sha, sha_of_json
from pipeline.work.stage import Stage

Fields = tuple[str, ...] | None  # of a document or question that a stage gets; None: all
_STATE = ("problem", "skipped", "detail")  # fields that every stage gets as well
_LONG = 1_000  # characters; a longer value is hashed once, for all sets of fields


@dataclass(frozen=True, kw_only=True)
class Step:
    """A stage with its settings, prompts, engine and inputs; `id` is a hash of them.

    `stage` is None for the two steps that load a corpus. `upstream`: the steps it reads; `memory`:
    the pagination that page indexes in its rows refer to (`shared` for the run's own).
    """

    corpus: str
    name: str
    version: int
    writes: type[Record]
    settings: Mapping[str, Any]
    prompts: Mapping[str, Any] = field(default_factory=dict)  # name -> template, budget, form
    engine: Mapping[str, Any] | None = None  # identity; None if no prompt is asked
    method: str | None = None
    repeat: int = 0
    memory: str | None = None
    upstream: tuple["Step", ...] = ()
    stage: Stage | None = field(default=None, compare=False)

    @cached_property
    def id(self) -> str:
        return f"{self.name}-{sha(self.description(), 8)}"

    def description(self) -> dict[str, Any]:
        """Everything that is hashed into `id`, as JSON."""
        memory = {"memory": self.memory} if self.stage and self.stage.starts_memory else {}
        return {
            "stage": self.name,
            "version": self.version,
            "settings": dict(self.settings),
            "prompts": dict(self.prompts),
            "engine": self.engine,
            "method": self.method,
            "repeat": self.repeat,
            "upstream": [step.id for step in self.upstream],
            **memory,
        }

    @property
    def table(self) -> str:
        return self.writes.table

    @property
    def per_question(self) -> bool:
        return is_per_question(self.writes)

    @property
    def document_fields(self) -> Fields:
        """The fields of a document that name its units."""
        return self.stage.document_fields if self.stage else None

    @property
    def question_fields(self) -> Fields:
        return self.stage.question_fields if self.stage else None


class QuestionKey(NamedTuple):
    """Hashes of one question, which name units: one for each set of fields that a step uses."""

    question_id: str
    shas: Mapping[Fields, str]
    is_bad: bool


_MOST_CHARS_OF_A_WORD = 20  # of more, as in tables of numbers, a word counts as several


class DocumentKey(NamedTuple):
    """Hashes of one document and of its questions, which name units. The driver keeps nothing else
    of a document. `is_named_only`: questions name it, but the corpus lacks it."""

    document_id: str
    shas: Mapping[Fields, str]
    num_words: int
    is_bad: bool
    questions: tuple[QuestionKey, ...]
    is_named_only: bool

    @classmethod
    def of(
        cls,
        document: Document,
        questions: Iterable[Question],
        steps: Sequence[Step],
        is_named_only: bool = False,
    ) -> "DocumentKey":
        of_document = {step.document_fields for step in steps}
        of_question = {step.question_fields for step in steps if step.per_question}
        keys = (
            QuestionKey(row.question_id, _shas(row, of_question), row.problem is not None)
            for row in questions
        )
        num_words = max(document.num_words, len(document.text or "") // _MOST_CHARS_OF_A_WORD)
        is_bad = document.problem is not None or document.skipped
        shas = _shas(document, of_document)
        return cls(document.document_id, shas, num_words, is_bad, tuple(keys), is_named_only)

    def sha(self) -> str:
        """A hash of every field of the document and of its questions, in order; for steps that load
        the corpus."""
        of_questions = [question.shas[None] for question in self.questions]
        return sha([self.shas[None], of_questions, self.is_named_only])


# Like `canonical_json`, with spans.
_ROW = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    default=lambda span: {"end_char": span.end_char, "start_char": span.start_char},
)
_NAMES = {kind: [field.name for field in dataclasses.fields(kind)] for kind in (Document, Question)}


def _shas(row: Document | Question, sets: Iterable[Fields]) -> dict[Fields, str]:
    """For each set of fields, a hash of the row's ids, its problem and those fields."""
    values = {name: getattr(row, name) for name in _NAMES[type(row)]}
    for name, value in values.items():
        if isinstance(value, str) and len(value) > _LONG:
            values[name] = sha(value)
    ids = (row.document_id, getattr(row, "question_id", None))
    state = [name for name in _STATE if values.get(name)]
    shas = {}
    for fields in sets:
        names = values if fields is None else (*fields, *state)
        used = {name: values[name] for name in names if name in values}
        shas[fields] = sha_of_json(_ROW.encode([ids, used]), 32)
    return shas


def mask_fields(row: Any, fields: tuple[str, ...]) -> Any:
    """The row with ids, problem and `fields`, and defaults elsewhere, so that a stage cannot use a
    field that is not hashed."""
    keep = {"document_id", "question_id", *_STATE, *fields}
    names = (field.name for field in dataclasses.fields(row))
    return type(row)(**{name: getattr(row, name) for name in names if name in keep})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The work of one shard: a document, or a chunk of its questions, in one step."""

    step_id: str
    unit: str
    document_id: str
    inputs: Mapping[str, str] = field(default_factory=dict)  # question_id -> hash of its inputs
    # The same in every step; None if the document's number of questions has changed, so that the
    # questions of a committed unit are now in several chunks.
    chunk: int | None = 0
    attempt: int = 1  # of the shard that holds or will hold the unit; a retry adds one
    is_done: bool


@dataclass(frozen=True)
class RetryPolicy:
    """Selects the committed units that are planned again: units of a step that asks a model, if
    their rows, or their calls without a reply, have one of `problems`."""

    problems: frozenset[str]
    most_attempts: int = 10**9


RETRY_TIMEOUTS_ONCE = RetryPolicy(frozenset(UNANSWERED), most_attempts=2)
RETRYABLE = (*UNANSWERED, "truncated", "unparseable", "out_of_range", "unit_failed")
"""The problems that another reply may avoid; the others follow from the unit's inputs."""


@dataclass(frozen=True)
class Committed:
    """The contents of the store: the units of each step, and the unit of each question input."""

    units: Mapping[str, Mapping[str, int]]  # step_id -> unit -> attempt
    inputs: Mapping[str, Mapping[str, str]]  # step_id -> input_sha -> unit
    problems: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    retry_policy: RetryPolicy | None = None

    def unit(
        self, step: Step, document_id: str, name: str, inputs: Mapping[str, str], chunk: int | None
    ) -> Unit:
        """The unit as it is in the store; pending if it is not there or must be retried."""
        attempt = self.units.get(step.id, {}).get(name)
        is_retried, policy = False, self.retry_policy
        # Calls may have problems before there are rows (a worker died between the two commits):
        # then the rows are made from them, at the same attempt.
        if attempt is not None and policy is not None and step.stage is not None:
            retried = policy.problems if step.prompts else policy.problems & {"unit_failed"}
            is_retried = (
                not retried.isdisjoint(self.problems.get(step.id, {}).get(name, ()))
                and attempt < policy.most_attempts
                # If some of its questions are another run's, only that run can plan all of it.
                and (not inputs or unit_name(inputs.values()) == name)
            )
        return Unit(
            step_id=step.id,
            unit=name,
            document_id=document_id,
            inputs=inputs,
            chunk=chunk,
            attempt=(attempt or 1) + is_retried,
            is_done=attempt is not None and not is_retried,
        )


def plan_document(
    steps: Sequence[Step], key: DocumentKey, committed: Committed, questions_per_unit: int
) -> list[Unit]:
    """The document's units in every step, done or pending; `steps` are in dependency order.

    Hashes of ids put the document's questions into chunks of about `questions_per_unit`. Questions
    that are committed keep their unit; the rest of a chunk forms a new unit. A bad document has its
    own row, and units of questions, whose rows get the problem `upstream`; a document that the
    corpus lacks has no row of its own. A bad question is in `questions` only.
    """
    planned: dict[str, list[Unit]] = {}
    num_chunks = -(-len(key.questions) // questions_per_unit)
    ids = (question.question_id for question in key.questions)
    chunk_of = {name: int(sha(name, 8), 16) % num_chunks if num_chunks > 1 else 0 for name in ids}
    for step in steps:
        # The upstream shards that the rows are made from, with their questions (None: all questions
        # need it). The rows of `documents` and `questions` have hashes of their own.
        shards = [
            (f"{u.step_id}/{u.unit}.{u.attempt}", u.inputs if upstream.per_question else None)
            for upstream in step.upstream
            if upstream.stage is not None
            for u in planned[upstream.id]
        ]
        named: Iterable[tuple[str, Mapping[str, str], int | None]] = ()
        if step.per_question:
            named = _question_units(step, key, shards, committed, chunk_of)
        elif not key.is_bad or (step.writes is Document and not key.is_named_only):
            of_document = [shard for shard, inputs in shards if inputs is None]
            named = [(sha([key.shas[step.document_fields], *of_document], 16), {}, 0)]
        planned[step.id] = [committed.unit(step, key.document_id, *unit) for unit in named]
    return [unit for units in planned.values() for unit in units]


def _question_units(
    step: Step,
    key: DocumentKey,
    shards: Sequence[tuple[str, Mapping[str, str] | None]],
    committed: Committed,
    chunk_of: Mapping[str, int],
) -> Iterator[tuple[str, Mapping[str, str], int | None]]:
    """The name, inputs and chunk of each unit of questions, first of those that are committed."""
    # The `questions` step does not depend on the document's text.
    document = key.document_id if step.stage is None else key.shas[step.document_fields]
    of_stage = step.stage.inputs_per_question() if step.stage else {}
    upstream: dict[str, list[str]] = {question.question_id: [] for question in key.questions}
    for shard, ids in shards:  # not per question: a document may have 100,000
        for question_id in upstream if ids is None else ids:
            upstream[question_id].append(shard)
    chunks: dict[int, dict[str, str]] = defaultdict(dict)
    for question_id, shas, is_bad in key.questions:
        if not is_bad or step.writes is Question:
            answer = [of_stage[question_id]] if of_stage.get(question_id) is not None else []
            hashed = [document, shas[step.question_fields], *upstream[question_id], *answer]
            chunks[chunk_of[question_id]][question_id] = sha(hashed, 16)
    in_store: dict[str, dict[str, str]] = defaultdict(dict)  # by committed unit
    pending: dict[int, dict[str, str]] = defaultdict(dict)  # by chunk
    names, unit_of = committed.units.get(step.id, {}), committed.inputs.get(step.id, {})
    for chunk, inputs in sorted(chunks.items()):
        name = unit_name(inputs.values())
        if name in names:  # complete: no question needs to be looked up
            in_store[name] = inputs
            continue
        for question_id, input_sha in inputs.items():
            unit = in_store[unit_of[input_sha]] if input_sha in unit_of else pending[chunk]
            unit[question_id] = input_sha
    for name, inputs in in_store.items():
        of_chunks = {chunk_of[question_id] for question_id in inputs}
        yield name, inputs, of_chunks.pop() if len(of_chunks) == 1 else None
    for chunk, inputs in sorted(pending.items()):
        yield unit_name(inputs.values()), inputs, chunk


def unit_name(inputs: Iterable[str]) -> str:
    """A chunk's name: a hash of its questions' input hashes."""
    return sha(sorted(inputs), 16)


class PlannedDocument(NamedTuple):
    """A document and its units, in the order of the steps."""

    document_id: str
    num_words: int  # of its text
    is_bad: bool  # it cannot be read
    num_questions: int  # that can be asked
    units: Sequence[Unit]


class DocumentWork(NamedTuple):
    """One document, or a chunk of its questions, in an execution: its units, done and pending."""

    document_id: str
    units: Sequence[Unit]
    words: float  # the weight of the pending units
    num_words: int  # of its text


@dataclass(frozen=True)
class Work:
    """The documents of an execution, the longest first, and their totals. `documents` may be read
    by another process of this machine."""

    documents: Iterable[DocumentWork]
    num_documents: int
    words: float


def work_on(documents: Sequence[DocumentWork]) -> Work:
    return Work(documents, len(documents), sum(document.words for document in documents))


@dataclass(frozen=True)
class Execution:
    """One execution of a phase; steps are named by their ids."""

    name: str
    executed: frozenset[str]
    read: frozenset[str]  # these, and the steps they read
    asking: frozenset[str]  # that ask a model
    by_chunk: bool = False  # several workers share the chunks of a document's questions

    def work(self, document: PlannedDocument) -> Iterator[DocumentWork]:
        """The document, once or by chunk; nothing if none of its units is pending here. Units of
        other executions count as done."""
        num_words = document.num_words
        planned = [
            unit if unit.is_done or unit.step_id in self.executed else replace(unit, is_done=True)
            for unit in document.units
            if unit.step_id in self.read
        ]
        if all(unit.is_done for unit in planned):
            return
        for units in _chunks(planned) if self.by_chunk else [planned]:
            pending = (unit for unit in units if not unit.is_done)
            words = sum(weight(u, num_words, u.step_id in self.asking) for u in pending)
            yield DocumentWork(document.document_id, units, words, num_words)


def weight(unit: Unit, num_words: int, asks: bool) -> float:
    """The relative cost of a unit: a memory stage reads its document of `num_words` once, a
    question some tenths of it; a unit that asks no model costs next to nothing."""
    if not asks:
        return 1.0
    return 0.2 * len(unit.inputs) * num_words + 300 if unit.inputs else num_words + 1.0


def _chunks(planned: Sequence[Unit]) -> Iterator[list[Unit]]:
    """The pending question units, one list per chunk, with the units that they read; a single list
    if a unit has questions of several chunks. Index units count as done."""
    pending: dict[int | None, list[Unit]] = defaultdict(list)
    done_for = defaultdict[str, list[int]](list)  # by question: indexes of done units
    shared = [index for index, unit in enumerate(planned) if not unit.inputs]
    for index, unit in enumerate(planned):
        if unit.inputs and not unit.is_done:
            pending[unit.chunk].append(unit)
        for question_id in unit.inputs if unit.is_done else ():
            done_for[question_id].append(index)
    if None in pending:
        pending = {None: [unit for units in pending.values() for unit in units]}
    for units in pending.values():
        ids = {question_id for unit in units for question_id in unit.inputs}
        done = {index for question_id in ids for index in done_for.get(question_id, ())}
        needed = (planned[index] for index in sorted({*shared, *done}))
        yield [*(replace(unit, is_done=True) for unit in needed), *units]
