"""Prepare a run before execution: commit its documents and questions and plan their units, one
document at a time; compare inputs that stages supply for single questions, such as imported
answers, with the corpus.

Used by `run`, `plan` and `bench`.
"""

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from jobs.config.run_config import RunConfig
from jobs.graph.resolved_run import ResolvedRun
from jobs.graph.run_plan import RunPlan
from pipeline.core.errors import UsageError
from pipeline.core.registry import hint
from pipeline.core.rows import Document, Question
from pipeline.core.settings import sha
from pipeline.files.storage import AnyPath
from pipeline.store import Shards
from pipeline.work.units import (
    Committed,
    DocumentKey,
    PlannedDocument,
    QuestionKey,
    RetryPolicy,
    Step,
    Unit,
    plan_document,
)
from stages.corpora import load
from stages.corpora.reading.corpus import Loaded, without_spaces

_MOST_WARNINGS = 20
_WHERE = {
    "not read": "the column detail of skipped documents",
    "read in part": "`missing` in the metadata of documents",
    "paged by characters": "their text in documents",
    "in doubt": "the column detail of documents and questions",
    "bad_input": "the column detail of their rows",
}


class CorpusSha:
    """The hash of a corpus's document and question rows, made of one hash a document, in order."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def add(self, key_sha: str) -> None:
        self._sha.update(key_sha.encode())

    def digest(self) -> str:
        """The hash so far, 12 hex digits."""
        return self._sha.hexdigest()[:12]


@dataclass(frozen=True)
class Prepared:
    """A run before its execution. `committed`: what the store held before."""

    run: ResolvedRun
    shards: Shards
    committed: Committed
    plan: RunPlan
    corpus: CorpusSha


def prepare(
    run: ResolvedRun,
    warehouse: AnyPath,
    warn: Callable[[str], None],
    shards: Shards | None = None,
    retry_policy: RetryPolicy | None = None,
) -> Prepared:
    """Load the corpus into the warehouse, or into the given `shards`, whose loaded rows stay
    pending, and plan every unit.

    `retry_policy`: the committed units that are planned again, by default none. `warn` gets a line
    per bad row, and on missing answers. Raises UsageError if corpus or predictions cannot be used,
    or a step cannot be executed on this machine.
    """
    run.refuse_unusable()
    steps, are_kept, shards = run.steps, shards is None, shards or Shards(warehouse)
    committed = replace(shards.committed(steps), retry_policy=retry_policy)
    corpus, own_inputs = CorpusSha(), OwnInputs(run.config, steps)
    loading = {step.id for step in steps[:2]} if are_kept else set[str]()

    def planned() -> Iterator[PlannedDocument]:
        for key, units in load_corpus(run.config, shards, steps, committed, warn):
            corpus.add(key.sha())
            own_inputs.add(key.questions)
            units = [replace(u, is_done=True) if u.step_id in loading else u for u in units]
            usable = 0 if key.is_bad else sum(not question.is_bad for question in key.questions)
            yield PlannedDocument(key.document_id, key.num_words, key.is_bad, usable, units)
        own_inputs.check(warn)

    return Prepared(run, shards, committed, RunPlan(steps, planned()), corpus)


def load_corpus(
    config: RunConfig,
    shards: Shards,
    steps: Sequence[Step],
    committed: Committed,
    warn: Callable[[str], None],
) -> Iterator[tuple[DocumentKey, list[Unit]]]:
    """Commit the rows of every chosen document that are not `committed`; yields each document's key
    and its units after that, in corpus order.

    The first two of `steps` are those of documents and questions. `warn` gets a line per bad row,
    up to 20, at the end. Raises UsageError if the corpus cannot be used.
    """
    documents, questions = steps[:2]
    said = _LoadingWarnings(warn)
    for loaded in chosen_documents(config):
        key = DocumentKey.of(loaded.document, loaded.questions, steps, loaded.is_named_only)
        by_id = {question.question_id: question for question in loaded.questions}
        units = plan_document(steps, key, committed, config.questions_per_unit)
        for unit in units:
            if unit.is_done:
                continue
            if unit.step_id == documents.id:
                shards.commit(Document, documents, unit, [loaded.document])
            elif unit.step_id == questions.id:
                shards.commit(Question, questions, unit, [by_id[own] for own in unit.inputs])
        said.add(loaded)
        yield key, units
    said.warn_all()


class _LoadingWarnings:
    """The warnings about a loaded corpus: rows that were skipped, read in part, paged by
    characters, or bad."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._without_text = 0
        self._lines: dict[str, dict[str, None]] = {what: {} for what in _WHERE}

    def add(self, loaded: Loaded) -> None:
        document = loaded.document
        if document.skipped and document.detail:
            self._lines["not read"][document.detail] = None
            return
        self._without_text += document.skipped
        if loaded.note:
            self._lines["read in part"][loaded.note] = None
        if line := without_spaces(document):
            self._lines["paged by characters"][line] = None
        rows: tuple[Document | Question, ...] = (document, *loaded.questions)
        for row in rows:
            if row.detail:
                self._lines["bad_input" if row.problem else "in doubt"][row.detail] = None

    def warn_all(self) -> None:
        if self._without_text:
            self._warn(
                f"{self._without_text} documents have no text to read (no story) and are skipped"
            )
        for what, lines in self._lines.items():
            for line in islice(lines, _MOST_WARNINGS):
                self._warn(f"{what}: {line}")
            if len(lines) > _MOST_WARNINGS:
                more = len(lines) - _MOST_WARNINGS
                self._warn(f"{what}: and {more} more; see {_WHERE[what]}")


def chosen_documents(config: RunConfig) -> Iterator[Loaded]:
    """The documents that `limit` or `sample` select, in corpus order.

    Only documents with a text are counted. `limit` also yields those without one on the way;
    `sample` does not.
    """
    if config.sample is None:
        yield from _first(load(config.corpus), config.limit)
        return
    ids = (i.document.document_id for i in load(config.corpus) if not i.document.skipped)
    draw = set(heapq.nsmallest(config.sample, ids, key=lambda i: sha([config.corpus.seed, i])))
    yield from (loaded for loaded in load(config.corpus) if loaded.document.document_id in draw)


def _first(corpus: Iterator[Loaded], limit: int | None) -> Iterator[Loaded]:
    num_read = 0
    for loaded in corpus:
        num_read += not loaded.document.skipped
        yield loaded
        if num_read == limit:
            return


class OwnInputs:
    """The questions of a corpus, to compare with those that stages supply inputs for; kept only if
    a stage does. An audit is not compared, as it is of a sample."""

    def __init__(self, config: RunConfig, steps: Sequence[Step]) -> None:
        self._config = config
        self._asked: dict[str, bool] = {}  # question_id -> whether it can be asked
        self._brought = {
            f"predictions={config.predictions.get(step.method or '', step.name)}": own
            for step in steps
            if not config.audit_of and step.stage and (own := step.stage.inputs_per_question())
        }

    def add(self, questions: Iterable[QuestionKey]) -> None:
        if self._brought:
            self._asked |= {question.question_id: not question.is_bad for question in questions}

    def check(self, warn: Callable[[str], None]) -> None:
        """Give `warn` a line per method that lacks some inputs.

        Raises UsageError for a question that the corpus does not have.
        """
        for given, own in self._brought.items():
            _refuse_unknown(self._config, given, own.keys() - self._asked, {*self._asked})
        usable = {question_id for question_id, can_ask in self._asked.items() if can_ask}
        for given, own in self._brought.items():
            for line in _notes(own, usable):
                warn(f"{given}: {line}")


def _refuse_unknown(config: RunConfig, given: str, unknown: set[str], asked: set[str]) -> None:
    if unknown and (config.limit or config.sample):  # it may be of a document that was not chosen
        asked = {q.question_id for loaded in load(config.corpus) for q in loaded.questions}
        unknown -= asked
    if not unknown:
        return
    first = min(unknown)
    more = f" and {len(unknown) - 1} more of its ids" if len(unknown) > 1 else ""
    raise UsageError(
        f"{given}: no question {first!r}{more} in corpus={config.corpus.name}; "
        f"{hint(first, sorted(asked))}; use the ids of "
        "gistmill sql 'select question_id from questions'"
    )


def _notes(brought: Mapping[str, Any], asked: set[str]) -> Iterator[str]:
    """Notes on questions without an input. `asked`: all questions but the corpus's bad rows, which
    no method answers."""
    missing = sorted(q for q in asked if brought.get(q) is None)
    if missing:
        yield (
            f"{len(missing)} of {len(asked)} questions have no answer and count 0: "
            f"{', '.join(missing[:3])}{', ...' if len(missing) > 3 else ''}"
        )
    other = sorted(
        q for q, value in brought.items() if value is not None and type(value) is not str
    )
    if other:
        yield f"{len(other)} answers are no text and count 0 (bad_input), the first of {other[0]!r}"
