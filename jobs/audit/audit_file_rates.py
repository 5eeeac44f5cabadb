"""Count the mistakes of a judge whose verdicts on known answers a file has."""

from collections.abc import Mapping, Sequence
from typing import Any

from jobs.output.cells import Part, Table, counted
from jobs.statistics.corrected_means import exact_interval
from pipeline.core.errors import UsageError
from stages.corpora.audits.audit_file import FileAnswer, read_audit_file

_NOTE = (
    "Mistakes in % [95% interval over answers]: wrong answers accepted, right ones rejected; of "
    "all verdicts, and of answers by the majority of their verdicts (half of them is none)."
)


def file_rates(path: str) -> list[dict[str, Any]]:
    """A row for each kind of answers that have verdicts: `kind`, `is_right`, the numbers of answers
    (`n`), of `verdicts` and of accepted ones, and both rates of mistakes, 0-100, with intervals.

    Raises UsageError for an unusable file, or one without verdicts.
    """
    kinds: dict[str, list[FileAnswer]] = {}
    for one in read_audit_file(path):
        if one.verdicts:
            kinds.setdefault(one.kind, []).append(one)
    if not kinds:
        raise UsageError(
            f"audit={path}: has no verdicts to count (llm_judgments); add run=NAME, whose raters "
            "are to judge its answers"
        )
    return [_rates(kind, answers) for kind, answers in kinds.items()]


def _rates(kind: str, answers: Sequence[FileAnswer]) -> dict[str, Any]:
    is_right, n = answers[0].worth == "right", len(answers)
    verdicts = [verdict for one in answers for verdict in one.verdicts]
    majority = sum(2 * sum(one.verdicts) > len(one.verdicts) for one in answers)
    shares = {"of_verdicts": sum(verdicts) / len(verdicts), "by_majority": majority / n}
    mistakes = {key: 1 - share if is_right else share for key, share in shares.items()}
    return {
        "kind": kind,
        "is_right": is_right,
        "n": n,
        "verdicts": len(verdicts),
        "accepted_verdicts": sum(verdicts),
        "accepted_by_majority": majority,
        **{key: _rate(share, n) for key, share in mistakes.items()},
    }


def _rate(share: float, n: int) -> dict[str, float]:
    low, high = exact_interval(share, n)
    return {"mistakes": 100 * share, "low": 100 * low, "high": 100 * high}


def file_parts(rates: Sequence[Mapping[str, Any]]) -> list[Part]:
    """The output of `gistmill rate audit audit=FILE`."""
    rows = [
        {
            "kind": row["kind"],
            "worth": "right" if row["is_right"] else "wrong",
            "mistake": f"false {'rejection' if row['is_right'] else 'acceptance'}",
            "n": row["n"],
            "verdicts": row["verdicts"],
            "of verdicts": _shown(row["of_verdicts"]),
            "by majority": _shown(row["by_majority"]),
        }
        for row in rates
    ]
    total = counted(sum(row["verdicts"] for row in rates), "verdict")
    return [f"{total} in the file; no model was asked.",
            Table(rows, left=("worth", "mistake")), _NOTE]  # fmt: skip


def _shown(rate: Mapping[str, float]) -> str:
    return f"{rate['mistakes']:.1f} [{rate['low']:.1f}, {rate['high']:.1f}]"
