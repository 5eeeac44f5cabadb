"""The costs of a run's rows: a method's own calls, those of the memory steps that its rows depend
on, and those of its verdicts. Together they are all `calls` of the run, without copied ones."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.config.options import price_of
from jobs.statistics.means import Key
from pipeline.core.engine import Price
from pipeline.core.sql_files import filled, sql_beside, text
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)
_SUMMED = ("calls", "prompt_tokens", "cached_tokens", "reply_tokens")
_SUMS = "count(*) as calls, " + ", ".join(f"sum({n})::bigint as {n}" for n in _SUMMED[1:])
_PARTS = ("", "memory_", "judging_")
Spent = Mapping[str, float]
"""Sums over calls, by the names of _SUMMED, and of their `money`."""


@dataclass(frozen=True)
class Costs:
    """The costs of a report's methods and groups, and of the memory steps that they depend on.

    `steps` have `memory`, `stage`, `step_id`, the `methods` that depend on it, and its costs;
    `total` is over all methods and steps, each step once. Costs are `calls`, `tokens` and, if a
    call has a price, `money`; `unpriced` then names the engines whose calls have none.
    """

    of_methods: Mapping[tuple[str, str | None, str], Spent]  # by method, group and part
    steps: tuple[dict[str, Any], ...]
    total: Mapping[str, float]
    unpriced: tuple[str, ...] | None  # None: no call has a price

    def of(self, key: Key) -> dict[str, float]:
        """In a group; `judging_calls` ... are of verdicts, `memory_calls` ... for all documents."""
        method, by = key
        groups = {"": by, "memory_": None, "judging_": by}
        return {f"{part}{name}": value for part in _PARTS
                for name, value in _shown(self.of_methods.get((method, groups[part], part), {}),
                                          self.unpriced is not None).items()}  # fmt: skip


class Prices:
    """The price of each step's calls: `given` by `price=` for all, else its engine's from
    `by_step`.

    Raises UsageError for an unusable price.
    """

    def __init__(
        self, given: str | None, by_step: Mapping[str, Mapping[str, float | None]]
    ) -> None:
        self._given = None if given is None else price_of(given)
        self._by_step = {step_id: Price(**price) for step_id, price in by_step.items()}

    def of(self, step_id: str) -> Price:
        return self._given or self._by_step.get(step_id, Price())

    def unpriced(self, connection: Any) -> tuple[str, ...] | None:
        """The engines with calls that have no price; None if no call has one."""
        if not self._given and not self._by_step:
            return None
        rows = query(connection, _SQL["engines"])
        return tuple(dict.fromkeys(r["engine"] for r in rows if not self.of(r["step_id"]).is_known))


def costs_of(
    connection: Any, judging: Sequence[str], prices: Prices, is_split: bool = False
) -> Costs:
    """The costs of the questions in the table `chosen`. If `is_split`, the costs of a memory step
    are divided among the methods that depend on it; else each method has all of them.

    `judging`: the stages whose calls are verdicts.
    """
    query(connection, _SQL["rests"])
    of_methods: dict[tuple[str, str | None, str], Counter[str]] = defaultdict(Counter)
    judges = ", ".join(map(text, judging)) or "''"
    for row in query(connection, filled(_SQL["of_methods"], judging=judges, sums=_SUMS)):
        part = "judging_" if row["is_judging"] else ""
        of_methods[row["method"], row["by_value"], part].update(_spent(row, prices))
    total = sum(of_methods.values(), Counter[str]())
    steps = query(connection, filled(_SQL["of_memories"], sums=_SUMS))
    for step in steps:
        total.update(_spent(step, prices))
        divisor = len(step["methods"]) if is_split else 1
        for method in step["methods"]:
            of_methods[method, None, "memory_"].update(_spent(step, prices, divisor))
    unpriced = prices.unpriced(connection)
    has_price = unpriced is not None
    shown = [
        {k: v for k, v in step.items() if k not in _SUMMED}
        | _shown(_spent(step, prices), has_price)
        for step in steps
    ]
    return Costs(of_methods, tuple(shown), _shown(total, has_price), unpriced)


def _spent(row: Mapping[str, Any], prices: Prices, divisor: int = 1) -> dict[str, float]:
    _, *tokens = (row[name] for name in _SUMMED)
    spent = {name: row[name] for name in _SUMMED}
    spent["money"] = prices.of(row["step_id"]).of(*tokens) or 0.0
    return {name: value / divisor if divisor > 1 else value for name, value in spent.items()}


def _shown(spent: Spent, has_price: bool) -> dict[str, float]:
    calls, prompt, _, reply = (spent.get(name, 0) for name in _SUMMED)
    of_price = {"money": spent.get("money", 0.0)} if has_price else {}
    return {"calls": calls, "tokens": prompt + reply, **of_price}
