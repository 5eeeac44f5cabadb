"""The dependencies between a run's calls, and the longest chain of them (the critical path).

They follow from the steps: a call waits for all calls of its document in the steps that its step
reads, directly or through steps without calls. The calls of a stage with `asks_in_turn` also wait
for each other; calls that read such a stage wait for its last call, or for the one of their own
page.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.core.calls import Call
from pipeline.work.units import Step


@dataclass(frozen=True)
class Made:
    step: Step
    call: Call


def dependencies(made: Sequence[Made]) -> list[tuple[int, ...]]:
    """For each call the positions in `made` of the calls it depends on."""
    by_step: dict[tuple[str, str], list[int]] = defaultdict(list)
    for position, one in enumerate(made):
        by_step[one.step.id, one.call.document_id].append(position)
    for positions in by_step.values():
        positions.sort(key=lambda position: _turn(made[position].call))
    return [tuple(sorted(_before(made, by_step, one))) for one in made]


def _turn(call: Call) -> tuple[int, int, int]:
    return (call.page_index or 0, call.turn or 0, call.attempt)


def _asks_in_turn(step: Step) -> bool:
    return step.stage is not None and step.stage.asks_in_turn


def _before(
    made: Sequence[Made], by_step: Mapping[tuple[str, str], list[int]], one: Made
) -> set[int]:
    """The previous call in its own step, if it waits for one; else the calls its step reads."""
    own = [
        position
        for position in by_step[one.step.id, one.call.document_id]
        if _turn(made[position].call) < _turn(one.call) and _follows(one, made[position].call)
    ]
    if own:
        return {own[-1]}
    found = (_last(made, by_step, upstream, one.call) for upstream in one.step.upstream)
    return {position for positions in found for position in positions}


def _follows(one: Made, earlier: Call) -> bool:
    """True if a call waits for an earlier one of its step: asked in turn, or a retry of it."""
    call = one.call
    if call.question_id != earlier.question_id:
        return False
    same = (call.page_index, call.turn, call.reference_index, call.prompt)
    again = (earlier.page_index, earlier.turn, earlier.reference_index, earlier.prompt)
    return _asks_in_turn(one.step) or same == again


def _last(
    made: Sequence[Made], by_step: Mapping[tuple[str, str], list[int]], step: Step, call: Call
) -> set[int]:
    """The calls of `step` that `call` waits for; if the step made none, those of its own inputs."""
    there = by_step.get((step.id, call.document_id), [])
    if call.question_id and step.per_question:
        there = [p for p in there if made[p].call.question_id == call.question_id]
    if not there:
        found = (_last(made, by_step, upstream, call) for upstream in step.upstream)
        return {position for positions in found for position in positions}
    if not _asks_in_turn(step):
        return set(there)
    if call.page_index is not None:
        there = [p for p in there if (made[p].call.page_index or 0) <= call.page_index]
    return set(there[-1:])


def longest_chain(made: Sequence[Made], seconds: Callable[[Call], float]) -> float:
    """Seconds of the critical path: the slowest chain of dependent calls of `seconds` each."""
    before = dependencies(made)
    ends: dict[int, float] = {}

    def end(position: int) -> float:
        stack = [position]
        while stack:
            now = stack[-1]
            missing = [p for p in before[now] if p not in ends]
            if missing:
                stack += missing
            else:
                last = max((ends[p] for p in before[now]), default=0.0)
                ends[stack.pop()] = last + seconds(made[now].call)
        return ends[position]

    return max((end(position) for position in range(len(made))), default=0.0)
