"""Prepare a run before execution: commit its documents and questions and plan their units, one
document at a time."""

import hashlib
import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from jobs.config.run_config import RunConfig
from jobs.graph.phases import RunPlan
from jobs.graph.resolved_run import ResolvedRun
from pipeline.core.errors import UsageError
from pipeline.core.rows import Document, Question
from pipeline.core.settings import sha
from pipeline.files.storage import AnyPath
from pipeline.store import Shards
from pipeline.work.units import (
    Committed,
    DocumentKey,
    PlannedDocument,
    RetryPolicy,
    Step,
    Unit,
    plan_document,
)
from stages.corpora import load
from stages.corpora.reading.corpus import Loaded

Warn = Callable[[str], None]
_MOST_WARNINGS = 20
_REMARKS = ("not read", "read in part", "in doubt", "bad_input")


@dataclass(frozen=True)
class Prepared:
    """A run that can be executed. `committed` are the units that the store held before;
    `corpus_sha` is a hash of all document and question rows."""

    run: ResolvedRun
    shards: Shards
    committed: Committed
    plan: RunPlan
    corpus_sha: str


def prepare(
    run: ResolvedRun,
    warehouse: AnyPath,
    warn: Warn,
    shards: Shards | None = None,
    retry_policy: RetryPolicy | None = None,
) -> Prepared:
    """Load the corpus into the warehouse, or into the given `shards`, whose loaded rows stay
    pending, and plan every unit. Raises UsageError if corpus or predictions cannot be used, or a
    step cannot be executed on this machine."""
    steps, loaded_steps = run.steps, set[str]()
    for step in steps:
        if step.stage is not None and step.id in run.named_by:
            step.stage.refuse_unusable(run.named_by[step.id])
    if shards is None:
        shards, loaded_steps = Shards(warehouse), {step.id for step in steps[:2]}
    committed = replace(shards.committed(steps), retry_policy=retry_policy)
    corpus, unknown = hashlib.sha256(), answered_ids(run)

    def planned() -> Iterator[PlannedDocument]:
        for key, units in load_corpus(run.config, shards, steps, committed, warn):
            corpus.update(key.sha().encode())
            for question in key.questions if unknown else ():
                unknown.pop(question.question_id, None)
            units = [replace(u, is_done=True) if u.step_id in loaded_steps else u for u in units]
            usable = 0 if key.is_bad else sum(not question.is_bad for question in key.questions)
            yield PlannedDocument(key.document_id, key.num_words, key.is_bad, usable, units)
        if unknown:
            question_id, source = min(unknown.items())
            raise UsageError(
                f"{source}: no question {question_id!r} in corpus={run.config.corpus.name}; use "
                "the ids of gistmill sql 'select question_id from questions'"
            )

    plan = RunPlan(steps, planned())
    return Prepared(run, shards, committed, plan, corpus.hexdigest()[:12])


def answered_ids(run: ResolvedRun) -> dict[str, str]:
    """The questions that imported answers name, with what the answers come from; none if the run
    reads a part of the corpus, as that may lack some."""
    config = run.config
    if config.limit or config.sample or config.audit_of:
        return {}
    return {
        question_id: f"predictions={config.predictions.get(step.method or '', step.name)}"
        for step in run.steps
        if step.stage
        for question_id in step.stage.inputs_per_question()
    }


def load_corpus(
    config: RunConfig, shards: Shards, steps: Sequence[Step], committed: Committed, warn: Warn
) -> Iterator[tuple[DocumentKey, list[Unit]]]:
    """Commit the rows that are not `committed`, and give `warn` at most 20 lines of each kind;
    yields each document's key and units, in corpus order."""
    documents, questions = steps[:2]
    num_without_text = 0
    lines: dict[str, dict[str, None]] = {what: {} for what in _REMARKS}
    for loaded in chosen_documents(config):
        key = DocumentKey.of(loaded.document, loaded.questions, steps, loaded.is_named_only)
        by_id = {question.question_id: question for question in loaded.questions}
        units = plan_document(steps, key, committed, config.questions_per_unit)
        for unit in (unit for unit in units if not unit.is_done):
            if unit.step_id == documents.id:
                shards.commit(Document, documents, unit, [loaded.document])
            elif unit.step_id == questions.id:
                shards.commit(Question, questions, unit, [by_id[i] for i in unit.inputs])
        num_without_text += loaded.document.skipped and not loaded.document.detail
        for what, line in _remarks(loaded):
            lines[what][line] = None
        yield key, units
    if num_without_text:
        warn(f"{num_without_text} documents have no text to read (no story) and are skipped")
    for what, of_kind in lines.items():
        for line in [*of_kind][:_MOST_WARNINGS]:
            warn(f"{what}: {line}")
        if (more := len(of_kind) - _MOST_WARNINGS) > 0:
            warn(f"{what}: and {more} more; their rows in documents and questions say why")


def _remarks(loaded: Loaded) -> Iterator[tuple[str, str]]:
    """Yield what a user should know of a document and its questions: one of `_REMARKS`, and a line
    of its own."""
    document = loaded.document
    if document.skipped and document.detail:
        yield "not read", document.detail
        return
    if loaded.note:
        yield "read in part", loaded.note
    rows: tuple[Document | Question, ...] = (document, *loaded.questions)
    for row in rows:
        if row.detail:
            yield "bad_input" if row.problem else "in doubt", row.detail


def chosen_documents(config: RunConfig) -> Iterator[Loaded]:
    """Yield the documents that `limit` or `sample` select, in corpus order. A document without a
    text is not counted."""
    if config.sample is not None:
        ids = (i.document.document_id for i in load(config.corpus) if not i.document.skipped)
        draw = set(heapq.nsmallest(config.sample, ids, key=lambda i: sha([config.corpus.seed, i])))
        yield from (loaded for loaded in load(config.corpus) if loaded.document.document_id in draw)
        return
    num_read = 0
    for loaded in load(config.corpus):
        num_read += not loaded.document.skipped
        yield loaded
        if num_read == config.limit:
            return
