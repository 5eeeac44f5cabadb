"""Units of work: their names, which hash only the fields of documents and questions that stages
use, and which units of a document are pending. Reads no files."""

import dataclasses
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pipeline.core.calls import UNANSWERED
from pipeline.core.rows import Document, Question, Span
from pipeline.core.settings import sha, sha_of_json
from pipeline.work.steps import Step

Fields = tuple[str, ...] | None
"""Names of the record fields that a stage is given; None stands for all."""
_STATE = ("problem", "skipped", "detail")  # given to every stage, too
_LONG = 1_000  # characters; a longer value is hashed once, for all sets of fields


@dataclass(frozen=True, slots=True)
class QuestionKey:
    """The hashes of one question that name units, one for each set of fields in use."""

    question_id: str
    shas: Mapping[Fields, str]
    is_bad: bool


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """The hashes of one document and its questions that name units, all that the driver keeps of
    it. `is_named_only`: questions name it, but the corpus lacks it."""

    document_id: str
    shas: Mapping[Fields, str]
    num_words: int
    is_bad: bool
    questions: tuple[QuestionKey, ...]
    is_named_only: bool = False

    @classmethod
    def of(
        cls,
        document: Document,
        questions: Iterable[Question],
        steps: Sequence[Step],
        is_named_only: bool = False,
    ) -> "DocumentKey":
        of_question = dict.fromkeys(step.question_fields for step in steps if step.per_question)
        of_document = dict.fromkeys(step.document_fields for step in steps)
        return cls(
            document.document_id,
            _shas(document, of_document),
            document.num_words,
            document.problem is not None or document.skipped,
            tuple(
                QuestionKey(row.question_id, _shas(row, of_question), row.problem is not None)
                for row in questions
            ),
            is_named_only,
        )

    def sha(self) -> str:
        """A hash of every field of the document and of its questions, in order; for steps that load
        the corpus."""
        return sha(
            [self.shas[None], [own.shas[None] for own in self.questions], self.is_named_only]
        )


def _shas(row: Document | Question, sets: Iterable[Fields]) -> dict[Fields, str]:
    """For each set of fields, a hash of the row's ids, its problem and those fields."""
    values = {name: _hashed(getattr(row, name)) for name in _NAMES[type(row)]}
    ids = (row.document_id, getattr(row, "question_id", None))
    state = [name for name in _STATE if values.get(name)]
    shas = {}
    for fields in sets:
        names = values if fields is None else (*fields, *state)
        used = {name: values[name] for name in names if name in values}
        shas[fields] = sha_of_json(_ROW.encode([ids, used]), 32)
    return shas


def _hashed(value: Any) -> Any:
    """Replace a long text by its hash."""
    return sha(value) if isinstance(value, str) and len(value) > _LONG else value


def _of_span(span: Span) -> dict[str, int]:
    return {"end_char": span.end_char, "start_char": span.start_char}


# Like `canonical_json`, with spans.
_ROW = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_of_span)
_NAMES = {kind: [field.name for field in dataclasses.fields(kind)] for kind in (Document, Question)}


def mask_fields(row: Any, fields: tuple[str, ...]) -> Any:
    """The row with ids, problem and `fields`, and defaults elsewhere, so that a stage cannot use a
    field that is not hashed."""
    keep = {"document_id", "question_id", *_STATE, *fields}
    names = (field.name for field in dataclasses.fields(row))
    return type(row)(**{name: getattr(row, name) for name in names if name in keep})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The work of one shard: a document, or a chunk of its questions, in one step.

    `inputs`: question_id -> hash of everything that the question's rows are made from. `chunk`:
    number of the chunk, the same in every step; None if the unit is planned again and its questions
    are now in several chunks, because the document's number of questions has changed. `attempt`:
    the attempt of the shard that holds or will hold the unit; a retry adds one.
    """

    step_id: str
    unit: str
    document_id: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    chunk: int | None = 0
    attempt: int = 1
    is_done: bool


@dataclass(frozen=True)
class RetryPolicy:
    """Selects the committed units that are planned again: units of a step that asks a model, if
    their rows, or their calls without a reply, have one of `problems`, up to `most_attempts` per
    unit."""

    problems: frozenset[str]
    most_attempts: int = 10**9

    def includes(self, step: Step, problems: Iterable[str], attempt: int) -> bool:
        retried = self.problems if step.prompts else self.problems & {"unit_failed"}
        return not retried.isdisjoint(problems) and attempt < self.most_attempts


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

    def needs_retry(self, step: Step, unit: str) -> bool:
        problems = self.problems.get(step.id, {}).get(unit)
        if not problems or self.retry_policy is None or step.stage is None:
            return False
        return self.retry_policy.includes(step, problems, self.attempt(step.id, unit) or 1)

    def attempt(self, step_id: str, unit: str) -> int | None:
        return self.units.get(step_id, {}).get(unit)


def plan_document(
    steps: Sequence[Step], key: DocumentKey, committed: Committed, questions_per_unit: int
) -> list[Unit]:
    """The document's units in every step, done or pending; `steps` are in dependency order.

    Hashes of ids put the document's questions into chunks of about `questions_per_unit`. Committed
    questions keep their unit; the rest of a chunk forms a new unit. So a plan after a crash forms
    the same units, and an added question makes one more. A bad document has, beside its own row,
    only question units, for `upstream` rows. A document that the corpus lacks has no row of its own
    either. A bad question is in `questions` only.
    """
    planned: dict[str, list[Unit]] = {}
    num_chunks = -(-len(key.questions) // questions_per_unit)
    ids = (question.question_id for question in key.questions)
    chunk_of = {own: int(sha(own, 8), 16) % num_chunks if num_chunks > 1 else 0 for own in ids}
    for step in steps:
        if step.per_question:
            planned[step.id] = [*_question_units(step, key, planned, committed, chunk_of)]
        elif not key.is_bad or (step.writes is Document and not key.is_named_only):
            planned[step.id] = [_document_unit(step, key, planned, committed)]
        else:
            planned[step.id] = []
    return [unit for units in planned.values() for unit in units]


def _document_unit(
    step: Step, key: DocumentKey, planned: Mapping[str, list[Unit]], committed: Committed
) -> Unit:
    shards = [name for name, inputs in _shards(step, planned) if inputs is None]
    name = sha([key.shas[step.document_fields], *shards], 16)
    attempt, is_again = committed.attempt(step.id, name), committed.needs_retry(step, name)
    return Unit(
        step_id=step.id,
        unit=name,
        document_id=key.document_id,
        attempt=(attempt or 1) + is_again,
        is_done=attempt is not None and not is_again,
    )


def _question_units(
    step: Step,
    key: DocumentKey,
    planned: Mapping[str, list[Unit]],
    committed: Committed,
    chunk_of: Mapping[str, int],
) -> Iterator[Unit]:
    chunks: dict[int, dict[str, str]] = defaultdict(dict)
    for question_id, input_sha in _input_shas(step, key, _shards(step, planned)).items():
        chunks[chunk_of[question_id]][question_id] = input_sha
    before: dict[str, dict[str, str]] = defaultdict(dict)  # by committed unit
    left: dict[int, dict[str, str]] = defaultdict(dict)  # by chunk
    in_store = committed.inputs.get(step.id, {})
    for chunk, inputs in sorted(chunks.items()):
        name = unit_name(inputs.values())
        if committed.attempt(step.id, name):  # complete: no question needs to be looked up
            before[name] = inputs
            continue
        for question_id, input_sha in inputs.items():
            of = before[in_store[input_sha]] if input_sha in in_store else left[chunk]
            of[question_id] = input_sha
    unit = partial(Unit, step_id=step.id, document_id=key.document_id)
    for name, inputs in before.items():
        # If some of its questions are another run's, only that run can plan all of it again.
        is_again = committed.needs_retry(step, name) and unit_name(inputs.values()) == name
        attempt = (committed.attempt(step.id, name) or 1) + is_again
        of_chunks = {chunk_of[question_id] for question_id in inputs}
        chunk_or_none = of_chunks.pop() if len(of_chunks) == 1 else None
        yield unit(
            unit=name, inputs=inputs, chunk=chunk_or_none, attempt=attempt, is_done=not is_again
        )
    for chunk, inputs in sorted(left.items()):
        yield unit(unit=unit_name(inputs.values()), inputs=inputs, chunk=chunk, is_done=False)


def _input_shas(step: Step, key: DocumentKey, shards: Sequence["_Read"]) -> dict[str, str]:
    """For each question a hash of everything that its rows are made from. The `questions` step does
    not depend on the document's text."""
    document = key.document_id if step.stage is None else key.shas[step.document_fields]
    fields, brought = step.question_fields, step.stage.inputs_per_question() if step.stage else {}
    shas: dict[str, str] = {}
    for question in key.questions:
        if question.is_bad and step.writes is not Question:
            continue
        own = question.question_id
        read = [name for name, inputs in shards if inputs is None or own in inputs]
        answer = [brought[own]] if brought.get(own) is not None else []
        shas[own] = sha([document, question.shas[fields], *read, *answer], 16)
    return shas


def unit_name(inputs: Iterable[str]) -> str:
    """A chunk's name: a hash of its questions' input hashes."""
    return sha(sorted(inputs), 16)


_Read = tuple[str, Mapping[str, str] | None]
"""An upstream shard by name, and its questions; None if all questions read it."""


def _shards(step: Step, planned: Mapping[str, list[Unit]]) -> list[_Read]:
    """The upstream shards that the rows of this document are made from, without those of
    `documents` and `questions`, whose rows have hashes of their own."""
    return [
        (f"{u.step_id}/{u.unit}.{u.attempt}", u.inputs if upstream.per_question else None)
        for upstream in step.upstream
        if upstream.stage is not None
        for u in planned[upstream.id]
    ]
