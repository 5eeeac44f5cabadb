"""The costs of a run's rows: a method's own calls, those of the memory steps that its rows rest on,
and those of its verdicts. Together they are the run's rows of `calls`, without copied ones."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.config.options import ReadOptions
from jobs.config.prices import money
from jobs.statistics.means import Key
from pipeline.core.sql_files import filled, sql_beside, text
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)
_SUMMED = ("calls", "prompt_tokens", "cached_tokens", "reply_tokens")
_SUMS = "count(*) as calls, " + ", ".join(f"sum({n})::bigint as {n}" for n in _SUMMED[1:])
_PARTS = ("", "memory_", "judging_")
Spent = Mapping[str, float]
"""Sums over calls, by the names of _SUMMED."""


@dataclass(frozen=True)
class Costs:
    """The costs of a report's methods and groups, and of the memory steps that they rest on.

    `steps` have `memory`, `stage`, `step_id`, the `methods` that rest on it, and its costs; `total`
    are those of all methods and steps, each step once. Costs are `calls`, `tokens` and, with a
    price, `money`.
    """

    of_methods: Mapping[tuple[str, str | None, str], Spent]  # by method, group and part
    steps: tuple[dict[str, Any], ...]
    total: Mapping[str, float]
    price: str | None

    def of(self, key: Key) -> dict[str, float]:
        """The costs of a method's own calls in a group, of its verdicts (`judging_calls` ...), and
        of its memories (`memory_calls` ...), which are those for all documents."""
        method, by = key
        groups = {"": by, "memory_": None, "judging_": by}
        return {f"{part}{name}": value for part in _PARTS
                for name, value in _shown(self.of_methods.get((method, groups[part], part), {}),
                                          self.price).items()}  # fmt: skip


def costs_of(connection: Any, judging: Sequence[str], options: ReadOptions) -> Costs:
    """The costs of the questions in the table `chosen`. With `split_shared` those of a memory step
    are divided by the number of methods that rest on it; else each method has all of them.

    `judging`: the stages whose calls are verdicts. Raises UsageError for an unusable price.
    """
    query(connection, _SQL["rests"])
    of_methods: dict[tuple[str, str | None, str], Counter[str]] = defaultdict(Counter)
    judges = ", ".join(map(text, judging)) or "''"
    for row in query(connection, filled(_SQL["of_methods"], judging=judges, sums=_SUMS)):
        part = "judging_" if row["is_judging"] else ""
        of_methods[row["method"], row["by_value"], part].update(_spent(row))
    total = sum(of_methods.values(), Counter[str]())
    steps = query(connection, filled(_SQL["of_memories"], sums=_SUMS))
    for step in steps:
        total.update(_spent(step))
        divisor = len(step["methods"]) if options.split_shared else 1
        for method in step["methods"]:
            of_methods[method, None, "memory_"].update(_spent(step, divisor))
    shown = [
        {k: v for k, v in step.items() if k not in _SUMMED} | _shown(step, options.price)
        for step in steps
    ]
    return Costs(of_methods, tuple(shown), _shown(total, options.price), options.price)


def _spent(row: Mapping[str, Any], divisor: int = 1) -> dict[str, float]:
    return {name: row[name] / divisor if divisor > 1 else row[name] for name in _SUMMED}


def _shown(spent: Spent, price: str | None) -> dict[str, float]:
    calls, prompt, cached, reply = (spent.get(name, 0) for name in _SUMMED)
    of_price = {} if price is None else {"money": money(price, prompt, cached, reply)}
    return {"calls": calls, "tokens": prompt + reply, **of_price}
