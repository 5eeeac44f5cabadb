"""Units of work: their names, and which units of a document are pending. Reads no files."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from pipeline.core.calls import UNANSWERED
from pipeline.core.rows import Document, Question, Record, Span
from pipeline.core.settings import canonical_json, sha, sha_of_json
from pipeline.work.steps import Step

Fields = tuple[str, ...] | None
"""Names of the record fields that a stage is given; None stands for all."""
_STATE = ("problem", "skipped", "detail")  # every stage is given these, too
_FIELDS = {
    kind: sorted(field.name for field in dataclasses.fields(kind)) for kind in (Document, Question)
}
_LONG = 1_000  # characters; a longer value is hashed once, for all sets of fields


@dataclass(frozen=True, slots=True)
class QuestionKey:
    """The hashes of one question that name units, one for each set of fields in use."""

    question_id: str
    shas: Mapping[Fields, str]
    is_bad: bool


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """The hashes of one document and its questions that name units; the driver keeps nothing else
    of it."""

    document_id: str
    shas: Mapping[Fields, str]
    num_words: int
    is_bad: bool
    questions: tuple[QuestionKey, ...]

    @classmethod
    def of(
        cls, document: Document, questions: Iterable[Question], steps: Sequence[Step]
    ) -> "DocumentKey":
        """The key for `steps`, whose stages name the fields they use."""
        of_question = dict.fromkeys(step.question_fields for step in steps if step.per_question)
        of_document = dict.fromkeys(step.document_fields for step in steps)
        return cls(
            document.document_id,
            _shas(document, of_document),
            document.num_words,
            document.problem is not None or document.skipped,
            tuple(
                QuestionKey(
                    question.question_id,
                    _shas(question, of_question),
                    question.problem is not None,
                )
                for question in questions
            ),
        )


def _shas(row: Document | Question, sets: Iterable[Fields]) -> dict[Fields, str]:
    """For each set of fields, a hash of the row's ids, its problem and those fields."""
    ids = _json((row.document_id, getattr(row, "question_id", None)))
    state = tuple(name for name in _STATE if getattr(row, name, None))
    names = _FIELDS[type(row)]
    own = {name: f'"{name}":{_json_of_field(getattr(row, name))}' for name in names}
    found = {}
    for fields in sets:
        chosen = names if fields is None else _in_order(fields, state)
        used = ",".join([own[name] for name in chosen])
        found[fields] = sha_of_json(f"[{ids},{{{used}}}]", 32)
    return found


@cache
def _in_order(fields: tuple[str, ...], state: tuple[str, ...]) -> list[str]:
    return sorted({*fields, *state})


def _json_of_field(value: Any) -> str:
    """The canonical JSON of a field as it is hashed; a long text is replaced by its hash."""
    if value is None:
        return "null"
    return _json(sha(value) if isinstance(value, str) and len(value) > _LONG else value)


def _json(value: Any) -> str:
    """`canonical_json`, faster for values that are neither a text nor a dict."""
    if isinstance(value, str) or value is None:
        return canonical_json(value)
    if isinstance(value, tuple):
        return f"[{','.join(map(_json, value))}]"
    if isinstance(value, int):
        return repr(value).lower()  # a bool is an int
    if isinstance(value, Span):
        return f'{{"end_char":{value.end_char},"start_char":{value.start_char}}}'
    return canonical_json(value)


def mask_fields(row: Any, fields: tuple[str, ...]) -> Any:
    """The row as a stage is given it: ids, problem and `fields`. Other fields are at their
    defaults, so that a stage cannot use a field that is not hashed."""
    keep = {"document_id", "question_id", *_STATE, *fields}
    names = (field.name for field in dataclasses.fields(row))
    return type(row)(**{name: getattr(row, name) for name in names if name in keep})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The work of one shard: a document, or a chunk of its questions, in one step.

    `inputs`: question_id -> hash of all that the question's rows are made from. `chunk`: that of
    its questions, the same in every step; None for a unit that is planned again and has questions
    of several chunks, as the document had another number of questions then. `attempt`: the attempt
    of the shard that holds the unit, or will hold it; a retry makes the next one.
    """

    step_id: str
    unit: str
    document_id: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    chunk: int | None = 0
    attempt: int = 1
    is_done: bool


DocumentWork = tuple[str, Sequence[Unit]]
"""One document and its units in an execution, both done and pending."""


@dataclass(frozen=True)
class RetryPolicy:
    """Selects the committed units that are planned again: units of a step that asks a model, if
    their rows, or their calls without a reply, have one of `problems`, up to `most_attempts` at a
    unit."""

    problems: frozenset[str]
    most_attempts: int = 10**9

    def includes(self, step: Step, problems: Iterable[str], attempt: int) -> bool:
        """True if a unit of the step is planned again."""
        found = self.problems & set(problems)
        own = found if step.prompts else found & {"unit_failed"}
        return bool(own) and attempt < self.most_attempts


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
        """True if a committed unit is planned again."""
        problems = self.problems.get(step.id, {}).get(unit)
        if not problems or self.retry_policy is None or step.stage is None:
            return False
        return self.retry_policy.includes(step, problems, self.attempt(step.id, unit) or 1)

    def attempt(self, step_id: str, unit: str) -> int | None:
        """The attempt of the unit's committed shard; None if there is none."""
        return self.units.get(step_id, {}).get(unit)


def plan_document(
    steps: Sequence[Step], key: DocumentKey, committed: Committed, questions_per_unit: int
) -> list[Unit]:
    """The document's units in every step, done or pending; `steps` are in dependency order.

    Hashes of ids put the document's questions into chunks of about `questions_per_unit`. Committed
    questions keep their unit; those of a chunk that are left form one. So the same units are formed
    again after a crash, and a question that is added makes one more. A bad document has question
    units only, for `upstream` rows; a bad question is in `questions` only.
    """
    planned: dict[str, list[Unit]] = {}
    for step in steps:
        if step.per_question:
            planned[step.id] = _question_units(step, key, planned, committed, questions_per_unit)
        elif step.writes is Document or not key.is_bad:
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
    questions_per_unit: int,
) -> list[Unit]:
    in_store = committed.inputs.get(step.id, {})
    num_chunks = -(-len(key.questions) // questions_per_unit)
    before: dict[str, dict[str, str]] = defaultdict(dict)  # by committed unit
    left: dict[int, dict[str, str]] = defaultdict(dict)  # by chunk
    for question_id, input_sha in _input_shas(step, key, _shards(step, planned)).items():
        if input_sha in in_store:
            before[in_store[input_sha]][question_id] = input_sha
        else:
            left[_chunk(question_id, num_chunks)][question_id] = input_sha
    unit = partial(Unit, step_id=step.id, document_id=key.document_id)
    found = []
    for name, inputs in before.items():
        # Some of its questions may be another run's, and only that run can plan all of it again.
        is_again = committed.needs_retry(step, name) and unit_name(inputs.values()) == name
        attempt = (committed.attempt(step.id, name) or 1) + is_again
        chunks = {_chunk(question_id, num_chunks) for question_id in inputs}
        chunk = chunks.pop() if len(chunks) == 1 else None
        found.append(
            unit(unit=name, inputs=inputs, chunk=chunk, attempt=attempt, is_done=not is_again)
        )
    return found + [
        unit(unit=unit_name(inputs.values()), inputs=inputs, chunk=chunk, is_done=False)
        for chunk, inputs in sorted(left.items())
    ]


def _chunk(question_id: str, num_chunks: int) -> int:
    return int(sha(question_id, 8), 16) % num_chunks


def _input_shas(step: Step, key: DocumentKey, shards: Sequence["_Read"]) -> dict[str, str]:
    """For each question a hash of all that its rows are made from. The `questions` step does not
    depend on the document's text."""
    document = key.document_id if step.stage is None else key.shas[step.document_fields]
    fields, brought = step.question_fields, step.stage.inputs_per_question() if step.stage else {}
    names = [(f",{_json(name)}", inputs) for name, inputs in shards]
    read_by_all = "".join(name for name, _ in names)
    are_whole = all(inputs is None or len(inputs) == len(key.questions) for _, inputs in shards)
    first = _json(document)
    found: dict[str, str] = {}
    for question in key.questions:
        if question.is_bad and step.writes is not Question:
            continue
        own, read = question.question_id, read_by_all
        if not are_whole:
            read = "".join(name for name, inputs in names if inputs is None or own in inputs)
        answer = f",{_json(brought[own])}" if brought.get(own) is not None else ""
        found[own] = sha_of_json(f'[{first},"{question.shas[fields]}"{read}{answer}]', 16)
    return found


def unit_name(inputs: Iterable[str]) -> str:
    """The name of a chunk of questions: a hash of their input hashes."""
    return sha(sorted(inputs), 16)


_Read = tuple[str, Mapping[str, str] | None]
"""An upstream shard by name, and its questions; None for one that all questions read."""


def _shards(step: Step, planned: Mapping[str, list[Unit]]) -> list[_Read]:
    """The upstream shards that the rows of this document are made from.

    Without those of `documents` and `questions`, whose rows have hashes of their own.
    """
    return [
        (f"{u.step_id}/{u.unit}.{u.attempt}", u.inputs if upstream.per_question else None)
        for upstream in step.upstream
        if upstream.stage is not None
        for u in planned[upstream.id]
    ]


def rows_of_questions(rows: Iterable[Record], question_ids: Iterable[str]) -> tuple[Any, ...]:
    """The rows of these questions, in the order of `rows`."""
    wanted = set(question_ids)
    return tuple(row for row in rows if getattr(row, "question_id", None) in wanted)
