"""The figures that a part of the benchmark measures, and the thresholds ("bars") they must meet."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

Bar = Literal["at most", "at least", "over"]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """The median of `values`; None if it cannot be measured here, for the reason in `what`.
    `ok`: True if it meets its bar; None if it has none."""

    part: str
    what: str
    figure: float | None
    bar: str | None = None
    ok: bool | None = None
    values: tuple[float, ...] = ()

    def row(self) -> dict[str, str | None]:
        """The columns of the printed table."""
        ok = None if self.ok is None else "yes" if self.ok else "no"
        values = " ".join(f"{value:.3f}" for value in self.values) if len(self.values) > 1 else None
        figure = None if self.figure is None else f"{self.figure:.3f}"
        return {
            "part": self.part,
            "what": self.what,
            "figure": figure,
            "bar": self.bar,
            "ok": ok,
            "median of": values,
        }


def figure_of(
    part: str, what: str, values: Sequence[float], bar: tuple[Bar, float] | None = None
) -> Figure:
    middle, values = median(values), tuple(values)
    if bar is None:
        return Figure(part=part, what=what, figure=middle, values=values)
    how, limit = bar
    ok = {"at most": middle <= limit, "at least": middle >= limit, "over": middle > limit}[how]
    told = f"{how} {limit:.2f}"
    return Figure(part=part, what=what, figure=middle, bar=told, ok=ok, values=values)
