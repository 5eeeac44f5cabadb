"""The documents that are counted: all of them if that is quick, else some of every length, whose
counts are scaled to the remaining work of all."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jobs.graph.preparation import Prepared
from jobs.run.eta import weights
from pipeline.work.units import DocumentKey, Unit

_MAX_WORDS = 10_000_000  # of all prompts that are counted, roughly
_MIN_DOCUMENTS, _MAX_QUESTIONS = 8, 200  # of a corpus; of a document


@dataclass(frozen=True)
class Pilot:
    """The documents that are counted, of `num_documents` with model calls to make, and their units.
    `scale`: by step id, the remaining work of all over that which is counted, in questions, or
    words if the step reads whole documents."""

    num_documents: int
    keys: Sequence[DocumentKey]
    units: Mapping[str, Sequence[Unit]]
    scale: Mapping[str, float]

    @property
    def num_questions(self) -> int:
        pending = [unit for units in self.units.values() for unit in units if not unit.is_done]
        return len({(unit.document_id, q) for unit in pending for q in unit.inputs})

    @property
    def is_whole(self) -> bool:
        """True if everything is counted, so that nothing is scaled."""
        return all(scale == 1 for scale in self.scale.values())


def choose_pilot(prepared: Prepared) -> Pilot:
    """The pilot of the remaining work."""
    asking = {step.id for step in prepared.run.steps if step.prompts}
    left = [
        (key, prepared.units[key.document_id])
        for key in prepared.keys
        if not key.is_bad and asking & _pending(prepared.units[key.document_id])
    ]
    per_unit = prepared.run.config.questions_per_unit
    counted = [(key, _some_chunks(units, per_unit)) for key, units in _some(left, asking)]
    all_work, own_work = _work(left, prepared), _work(counted, prepared)
    return Pilot(
        num_documents=len(left),
        keys=[key for key, _ in counted],
        units={key.document_id: units for key, units in counted},
        scale={step_id: all_work[step_id] / own_work[step_id] for step_id in own_work},
    )


Documents = Sequence[tuple[DocumentKey, Sequence[Unit]]]


def _pending(units: Iterable[Unit]) -> set[str]:
    """The ids of the steps that have remaining work."""
    return {unit.step_id for unit in units if not unit.is_done}


def _some(documents: Documents, asking: set[str]) -> Documents:
    """As many documents as the words of their prompts allow, evenly spaced by length, and one of
    each step that would be missing."""
    work = [(key.document_id, units) for key, units in documents]
    words = sum(words for _, words in weights(work, [key for key, _ in documents], asking))
    num = max(_MIN_DOCUMENTS, int(len(documents) * _MAX_WORDS / max(1.0, words)))
    ordered = sorted(documents, key=lambda one: (one[0].num_words, one[0].document_id))
    groups = np.array_split(np.arange(len(ordered)), min(num, len(ordered)) or 1)
    chosen = {int(places[len(places) // 2]) for places in groups if len(places)}
    covered = {step_id for place in chosen for step_id in _pending(ordered[place][1])}
    for place, (_, units) in enumerate(ordered):
        if not _pending(units) <= covered:
            chosen.add(place)
            covered |= _pending(units)
    return [ordered[place] for place in sorted(chosen)]


def _work(documents: Documents, prepared: Prepared) -> Mapping[str, int]:
    """By step id the remaining questions, or the words of the documents."""
    by_question = {step.id for step in prepared.run.steps if step.per_question}
    found: Counter[str] = Counter()
    for key, units in documents:
        for unit in units:
            if not unit.is_done:
                size = len(unit.inputs) if unit.step_id in by_question else key.num_words
                found[unit.step_id] += max(1, size)
    return found


def _some_chunks(planned: Sequence[Unit], per_unit: int) -> list[Unit]:
    """A document's units; of those that are pending only some chunks of questions: about 200."""
    chunks = dict.fromkeys(u.chunk for u in planned if u.inputs and not u.is_done)
    kept = {None, *list(chunks)[: max(1, _MAX_QUESTIONS // per_unit)]}
    return [unit for unit in planned if unit.is_done or not unit.inputs or unit.chunk in kept]
