"""The plan of a run: the units of its documents, in files, and the sums over them. The driver holds
no more than what has not been written yet."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from tempfile import TemporaryDirectory

from upath import UPath

from pipeline.core.settings import sha
from pipeline.store.runs.planned_units import PlannedWork, read_plan, write_plan
from pipeline.work.executions import Execution, PlannedDocument, Work, weight
from pipeline.work.steps import Step
from pipeline.work.units import UNIT_NAMES, Committed

Steps = Collection[str]
"""Ids of steps."""


class RunPlan:
    """The plan of one launch of these steps, in `folder`, by default a temporary one. `seconds`: of
    loading, after which the documents of a file are executed while others are loaded. `finished`
    returns the `sha_of` each document that an earlier launch has finished; those that still have it
    are `kept` as they were planned.

    The sums are those of the documents that were planned so far: `num_units` and `num_pending`
    units; `has_chunks`: some document has pending questions in several chunks.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        folder: UPath | None = None,
        seconds: float = math.inf,
        finished: Callable[[Committed], Mapping[str, str]] = lambda committed: {},
    ) -> None:
        if folder is None:
            self._temporary = TemporaryDirectory(prefix="gistmill-plan-")
        self.folder = folder or UPath(self._temporary.name)
        self.seconds = seconds
        self.kept = set[str]()
        fields = [[step.id, step.document_fields, step.question_fields] for step in steps]
        self._units_by = sha([UNIT_NAMES, fields])
        self._find_finished = finished
        self._finished: Mapping[str, str] = {}
        self._asking = {step.id for step in steps if step.prompts}
        self._documents = Counter[frozenset[str]]()  # by the steps that they have pending units in
        self._words = dict[str, float]()  # of pending units, by step
        self.num_units = self.num_pending = 0
        self.has_chunks = self.is_complete = self._is_stopped = self._is_cut = False

    def write(self, documents: Iterable[PlannedDocument]) -> Iterator[None]:
        """Write the documents, those that come within `seconds` into one file at each step, until
        `stop` is called."""
        counted = map(self._counted, takewhile(self._goes_on, documents))
        for is_last in write_plan(self.folder, counted, self.seconds):
            self.is_complete = is_last and not self._is_cut
            yield

    def stop(self) -> None:
        """Plan no more documents; those that are left make the plan incomplete."""
        self._is_stopped = True

    def look_for_finished(self, committed: Committed) -> None:
        """Look for the documents that can be kept."""
        self._finished = self._find_finished(committed)

    def sha_of(self, rows_sha: str) -> str:
        """A hash of all that a document's units follow from, but for what is committed: its rows,
        the steps, and the fields that they use. `rows_sha`: of its rows and its questions'."""
        return sha([self._units_by, rows_sha], 32)

    def keeps(self, document_id: str, rows_sha: str) -> bool:
        """True if the document is kept: it is finished, with these rows."""
        is_kept = self._finished.get(document_id) == self.sha_of(rows_sha)
        if is_kept:
            self.kept.add(document_id)
        return is_kept

    def _goes_on(self, document: PlannedDocument) -> bool:
        self._is_cut = self._is_stopped
        return not self._is_cut

    def _counted(self, document: PlannedDocument) -> PlannedDocument:
        pending = [unit for unit in document.units if not unit.is_done]
        self.num_units += len(document.units)
        self.num_pending += len(pending)
        self._documents[frozenset(unit.step_id for unit in pending)] += 1
        self.has_chunks |= len({unit.chunk for unit in pending if unit.inputs}) > 1
        for unit in pending:
            words = weight(unit, document.num_words, unit.step_id in self._asking)
            self._words[unit.step_id] = self._words.get(unit.step_id, 0.0) + words
        return document

    def documents(self, steps: Steps | None = None) -> Iterator[PlannedDocument]:
        """The documents with their units in `steps`, or in all; waits for those that are not
        planned yet."""
        return read_plan(self.folder, steps)

    def pending(self) -> set[str]:
        """The steps with pending units."""
        return {*self._words}

    def num_documents(self, steps: Steps) -> int:
        """The documents with pending units in these steps."""
        return sum(n for own, n in self._documents.items() if not own.isdisjoint(steps))

    def is_within(self, steps: Steps, others: Steps) -> bool:
        """True if every document with pending units in `steps` has some in `others`."""
        pending = (own for own in self._documents if not own.isdisjoint(steps))
        return not any(own.isdisjoint(others) for own in pending)

    def work(self, execution: Execution) -> Work:
        """The work of an execution."""
        work = Work(PlannedWork(self.folder, execution), None, None)
        if not self.is_complete:
            return work
        num_documents = self.num_documents(execution.own)
        if execution.by_chunk:
            num_documents = sum(1 for _ in work.documents)
        return replace(work, num_documents=num_documents, words=self.words(execution))

    def words(self, execution: Execution) -> float:
        """The words of an execution's work."""
        return sum(self._words.get(step, 0.0) for step in execution.own)


def split(execution: Execution, of_questions: Steps) -> tuple[Execution, Execution]:
    """An execution as two: what is read by all questions of a document, then the questions by
    chunk. `of_questions`: the steps whose units have questions."""
    first, own = frozenset(execution.read) - {*of_questions}, execution.own
    memory = replace(execution, name=f"{execution.name}: memory", own=own & first, read=first)
    return memory, replace(execution, own=own - first, by_chunk=True)
