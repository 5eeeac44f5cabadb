"""Which documents are counted: all of them where that is quick, else one of each group of documents
of about the same length, whose counts are multiplied by what its group has to do."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jobs.preparation import Prepared
from pipeline.units import DocumentKey, Unit

# Words of all prompts that are counted for one scenario, roughly: of documents whose index rows are
# still to be made, and of those where they are committed, so that hardly anything is uncertain.
_MAX_WORDS, _MAX_WORDS_INDEXED = 5_000_000, 40_000_000
_PROMPT_SHARE = 0.25  # of the document's words, in a prompt about a question
_MIN_GROUPS, _MAX_QUESTIONS = 8, 200
Kind = frozenset[str]
"""The steps, by id, that have something to do."""


@dataclass(frozen=True)
class Counted:
    """A document that is counted, with its questions that are. `scale` is, by step id, what all
    documents of its group have to do over what is counted here, in words or questions."""

    key: DocumentKey
    units: Sequence[Unit]
    scale: Mapping[str, float]


@dataclass(frozen=True)
class Pilot:
    """`num_documents` have model calls to make; `counted` are some of them, or all."""

    num_documents: int
    counted: Sequence[Counted]

    @property
    def is_whole(self) -> bool:
        """Whether everything is counted, so that nothing is scaled."""
        return all(scale == 1 for one in self.counted for scale in one.scale.values())


def choose(prepared: Prepared) -> Pilot:
    """The pilot of what is left to do."""
    asking = [step for step in prepared.steps if step.prompts]
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
    """By step id the questions that are left, or 1 where the step takes the document whole."""
    found: Counter[str] = Counter()
    for unit in units:
        if not unit.is_done:
            found[unit.step_id] += len(unit.inputs) or 1
    return found


def _groups(
    keys: Sequence[DocumentKey], prepared: Prepared, max_words: float
) -> Iterator[list[DocumentKey]]:
    """Documents of about the same length; as many groups as their prompts' words allow."""
    asking = {step.id for step in prepared.steps if step.prompts}
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
    """The document in the middle, in place of all of them."""
    key, units = _with_some_questions(group[len(group) // 2], prepared)
    of_group = _todo([(one, prepared.units[one.document_id]) for one in group], prepared)
    own = _todo([(key, units)], prepared)
    return Counted(key, units, {step_id: of_group[step_id] / own[step_id] for step_id in own})


def _todo(
    documents: Iterable[tuple[DocumentKey, Sequence[Unit]]], prepared: Prepared
) -> Mapping[str, int]:
    """By step id the questions that are left, or the words of the documents."""
    by_question = {step.id for step in prepared.steps if step.per_question}
    found: Counter[str] = Counter()
    for key, units in documents:
        for step_id, times in _remaining(units).items():
            found[step_id] += times if step_id in by_question else max(1, key.num_words)
    return found


def _with_some_questions(key: DocumentKey, prepared: Prepared) -> tuple[DocumentKey, list[Unit]]:
    """The document with at most 200 of its questions that are left, at even steps."""
    units = list(prepared.units[key.document_id])
    left = {question_id for unit in units if not unit.is_done for question_id in unit.inputs}
    if len(left) <= _MAX_QUESTIONS:
        return key, units
    asked = [question for question in key.questions if question.question_id in left]
    places = np.linspace(0, len(asked) - 1, _MAX_QUESTIONS).round().astype(int)
    key = replace(key, questions=tuple(asked[place] for place in places))
    loading = {step.id for step in prepared.steps if step.stage is None}
    rest = [unit for unit in prepared.planned_for(key) if unit.step_id not in loading]
    return key, [*(unit for unit in units if unit.step_id in loading), *rest]
