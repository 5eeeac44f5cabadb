"""The bytes that a run will add to the warehouse, by table."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from jobs.plan.rehearsal import Rehearsal, Sampled
from jobs.plan.scale import Knot, total
from jobs.plan.todo import Counted
from pipeline.records import to_arrow
from pipeline.steps import Step
from pipeline.store.shards import parquet

_SCORES_BYTES = 60  # of a question's scores


def disk(likely: Rehearsal, counted: Counted, questions_per_unit: int) -> dict[str, int]:
    """As the rehearsal's shards were, larger by as much as the corpus is. Every file has its own
    head and foot, every row its share of the rest."""
    knots: dict[tuple[str, str], list[Knot]] = defaultdict(list)
    for one in likely.sampled:
        times = likely.times(one)
        for step, table, size in _files(likely, one):
            num = sum(times[step.id].values()) if step.per_question else one.todo.num_words
            empty = _empty_bytes(table)
            each = np.array([max(0, size - empty) / max(1, num)])
            if step.per_question:
                num_units = -(-one.todo.num_questions // questions_per_unit)
                once = np.array([float(num_units * empty)])
            else:
                once = np.array([float(empty)])
            knots[step.id, table].append(Knot(one.todo.num_words, one.todo.kind, each, once))
    found: dict[str, int] = defaultdict(int)
    for (step_id, table), own in knots.items():
        step = likely.steps[step_id]
        numbers = total(counted.todo, step_id, step.per_question, own)
        found[table] += round(float(numbers[0])) if len(numbers) else 0
    for table, size in _loaded(likely, counted).items():
        found[table] += size
    return dict(found)


def _files(likely: Rehearsal, one: Sampled) -> Iterator[tuple[Step, str, float]]:
    """The tables each unit writes, and their bytes; scores are not made in a rehearsal."""
    for unit in one.units:
        step = likely.steps[unit.step_id]
        if unit.is_done or step.stage is None:
            continue
        for table in (step.table, "calls") if step.prompts else (step.table,):
            path = likely.shards.path(table, step.id, unit.unit)
            size = path.stat().st_size if path.is_file() else _SCORES_BYTES * len(unit.inputs)
            yield step, table, size


def _loaded(likely: Rehearsal, counted: Counted) -> dict[str, int]:
    """Documents and questions, by the words of those sampled."""
    words = sum(one.todo.num_words for one in likely.sampled) or 1
    asked = sum(len(one.loaded.questions) for one in likely.sampled) or 1
    own = {"documents": 0, "questions": 0}
    for one in likely.sampled:
        for unit in one.units:
            step = likely.steps[unit.step_id]
            if step.stage is None and not unit.is_done:
                own[step.table] += likely.shards.path(step.table, step.id, unit.unit).stat().st_size
    todo_words = sum(one.num_words for one in counted.todo)
    todo_asked = sum(one.num_questions for one in counted.todo)
    return {
        "documents": round(own["documents"] * todo_words / words),
        "questions": round(own["questions"] * todo_asked / asked),
    }


def _empty_bytes(table: str) -> int:
    return len(parquet(to_arrow(table, [], [])))
