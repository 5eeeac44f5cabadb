"""Steps and units: what names the work, and which of it is still to do. Reads no files."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from pipeline.records import TABLES, Document, Question
from pipeline.settings import sha
from pipeline.stage import Stage


@dataclass(frozen=True, kw_only=True)
class Step:
    """One way of making one table's rows; `id` hashes all that shapes them.

    `stage` is null for the two steps that load a corpus. `upstream` are the steps it reads.
    """

    corpus: str
    name: str
    version: int
    table: str
    settings: Mapping[str, Any]
    prompts: Mapping[str, str] = field(default_factory=dict)  # prompt -> sha
    engine: Mapping[str, Any] | None = None  # identity; null where no prompt is asked
    method: str | None = None
    repeat: int = 0
    upstream: tuple["Step", ...] = ()
    stage: Stage | None = field(default=None, compare=False)

    @cached_property
    def id(self) -> str:
        return f"{self.name}-{sha(self.description(), 8)}"

    def description(self) -> dict[str, Any]:
        """All that is hashed, as JSON."""
        return {
            "stage": self.name,
            "version": self.version,
            "settings": dict(self.settings),
            "prompts": dict(self.prompts),
            "engine": self.engine,
            "method": self.method,
            "repeat": self.repeat,
            "upstream": [step.id for step in self.upstream],
        }

    @property
    def per_question(self) -> bool:
        return "question_id" in TABLES[self.table].__dataclass_fields__


@dataclass(frozen=True, slots=True)
class QuestionKey:
    """What units are named by, of one question."""

    question_id: str
    asked_sha: str  # text and options: all a reader sees
    scored_sha: str  # references, right option and evidence as well
    row_sha: str  # the whole row
    is_bad: bool

    @classmethod
    def of(cls, question: Question) -> "QuestionKey":
        asked = [question.question_id, question.question, question.options]
        gold = [question.references, question.answer_index]
        spans = [[span.start_char, span.end_char] for span in question.evidence]
        other = [question.question_type, question.asked_at, question.metadata]
        return cls(
            question.question_id,
            sha(asked),
            sha([*asked, *gold, spans]),
            sha([*asked, *gold, spans, *other, question.problem, question.detail]),
            question.problem is not None,
        )


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """What units are named by, of one document; all the driver keeps of it."""

    document_id: str
    text_sha: str
    row_sha: str
    num_words: int
    is_bad: bool
    questions: tuple[QuestionKey, ...]

    @classmethod
    def of(cls, document: Document, questions: Iterable[Question]) -> "DocumentKey":
        text_sha = sha([document.document_id, document.text])
        other = [document.title, document.metadata, document.num_paragraphs]
        state = [document.skipped, document.problem, document.detail]
        return cls(
            document.document_id,
            text_sha,
            sha([text_sha, *other, *state]),
            document.num_words,
            document.problem is not None or document.skipped,
            tuple(QuestionKey.of(question) for question in questions),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One shard's worth of work: a document, or a chunk of its questions, in one step.

    `inputs` maps each question to the hash of all its rows are made from. Units of the same
    `chunk` of a document's questions follow from each other, step by step.
    """

    step_id: str
    unit: str
    document_id: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    chunk: int = 0
    is_done: bool


Item = tuple[str, Sequence[Unit]]
"""One document and its units in an execution, done and not."""


@dataclass(frozen=True)
class Committed:
    """What stands in the store: a step's units, and the unit of each question input."""

    units: Mapping[str, frozenset[str]]
    inputs: Mapping[str, Mapping[str, str]]  # step_id -> input_sha -> unit


def plan_document(
    steps: Sequence[Step], key: DocumentKey, committed: Committed, questions_per_unit: int
) -> list[Unit]:
    """The document's units in every step, done or not; `steps` come after what they read.

    Questions that stand committed keep their unit; those that do not form new units of about
    `questions_per_unit`, cut by the questions' hashes: a crash re-forms the same ones. A bad
    document has no memory, only question units (they will hold `upstream` rows); a bad question
    is in `questions` alone.
    """
    planned: dict[str, list[Unit]] = {}
    for step in steps:
        if step.per_question:
            planned[step.id] = _question_units(step, key, planned, committed, questions_per_unit)
        elif step.table == "documents" or not key.is_bad:
            planned[step.id] = [_document_unit(step, key, planned, committed)]
        else:
            planned[step.id] = []
    return [unit for units in planned.values() for unit in units]


def _document_unit(
    step: Step, key: DocumentKey, planned: Mapping[str, list[Unit]], committed: Committed
) -> Unit:
    own = key.row_sha if step.table == "documents" else key.text_sha
    name = sha([own, *_shards(step, planned)], 16)
    done = name in committed.units.get(step.id, frozenset())
    return Unit(step_id=step.id, unit=name, document_id=key.document_id, is_done=done)


def _question_units(
    step: Step,
    key: DocumentKey,
    planned: Mapping[str, list[Unit]],
    committed: Committed,
    questions_per_unit: int,
) -> list[Unit]:
    wanted = {
        question.question_id: sha(
            [
                key.text_sha,
                _question_sha(step, question),
                *_shards(step, planned, question.question_id),
            ],
            16,
        )
        for question in key.questions
        if step.table == "questions" or not question.is_bad
    }
    standing = committed.inputs.get(step.id, {})
    num_chunks = -(-len(key.questions) // questions_per_unit)
    groups: dict[str, dict[str, str]] = {}
    chunks: dict[int, dict[str, str]] = {}
    for question_id, input_sha in wanted.items():
        if input_sha in standing:
            group = groups.setdefault(standing[input_sha], {})
        else:
            group = chunks.setdefault(int(sha(question_id, 8), 16) % num_chunks, {})
        group[question_id] = input_sha
    unit = partial(Unit, step_id=step.id, document_id=key.document_id)
    done = [unit(unit=name, inputs=i, is_done=True) for name, i in groups.items()]
    return done + [
        unit(unit=unit_name(i.values()), inputs=i, chunk=chunk, is_done=False)
        for chunk, i in sorted(chunks.items())
    ]


def unit_name(inputs: Iterable[str]) -> str:
    """The name of a chunk of questions: a hash of what each is made from."""
    return sha(sorted(inputs), 16)


def _question_sha(step: Step, question: QuestionKey) -> str:
    if step.stage is None:
        return question.row_sha
    return question.scored_sha if step.stage.reads_gold else question.asked_sha


def _shards(
    step: Step, planned: Mapping[str, list[Unit]], question_id: str | None = None
) -> list[str]:
    """The shards of upstream steps that this document or question is made from.

    The document and the question themselves come in by their own hashes.
    """
    return [
        f"{unit.step_id}/{unit.unit}.1"
        for upstream in step.upstream
        if upstream.stage is not None
        for unit in planned[upstream.id]
        if not upstream.per_question or question_id in unit.inputs
    ]
