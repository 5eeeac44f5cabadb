"""The table `ratings`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, Literal, get_args

from pipeline.core.rows import QuestionRow
from pipeline.core.trace_lines import Line

Rubric = Literal[
    "strict", "permissive", "generic", "temporal", "knowledge_update", "preference", "abstention"
]
Label = Literal["yes", "partially", "no"]
VALUES: Mapping[Label, float] = {"yes": 1.0, "partially": 0.5, "no": 0.0}
_RUBRICS: tuple[Rubric | None, ...] = (None, *get_args(Rubric))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating(QuestionRow):
    """The verdict of one rater on one answer by one rubric.

    `value` is that of the label: yes 1, partially 0.5, no 0. Null where no label could be read, so
    that the answer is unscored; 0 without a label where there is no answer (problem upstream).
    """

    table: ClassVar[str] = "ratings"
    key: ClassVar[tuple[str, ...]] = ("question_id", "reference_index", "rubric")
    drawn: ClassVar[bool] = True
    rater: str  # the engine and 4 hex of its identity
    rater_is_model: bool  # whether it is a language model: reports show no other's verdicts
    rubric: Rubric | None = None  # null: nothing to rate
    reference_index: int | None = None  # null: the answer was rated as a whole
    label: Label | None = None  # yes, partially or no; null: none could be read
    value: float | None = None  # of the label: 1, 0.5 or 0; null: the answer is unscored
    skipped: bool = False  # multiple choice or no reference: nothing to rate

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        """A line per rater and reference."""
        rated = sorted((row for row in rows if not row["skipped"]), key=_place)
        return [
            f"{rater}{'' if index < 0 else f' on reference {index}'}: {_verdicts(list(of))}"
            for (rater, index), of in groupby(rated, key=lambda row: _place(row)[:2])
        ]


def _place(row: Mapping[str, Any]) -> tuple[str, int, int]:
    index = -1 if row["reference_index"] is None else row["reference_index"]
    return row["rater"], index, _RUBRICS.index(row["rubric"])


def _verdicts(rows: Sequence[Mapping[str, Any]]) -> str:
    labels = ", ".join(f"{row['rubric']} {row['label'] or '-'}" for row in rows)
    problems = ", ".join(dict.fromkeys(row["problem"] for row in rows if row["problem"]))
    return f"{labels} ({problems})" if problems else labels
