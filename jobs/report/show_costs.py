"""The parts of a printed report on the costs of methods, and on what they share."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from jobs.output.cells import Part, Table, counted
from jobs.report.report import Report, Row

_COST = (
    "Calls and tokens: of each method's own stages; memory: of the memory steps that its rows "
    "depend on, for all documents; judging: of its verdicts."
)
_MONEY = "Money by these calls and tokens; in that of the run every call counts once."
_MONEY_OF = ("own stages", "memory", "judging", "all")
_DIVIDED = "divided among them"
_IN_EACH = "all of it in the row of each (--split-shared divides it)"


def cost_parts(report: Report) -> list[Part]:
    """The calls and tokens of every method and group, what is shared, and money if there is a
    price."""
    shared = shared_lines(report.memory_steps, report.is_split)
    parts: list[Part] = [by_method(report, _cost), "\n".join([_COST, *shared])]
    if "money" not in report.total:
        return parts
    without = f" Without a price: {', '.join(report.unpriced)}." if report.unpriced else ""
    return [*parts, f"{_MONEY}{without}", _money(report)]


def by_method(report: Report, columns: Callable[[Row, Report], dict[str, object]]) -> Table:
    """A row per method and group, whose first columns are in each part of the table."""
    groups = any(row.by is not None for row in report.rows)
    rows = [
        {"method": row.method, **({"by": row.by} if groups else {}), **columns(row, report)}
        for row in report.rows
    ]
    return Table(rows, num_keys=1 + groups)


def _cost(row: Row, report: Report) -> dict[str, object]:
    """The counts of a method: of memories, of judging and of money where any method has them."""
    others = [f"{part}{name}" for part in ("memory_", "judging_") for name in ("calls", "tokens")]
    spent = [name for name in others if any(one.counts.get(name) for one in report.rows)]
    cells = {name: row.counts.get(name) for name in ("answered", "unscored", "calls", "tokens")}
    cells |= {name: row.counts.get(name) for name in spent}
    return {name.replace("_", " "): value for name, value in cells.items()}


def _money(report: Report) -> Table:
    """The money of each method's parts and of all of them; below, that of the run."""

    def of_method(row: Row, _: Report) -> dict[str, object]:
        own = [row.counts.get(f"{part}money") or 0 for part in ("", "memory_", "judging_")]
        return dict(zip(_MONEY_OF, map(_price, [*own, sum(own)]), strict=True))

    table = by_method(report, of_method)
    last = {**dict.fromkeys(table.names()), "method": "run", "all": _price(report.total["money"])}
    return Table([*table.rows, last], num_keys=table.num_keys)


def _price(money: float) -> str:
    """With cents, or where it is less than 1 with two digits."""
    return f"{money:.2f}" if money >= 1 else f"{money:.2g}"


def shared_lines(steps: Sequence[Mapping[str, Any]], is_split: bool) -> list[str]:
    """A line per memory and set of methods: the costs of steps that several methods rest on, or
    none."""
    key = itemgetter("memory", "methods")
    others = sorted((step for step in steps if len(step["methods"]) != 1), key=key)
    return [
        _shared_line(memory, methods, list(own), is_split)
        for (memory, methods), own in groupby(others, key=key)
    ]


def _shared_line(
    memory: str, methods: Sequence[str], own: Sequence[Mapping[str, Any]], is_split: bool
) -> str:
    what = f"{', '.join(dict.fromkeys(step['stage'] for step in own))} of {memory}"
    calls = counted(sum(step["calls"] for step in own), "call")
    took = f"{calls}, {counted(sum(step['tokens'] for step in own), 'token')}"
    if not methods:
        return f"No method rests on {what}: {took}."
    return f"{len(methods)} methods rest on {what}: {took}, {_DIVIDED if is_split else _IN_EACH}."
