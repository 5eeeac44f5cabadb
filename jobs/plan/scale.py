"""From the sampled documents to all: between them by length, question by question.

What a document's memory costs follows from its words, what a question costs from the document's.
Between two sampled lengths values lie on a line, beyond them they are the outermost sample's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jobs.plan.costs import MEASURES, Range, added
from jobs.plan.todo import Kind, Todo

Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

SAMPLING_MARGIN = 0.1  # what is scaled from a sample may be off by so much
# Where low, likely and high of these stand.
_PROMPT = slice(MEASURES.index("prompt_tokens"), None, len(MEASURES))
_UNCACHED = slice(MEASURES.index("uncached_tokens"), None, len(MEASURES))


@dataclass(frozen=True)
class Knot:
    """One sampled document in one step: numbers a word (of a memory step) or a time (of a question
    step), and what comes once a document on top."""

    num_words: int
    kind: Kind
    each: Numbers
    once: Numbers


def memory_knot(todo: Todo, values: Sequence[float]) -> Knot:
    numbers = np.array(values, dtype=np.float64)
    return Knot(todo.num_words, todo.kind, numbers / max(1, todo.num_words), 0 * numbers)


def question_knot(
    todo: Todo, costs: Mapping[str, Range], times: Mapping[str, int]
) -> tuple[Knot, bool]:
    """And whether every question was asked as often, time for time.

    The question that found least in the prefix cache came first; the others show what each more
    of them finds there.
    """
    whole = _array([added(list(costs.values()))])
    num_times = max(1, sum(times.values()))
    each, once = whole / num_times, np.zeros_like(whole)
    first = min(costs, key=lambda i: _cached(_array([costs[i]]))[1], default="")
    rest = num_times - times.get(first, 0)
    if first and rest > 0:
        later = (_cached(whole) - _cached(_array([costs[first]]))) / rest
        each[_UNCACHED] = whole[_PROMPT] / num_times - later
        once[_UNCACHED] = later * num_times - _cached(whole)
    a_time = {costs.get(i, Range()).likely[0] / n for i, n in times.items() if n}
    return Knot(todo.num_words, todo.kind, each, once), len(a_time) <= 1


def _cached(numbers: Numbers) -> Numbers:
    """Low, likely and high."""
    cached: Numbers = numbers[_PROMPT] - numbers[_UNCACHED]
    return cached


def _array(found: Sequence[Range]) -> Numbers:
    """Low, likely and high of every measure, one after the other."""
    rows = [[*r.low, *r.likely, *r.high] for r in found]
    numbers: Numbers = np.array(rows, dtype=np.float64).sum(axis=0)
    return numbers


def total(todo: Iterable[Todo], step_id: str, per_question: bool, knots: Sequence[Knot]) -> Numbers:
    """The sum over all documents that have the step to do."""
    own = [one for one in todo if one.times.get(step_id)]
    size = len(knots[0].each) if knots else 0
    found = np.zeros(size)
    for kind in {one.kind for one in own}:
        documents = [one for one in own if one.kind == kind]
        near = [knot for knot in knots if knot.kind == kind] or list(knots)
        words = np.array([one.num_words for one in documents], dtype=np.float64)
        times = words
        if per_question:
            times = np.array([one.times[step_id] for one in documents], dtype=np.float64)
        each, once = between(near, words)
        found += (each * times[:, None] + once).sum(axis=0)
    return found


def between(knots: Sequence[Knot], words: Numbers) -> tuple[Numbers, Numbers]:
    """`each` and `once` of documents with so many words, a row each."""
    by_words: dict[int, list[Knot]] = {}
    for knot in knots:
        by_words.setdefault(knot.num_words, []).append(knot)
    at = np.array(sorted(by_words), dtype=np.float64)
    found = []
    for name in ("each", "once"):
        rows = [np.mean([getattr(k, name) for k in by_words[int(n)]], axis=0) for n in at]
        table = np.array(rows)
        found.append(np.stack([np.interp(words, at, column) for column in table.T], axis=1))
    return found[0], found[1]
