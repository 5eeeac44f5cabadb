"""Executions: the units of each planned document that are worked on together. Reads no files."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pipeline.work.units import Unit


class PlannedDocument(NamedTuple):
    """A document and its units, in the order of the steps. `num_words`: of its text. `is_bad`: it
    cannot be read. `num_questions`: the number that can be asked."""

    document_id: str
    num_words: int
    is_bad: bool
    num_questions: int
    units: Sequence[Unit]


class DocumentWork(NamedTuple):
    """One document, or a chunk of its questions, in an execution: its units, done and pending, and
    `words`, the weight of the pending ones."""

    document_id: str
    units: Sequence[Unit]
    words: float


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
    """One execution of a phase.

    `own`: ids of the steps that are executed; `read`: these and the steps they read; `asking`:
    steps that ask a model. `by_chunk`: each chunk of a document's questions is worked on by itself,
    so that several workers share them.
    """

    name: str
    own: frozenset[str]
    read: frozenset[str]
    asking: frozenset[str]
    by_chunk: bool = False

    def work(self, document: PlannedDocument) -> Iterator[DocumentWork]:
        """The document, once or by chunk; nothing if none of its units is pending here. Units of
        other executions count as done."""
        planned = [unit for unit in document.units if unit.step_id in self.read]
        if all(unit.is_done or unit.step_id not in self.own for unit in planned):
            return
        own = [unit if unit.step_id in self.own else _done(unit) for unit in planned]
        for units in _chunks(own) if self.by_chunk else [own]:
            pending = [unit for unit in units if not unit.is_done]
            words = sum(
                weight(unit, document.num_words, unit.step_id in self.asking) for unit in pending
            )
            yield DocumentWork(document.document_id, units, words)


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
    for unit in planned:
        if unit.inputs and not unit.is_done:
            pending[unit.chunk].append(unit)
    if None in pending:
        pending = {None: [unit for units in pending.values() for unit in units]}
    of_all = [place for place, unit in enumerate(planned) if not unit.inputs]
    done_for = defaultdict[str, list[int]](list)  # by question: indexes of done units
    for place, unit in enumerate(planned):
        for question_id in unit.inputs if unit.is_done else ():
            done_for[question_id].append(place)
    for units in pending.values():
        asked = {question_id for unit in units for question_id in unit.inputs}
        places = {place for question_id in asked for place in done_for.get(question_id, ())}
        yield [*(_done(planned[place]) for place in sorted({*of_all, *places})), *units]


def _done(unit: Unit) -> Unit:
    return unit if unit.is_done else replace(unit, is_done=True)
