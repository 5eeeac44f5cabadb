"""What rehearsals come to: of every sampled question, in every step, the least, likely and most."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap

from jobs.plan.rehearsal import Rehearsal
from pipeline.records import Call
from stages.planning import NO_LIMIT

MEASURES = ("calls", "prompt_tokens", "uncached_tokens", "reply_tokens")
Values = tuple[float, float, float, float]  # by measure
NOTHING: Values = (0.0, 0.0, 0.0, 0.0)
Key = tuple[str, str, str]
"""Step, document, question; the question is empty in the memory steps."""


@dataclass(frozen=True)
class Range:
    """What something may cost."""

    low: Values = NOTHING
    likely: Values = NOTHING
    high: Values = NOTHING


@dataclass
class Pass:
    """One rehearsal's calls, added up; `clipped` are those that filled the whole context."""

    costs: dict[Key, Values] = field(default_factory=dict)
    clipped: set[Key] = field(default_factory=set)


def cost_of(rehearsal: Rehearsal, contexts: Mapping[str, int | None]) -> Pass:
    """Of every step that asks a model; `contexts` are the engines', by step id, in tokens."""
    found = Pass()
    for one in rehearsal.sampled:
        for unit in one.units:
            step = rehearsal.steps[unit.step_id]
            if unit.is_done or not step.prompts:
                continue
            for call in rehearsal.shards.recorded(unit.step_id, unit.unit) or ():
                key = (step.id, one.todo.document_id, call.question_id or "")
                found.costs[key] = _sum([found.costs.get(key, NOTHING), _values(call)])
                if call.prompt_tokens + call.reply_tokens == (contexts[step.id] or NO_LIMIT):
                    found.clipped.add(key)
    return found


def _values(call: Call) -> Values:
    uncached = call.prompt_tokens - call.cached_tokens
    return (1.0, float(call.prompt_tokens), float(uncached), float(call.reply_tokens))


def _sum(values: Iterable[Values]) -> Values:
    calls, prompt, uncached, reply = (sum(column) for column in zip(*values, strict=True))
    return calls, prompt, uncached, reply


def ranges(
    passes: Mapping[str, Pass], methods: Mapping[str, tuple[str | None, int]]
) -> dict[Key, Range]:
    """Low, likely and high of each; `methods` are the steps' methods and repeats.

    A question that is asked neither in the least pass nor in the likely one is not asked at all:
    its prompt is too long however short the replies are. One that fills the context in the most
    pass may not be asked: then neither is what follows from it.
    """
    by_temper = [passes[temper].costs for temper in ("least", "likely", "most")]
    keys = dict.fromkeys(key for costs in by_temper for key in costs)
    unsure = _unsure(passes["most"].clipped, methods)
    found = {}
    for key in keys:
        step_id, document_id, question_id = key
        least, likely, most = (costs.get(key, NOTHING) for costs in by_temper)
        if question_id and not least[0] and not likely[0]:
            continue
        low = _each(min, least, likely, most)
        about = (document_id, methods[step_id], question_id)
        if about in unsure or (document_id, None, "") in unsure:
            low = NOTHING
        found[key] = Range(low, likely, _each(max, least, likely, most))
    return found


def _each(choose: object, *values: Values) -> Values:
    pick = min if choose is min else max
    first, second, third, fourth = starmap(pick, zip(*values, strict=True))
    return first, second, third, fourth


def _unsure(
    clipped: Iterable[Key], methods: Mapping[str, tuple[str | None, int]]
) -> set[tuple[str, tuple[str | None, int] | None, str]]:
    """Questions of methods, and whole documents, that may not be asked for want of room."""
    found: set[tuple[str, tuple[str | None, int] | None, str]] = set()
    for step_id, document_id, question_id in clipped:
        found.add((document_id, methods[step_id] if question_id else None, question_id))
    return found


def by_step(found: Mapping[Key, Range]) -> dict[str, dict[str, dict[str, Range]]]:
    """Step -> document -> question -> range."""
    nested: dict[str, dict[str, dict[str, Range]]] = defaultdict(lambda: defaultdict(dict))
    for (step_id, document_id, question_id), cost in found.items():
        nested[step_id][document_id][question_id] = cost
    return nested


def added(ranges_: Sequence[Range]) -> Range:
    """The sum of them."""
    if not ranges_:
        return Range()
    return Range(
        _sum([r.low for r in ranges_]),
        _sum([r.likely for r in ranges_]),
        _sum([r.high for r in ranges_]),
    )
