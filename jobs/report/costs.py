"""The costs of a run's rows: a method's own calls, those of the memory steps that its rows depend
on, and those of its verdicts. Together they are all `calls` of the run, without copied ones."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobs.config.options import price_of
from jobs.statistics.means import MethodGroup
from pipeline.core.engine import Price
from pipeline.core.sql_files import filled, sql_beside, text
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)
_SUMMED = ("calls", "prompt_tokens", "cached_tokens", "reply_tokens")
_SUMS = "count(*) as calls, " + ", ".join(f"sum({n})::bigint as {n}" for n in _SUMMED[1:])
Spent = Mapping[str, float]
"""`calls`, `tokens` and, if a call has a price, `money`."""


@dataclass(frozen=True)
class Costs:
    """`steps`: the memory steps, with the `methods` that depend on each; `total`: over all methods
    and steps, each step once; `unpriced`: engines without a price, if others have one."""

    of_methods: Mapping[tuple[str, str | None, str], Spent]  # by method, group and part
    steps: tuple[dict[str, Any], ...]
    total: Spent
    unpriced: tuple[str, ...]

    def of(self, key: MethodGroup) -> dict[str, float]:
        """In a group; `judging_calls` ... are of verdicts, `memory_calls` ... for all documents."""
        method, by = key
        costs: dict[str, float] = {}
        for part, group in (("", by), ("memory_", None), ("judging_", by)):
            spent = self.of_methods.get((method, group, part), {})
            costs |= {f"{part}{name}": spent.get(name, 0) for name in self.total}
        return costs


def costs_of(
    connection: Any, facts: Mapping[str, Any], price: str | None, is_split: bool = False
) -> Costs:
    """The costs of the questions in the table `chosen`, by `price` or those of each step's engine.
    If `is_split`, the costs of a memory step are divided among the methods that depend on it; else
    each method has all of them. Raises UsageError for an unusable price."""
    given = None if price is None else price_of(price)
    prices = {step_id: Price(**of_step) for step_id, of_step in facts.get("prices", {}).items()}
    has_price = given is not None or bool(prices)

    def spent(row: Mapping[str, Any], divisor: int = 1) -> dict[str, float]:
        calls, prompt, cached, reply = (row[name] for name in _SUMMED)
        costs = {"calls": calls, "tokens": prompt + reply}
        if has_price:
            of_step = given or prices.get(row["step_id"], Price())
            costs["money"] = of_step.of(prompt, cached, reply) or 0.0
        return {name: value / divisor if divisor > 1 else value for name, value in costs.items()}

    query(connection, _SQL["rests"])
    of_methods: dict[tuple[str, str | None, str], Counter[str]] = defaultdict(Counter)
    judging = ", ".join(map(text, facts["judging"])) or "''"
    for row in query(connection, filled(_SQL["of_methods"], judging=judging, sums=_SUMS)):
        part = "judging_" if row["is_judging"] else ""
        of_methods[row["method"], row["by_value"], part].update(spent(row))
    total = Counter[str]({"calls": 0, "tokens": 0, **({"money": 0.0} if has_price else {})})
    for costs in of_methods.values():
        total.update(costs)
    steps = query(connection, filled(_SQL["of_memories"], sums=_SUMS))
    for step in steps:
        total.update(spent(step))
        divisor = len(step["methods"]) if is_split else 1
        for method in step["methods"]:
            of_methods[method, None, "memory_"].update(spent(step, divisor))
    engines = query(connection, _SQL["engines"]) if prices and not given else []
    unpriced = [row["engine"] for row in engines
                if not prices.get(row["step_id"], Price()).is_known]  # fmt: skip
    return Costs(
        of_methods,
        tuple({**{k: v for k, v in step.items() if k not in _SUMMED}, **spent(step)}
              for step in steps),
        dict(total),
        tuple(dict.fromkeys(unpriced)),
    )  # fmt: skip
