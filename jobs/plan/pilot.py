"""What every document still has to ask, and the documents that are counted: all of them where that
is quick, else some of every length.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jobs.plan.scaling import Kind, Size
from jobs.preparation import Prepared
from pipeline.steps import Step
from pipeline.units import DocumentKey, Unit

# Words of all prompts that are rendered and counted for one scenario, as far as can be guessed: of
# documents without and with all index rows. Of those with them nearly everything is determined.
_WORDS, _WORDS_OF_INDEXED = 5_000_000, 40_000_000
_WORDS_OF_PROMPT = 0.25  # of the document's words, in a prompt about a question
_FEWEST_DOCUMENTS, _MOST_DOCUMENTS, _FEWEST_QUESTIONS = 4, 16, 4


@dataclass(frozen=True)
class Work:
    """What a document has to do; `times` by step id: once, or the questions."""

    key: DocumentKey
    times: Mapping[str, int]
    kind: Kind
    num_prompts: int  # about questions, at least
    is_indexed: bool  # nothing is asked about the document itself any more

    @property
    def guess(self) -> float:
        """Words of its prompts."""
        return max(1, self.key.num_words) * (1 + _WORDS_OF_PROMPT * self.num_prompts)

    def size(self, step: Step) -> Size:
        times = self.times.get(step.id, 0)
        if not step.per_question:
            times *= max(1, self.key.num_words)
        return Size(self.kind, self.key.num_words, times)


@dataclass(frozen=True)
class Pilot:
    """The documents that are counted, with some of their questions, and all of their units."""

    works: Sequence[Work]  # of all documents that have something to ask
    chosen: Sequence[Work]
    keys: Sequence[DocumentKey]
    units: Mapping[str, Sequence[Unit]]

    @property
    def is_whole(self) -> bool:
        """Whether it is all there is to do, so that nothing is scaled."""
        return len(self.chosen) == len(self.works) and all(
            key is work.key for key, work in zip(self.keys, self.chosen, strict=True)
        )


def works(prepared: Prepared) -> list[Work]:
    """Of every document that has something to ask, in corpus order."""
    steps = {step.id: step for step in prepared.steps}
    found = []
    for key in prepared.keys:
        times: Counter[str] = Counter()
        for unit in prepared.units[key.document_id]:
            if not unit.is_done:
                times[unit.step_id] += len(unit.inputs) or 1
        asking = [steps[step_id] for step_id in times if steps[step_id].prompts]
        if asking and not key.is_bad:
            num = sum(times[step.id] for step in asking if step.per_question)
            kind = frozenset(step.id for step in asking)
            found.append(Work(key, times, kind, num, all(step.per_question for step in asking)))
    return found


def choose(prepared: Prepared) -> Pilot:
    """The pilot: all documents whose prompts have few enough words, else some of every length."""
    todo = works(prepared)
    counted = [
        *_within([work for work in todo if work.is_indexed], _WORDS_OF_INDEXED),
        *_within([work for work in todo if not work.is_indexed], _WORDS),
    ]
    keys, units = [], {}
    loading = {step.id for step in prepared.steps if step.stage is None}
    for work, words in counted:
        name = work.key.document_id
        key, units[name] = _with_some(work, prepared, words), prepared.units[name]
        if key is not work.key:
            whole = [unit for unit in units[name] if unit.step_id in loading]
            rest = [unit for unit in prepared.planned_for(key) if unit.step_id not in loading]
            units[name] = [*whole, *rest]
        keys.append(key)
    return Pilot(todo, [work for work, _ in counted], keys, units)


def _within(own: Sequence[Work], words: float) -> list[tuple[Work, float]]:
    """Those that are counted, each with how many words its prompts may have."""
    if sum(work.guess for work in own) <= words:
        return [(work, math.inf) for work in own]
    kinds: dict[Kind, list[Work]] = defaultdict(list)
    for work in own:
        kinds[work.kind].append(work)
    chosen = [work for like in kinds.values() for work in _spread(like, words / len(kinds))]
    return [(work, words / len(chosen)) for work in chosen]


def _spread(own: Sequence[Work], words: float) -> list[Work]:
    """The shortest, the longest, and by length those at even steps between."""
    ordered = sorted(own, key=lambda work: (work.key.num_words, work.key.document_id))
    usual = ordered[len(ordered) // 2].guess
    num = min(len(own), max(_FEWEST_DOCUMENTS, min(_MOST_DOCUMENTS, int(words / usual))))
    return [ordered[place] for place in _places(len(ordered), num)]


def _places(length: int, num: int) -> list[int]:
    return sorted({round(float(place)) for place in np.linspace(0, length - 1, num)})


def _with_some(work: Work, prepared: Prepared, words: float) -> DocumentKey:
    """The document's key with so many of the questions it still has as those words allow."""
    key, steps = work.key, {step.id for step in prepared.steps if step.prompts}
    units = [u for u in prepared.units[key.document_id] if not u.is_done and u.step_id in steps]
    pending = {question_id for unit in units for question_id in unit.inputs}
    asked = [question for question in key.questions if question.question_id in pending]
    if len(asked) <= _FEWEST_QUESTIONS or work.guess <= words:
        return key
    most = max(_FEWEST_QUESTIONS, int(len(asked) * words / work.guess))
    return replace(key, questions=tuple(asked[place] for place in _places(len(asked), most)))
