"""The plan of a run: the units of its documents, in a file, and the sums over them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pipeline.store.runs.planned_units import PlannedWork, read_plan, write_plan
from pipeline.work.units import Execution, PlannedDocument, Step, Work, weight

Steps = Collection[str]
"""Ids of steps."""


class RunPlan:
    """The plan of one launch: `documents` with their units in these steps, written to the temporary
    `file`, so that the process holds only sums.

    `num_pending`: units; `has_chunks`: some document has pending questions in several chunks.
    """

    def __init__(self, steps: Sequence[Step], documents: Iterable[PlannedDocument]) -> None:
        self._folder = TemporaryDirectory(prefix="gistmill-plan-")
        self.file = Path(self._folder.name) / "units.parquet"
        self._asking = {step.id for step in steps if step.prompts}
        self._documents = Counter[frozenset[str]]()  # by the steps that they have pending units in
        self._words = dict[str, float]()  # of pending units, by step
        self.num_pending, self.has_chunks = 0, False
        write_plan(self.file, map(self._counted, documents))

    def _counted(self, document: PlannedDocument) -> PlannedDocument:
        pending = [unit for unit in document.units if not unit.is_done]
        self.num_pending += len(pending)
        self._documents[frozenset(unit.step_id for unit in pending)] += 1
        self.has_chunks |= len({unit.chunk for unit in pending if unit.inputs}) > 1
        for unit in pending:
            words = weight(unit, document.num_words, unit.step_id in self._asking)
            self._words[unit.step_id] = self._words.get(unit.step_id, 0.0) + words
        return document

    def documents(self, steps: Steps | None = None) -> Iterator[PlannedDocument]:
        """The documents with their units in `steps`; None: with all units."""
        return read_plan(self.file, steps)

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
        documents = PlannedWork(self.file, execution)
        if execution.by_chunk:
            num_documents = sum(1 for _ in documents)
        else:
            num_documents = self.num_documents(execution.own)
        return Work(documents, num_documents, self.words(execution))

    def words(self, execution: Execution) -> float:
        """The words of an execution's work."""
        return sum(self._words.get(step, 0.0) for step in execution.own)


def split(execution: Execution, of_questions: Steps) -> tuple[Execution, Execution]:
    """Split an execution in two: what all questions of a document read, then the questions by
    chunk. `of_questions`: the steps whose units have questions."""
    first, own = frozenset(execution.read) - {*of_questions}, execution.own
    memory = replace(execution, name=f"{execution.name}: memory", own=own & first, read=first)
    return memory, replace(execution, own=own - first, by_chunk=True)
