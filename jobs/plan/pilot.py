"""The documents that are counted: all of them if that is quick, else one of each group of documents
of about the same length, whose counts are scaled to the remaining work of its group."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jobs.graph.preparation import Prepared
from pipeline.work.units import DocumentKey, Unit

# Words of all prompts that are counted, roughly: for documents whose index rows are
# pending, and for those whose index rows are committed, where hardly anything is uncertain.
_MAX_WORDS, _MAX_WORDS_INDEXED = 5_000_000, 40_000_000
_PROMPT_SHARE = 0.25  # of the document's words, in a prompt about a question
_MIN_GROUPS = 8
_MAX_QUESTIONS = 200  # of a document
Kind = frozenset[str]
"""The ids of the steps that have remaining work."""


@dataclass(frozen=True)
class Counted:
    """A document that is counted, with those of its units that are. `scale`: by step id, the
    remaining work of all documents of its group over what is counted here, in words or
    questions."""

    key: DocumentKey
    units: Sequence[Unit]
    scale: Mapping[str, float]

    @property
    def num_questions(self) -> int:
        return len({q for unit in self.units if not unit.is_done for q in unit.inputs})


@dataclass(frozen=True)
class Pilot:
    """The documents with model calls to make (`num_documents`); `counted` are some of them, or
    all."""

    num_documents: int
    counted: Sequence[Counted]

    @property
    def is_whole(self) -> bool:
        """True if everything is counted, so that nothing is scaled."""
        return all(scale == 1 for one in self.counted for scale in one.scale.values())


def choose_pilot(prepared: Prepared) -> Pilot:
    """The pilot of the remaining work."""
    asking = [step for step in prepared.run.steps if step.prompts]
    by_document = {step.id for step in asking if not step.per_question}
    kinds: dict[Kind, list[DocumentKey]] = defaultdict(list)
    for key in prepared.keys:
        kind = frozenset(_remaining(prepared.units[key.document_id]))
        if not key.is_bad and not kind.isdisjoint(step.id for step in asking):
            kinds[kind].append(key)
    counted = []
    for kind, keys in kinds.items():
        most = _MAX_WORDS_INDEXED if kind.isdisjoint(by_document) else _MAX_WORDS
        counted += [_counted(g, prepared) for g in _groups(keys, prepared, most / len(kinds))]
    return Pilot(sum(map(len, kinds.values())), counted)


def _remaining(units: Sequence[Unit]) -> Counter[str]:
    """By step id the remaining questions, or 1 if the step reads the whole document."""
    found: Counter[str] = Counter()
    for unit in units:
        if not unit.is_done:
            found[unit.step_id] += len(unit.inputs) or 1
    return found


def _groups(
    keys: Sequence[DocumentKey], prepared: Prepared, max_words: float
) -> Iterator[list[DocumentKey]]:
    """Documents of about the same length; as many groups as their prompts' words allow."""
    asking = {step.id for step in prepared.run.steps if step.prompts}
    words = sum(
        key.num_words * (_PROMPT_SHARE * len(unit.inputs) if unit.inputs else 1)
        for key in keys
        for unit in prepared.units[key.document_id]
        if unit.step_id in asking and not unit.is_done
    )
    num = max(_MIN_GROUPS, int(len(keys) * max_words / max(1.0, words)))
    ordered = sorted(keys, key=lambda key: (key.num_words, key.document_id))
    for places in np.array_split(np.arange(len(keys)), min(num, len(keys))):
        yield [ordered[place] for place in places]


def _counted(group: Sequence[DocumentKey], prepared: Prepared) -> Counted:
    """The document of median length, which represents the group."""
    key = group[len(group) // 2]
    per_unit = prepared.run.config.questions_per_unit
    units = _some_chunks(prepared.units[key.document_id], per_unit)
    of_group = _todo([(one, prepared.units[one.document_id]) for one in group], prepared)
    own = _todo([(key, units)], prepared)
    return Counted(key, units, {step_id: of_group[step_id] / own[step_id] for step_id in own})


def _todo(
    documents: Iterable[tuple[DocumentKey, Sequence[Unit]]], prepared: Prepared
) -> Mapping[str, int]:
    """By step id the remaining questions, or the words of the documents."""
    by_question = {step.id for step in prepared.run.steps if step.per_question}
    found: Counter[str] = Counter()
    for key, units in documents:
        for step_id, times in _remaining(units).items():
            found[step_id] += times if step_id in by_question else max(1, key.num_words)
    return found


def _some_chunks(planned: Sequence[Unit], per_unit: int) -> list[Unit]:
    """A document's units; of those that are pending only some chunks of questions: about 200."""
    chunks = dict.fromkeys(u.chunk for u in planned if u.inputs and not u.is_done)
    kept = {None, *list(chunks)[: max(1, _MAX_QUESTIONS // per_unit)]}
    return [unit for unit in planned if unit.is_done or not unit.inputs or unit.chunk in kept]
