"""Which call waits for which: what the bare engine must mind, and what no engine can shorten.

A page's gist waits for the page, a look-up for all it reads of its document, an answer for its
look-up; the break points of a document are a chain, and so are the turns of a look-up.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.rows import Call
from pipeline.steps import Step

_CHAINS = ("paginate", "look_up")  # stages whose calls for one input follow each other


@dataclass(frozen=True)
class Made:
    """A call, and the step that made it."""

    step: Step
    call: Call


def waits(made: Sequence[Made]) -> list[tuple[int, ...]]:
    """For each call the positions in `made` of those that must be there before it is sent."""
    by_step: dict[tuple[str, str], list[int]] = defaultdict(list)
    for position, one in enumerate(made):
        by_step[one.step.id, one.call.document_id].append(position)
    for positions in by_step.values():
        positions.sort(key=lambda position: _turn(made[position].call))
    return [tuple(sorted(_before(made, by_step, one))) for one in made]


def _turn(call: Call) -> tuple[int, int, int]:
    return (call.page_index or 0, call.turn or 0, call.attempt)


def _before(
    made: Sequence[Made], by_step: Mapping[tuple[str, str], list[int]], one: Made
) -> set[int]:
    step, call = one.step, one.call
    if step.name in _CHAINS:
        own = [
            position
            for position in by_step[step.id, call.document_id]
            if made[position].call.question_id == call.question_id
            and _turn(made[position].call) < _turn(call)
        ]
        if own:
            return {own[-1]}
    found = (_last(made, by_step, upstream, call) for upstream in step.upstream)
    return {position for positions in found for position in positions}


def _last(
    made: Sequence[Made], by_step: Mapping[tuple[str, str], list[int]], step: Step, call: Call
) -> set[int]:
    """What `call` waits for in a step it reads; in what that step reads, where it made no call."""
    there = by_step.get((step.id, call.document_id), [])
    if call.question_id and step.per_question:
        there = [p for p in there if made[p].call.question_id == call.question_id]
    if not there:
        found = (_last(made, by_step, upstream, call) for upstream in step.upstream)
        return {position for positions in found for position in positions}
    if step.name == "paginate" and call.page_index is not None:
        there = [p for p in there if (made[p].call.page_index or 0) <= call.page_index]
    return set(there[-1:] if step.name in _CHAINS else there)


def longest_chain(made: Sequence[Made], seconds: Callable[[Call], float]) -> float:
    """The most seconds of calls that wait for each other; `seconds` are what a call takes."""
    before = waits(made)
    ends: dict[int, float] = {}

    def end(position: int) -> float:
        todo = [position]
        while todo:
            now = todo[-1]
            missing = [p for p in before[now] if p not in ends]
            if missing:
                todo += missing
            else:
                last = max((ends[p] for p in before[now]), default=0.0)
                ends[todo.pop()] = last + seconds(made[now].call)
        return ends[position]

    return max((end(position) for position in range(len(made))), default=0.0)
