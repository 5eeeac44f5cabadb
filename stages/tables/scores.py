"""The table `scores`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.rows import QuestionRow
from pipeline.core.trace_lines import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(QuestionRow):
    """One metric of one answer, 0-100; 0 with problem `upstream` where the answer failed; null
    where the metric does not apply to the question, or was not asked for (`skipped`)."""

    table: ClassVar[str] = "scores"
    key: ClassVar[tuple[str, ...]] = ("question_id", "metric")
    drawn: ClassVar[bool] = True
    metric: str  # its name in the report
    value: float | None  # 0-100; null where the metric does not apply
    skipped: bool = False  # the metric does not apply, or was not asked for

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        """All on one line."""
        values = sorted((r["metric"], r["value"]) for r in rows if r["value"] is not None)
        scores = ", ".join(f"{metric} {value:.1f}" for metric, value in values)
        return [f"scores: {scores}"] if scores else []
