"""`columns=`: which columns a table of methods has, and in which order."""

from jobs.report.columns import COST_COLUMNS, Names, known_columns, with_columns
from jobs.report.report import FALLBACK, Report, Row
from pipeline.work.stage import STAGES, Column
from stages.score.metrics import METRICS, PARTS
from stages.tables.lookups import RANKING_MEASURES

LR = Column("lr_1", "LR-1", 30)
CR = Column("compression_rate", "CR", 10)
RECALL = Column("evidence_recall", "recall", 60)
COUNTED = {"n": 6, "answered": 5, "calls": 7, "tokens": 70, "judge_tokens": 3}
REPORT = Report(
    "night", {}, (LR, CR, RECALL, FALLBACK), ("lr_1",), (Row("m", None, {}, {**COUNTED}),), {},
    (), (), {},
)  # fmt: skip


def chosen(columns: str | None, names: Names | None = None) -> list[str]:
    return [c.measure for c in with_columns(REPORT, columns, names, COST_COLUMNS).columns]


def test_without_it_the_report_s_own_and_the_cost() -> None:
    assert chosen(None) == [
        "lr_1", "compression_rate", "evidence_recall", "fallback", "calls", "tokens",
    ]  # fmt: skip


def test_columns_are_named_by_measure_or_heading_in_any_order() -> None:
    assert chosen("recall,lr_1,tokens") == ["evidence_recall", "lr_1", "tokens"]
    assert chosen(" CR , LR-1,compression_rate") == ["compression_rate", "lr_1"]
    assert chosen("judge tokens,n,cr") == ["judge_tokens", "compression_rate"]
    printed = Names(measures={"evidence_recall": "R", "lr_1": "CR"})
    assert chosen("R,CR", printed) == ["evidence_recall", "compression_rate"], (
        "a heading goes first"
    )


def test_every_column_of_every_stage_is_defined() -> None:
    """`cite` prints the definitions."""
    metrics = (*METRICS, *PARTS, *RANKING_MEASURES)
    columns = [
        column
        for stage in STAGES.values()
        for of_kind in stage.model_construct(metrics=metrics).columns().values()
        for column in of_kind
    ]
    assert {"valid_actions", "queries", "lr_1", "accuracy"} <= {one.measure for one in columns}
    assert [one.measure for one in (*columns, *known_columns(REPORT)[3:-1]) if not one.about] == []
