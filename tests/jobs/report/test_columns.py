"""Columns of a table of methods (`columns=`), and names as papers print them: conf/names.yaml, a
user's file over it, and methods' arguments."""

from pathlib import Path

import pytest
import yaml

from jobs.report.columns import COST_COLUMNS, Names, known_columns, read_names, with_columns
from jobs.report.report import FALLBACK, Report, Row
from pipeline.core.errors import UsageError
from pipeline.core.settings import CONF
from pipeline.work.methods import methods_in
from pipeline.work.stage import STAGES, Column
from stages.score.metrics import METRICS, PARTS
from stages.tables.lookups import RANKING_MEASURES

PRINTED = Names(
    measures={"rougeL_stem": "ROUGE-L", "lr_1": "LR-1", "other": "LR-1"},
    methods={"bm25": "BM25", "readagent_p": "ReadAgent-P", "bm25(top_k=9)": "Ours"},
)


ALIKE = Names(methods={"bm25": "Best", "dense": "Best", "rag": "Theirs"})


@pytest.mark.parametrize(
    ("by", "shown"),
    [
        # Only the arguments that differ.
        (PRINTED, {"readagent_p(max_pages=1,order=asc)": "ReadAgent-P (max_pages=1)",
                   "readagent_p(max_pages=2,order=asc)": "ReadAgent-P (max_pages=2)"}),
        (PRINTED, {"readagent_p(max_pages=5)": "ReadAgent-P", "bm25(top_k=3)": "BM25",
                   "gist_only": "gist_only"}),
        (PRINTED, {"m(a=1,b=1,c=0)": "m (a=1, b=1)", "m(a=1,b=2,c=0)": "m (a=1, b=2)",
                   "m(a=2,b=2,c=0)": "m (a=2, b=2)"}),
        # A name with its arguments is that method's alone.
        (PRINTED, {"bm25(top_k=9)": "Ours", "bm25(top_k=3)": "BM25 (top_k=3)"}),
        # Methods that would be alike stay distinct.
        (ALIKE, {"bm25(top_k=3)": "Best (top_k=3)", "dense(top_k=4)": "Best (top_k=4)"}),
        (ALIKE, {name: name for name in ("bm25(top_k=3)", "dense(top_k=3)")}),
        (ALIKE, {"rag(top_k=3)": "Theirs (top_k=3)", "Theirs": "Theirs"}),
    ],
)  # fmt: skip
def test_printed_names_of_methods(by: Names, shown: dict[str, str]) -> None:
    assert by.of_methods([*shown]) == shown


def test_measures_of_one_name_have_their_own_beside_it() -> None:
    columns = [Column(name, name, 1) for name in ("rougeL_stem", "lr_1", "other", "unknown")]
    headings = [column.heading for column in PRINTED.of_columns(columns)]
    assert headings == ["ROUGE-L", "LR-1 (lr_1)", "LR-1 (other)", "unknown"]


def test_ours_name_only_what_there_is() -> None:
    """And every metric and method has a name there."""
    ours = yaml.safe_load((CONF / "names.yaml").read_text(encoding="utf-8"))
    assert {*ours["methods"]} == {*methods_in([CONF / "method"])}
    parts = {part for parts in PARTS.values() for part in parts}
    assert {*METRICS, *PARTS, *RANKING_MEASURES} - parts <= {*ours["measures"]}
    assert {*ours["corpora"]} <= {file.stem for file in (CONF / "corpus").glob("*.yaml")}


def test_a_user_s_file_goes_before_ours(tmp_path: Path) -> None:
    file = tmp_path / "names.yaml"
    file.write_text("methods:\n  bm25: Okapi\n  no_such_method: fine\n")
    names = read_names(str(file))
    assert names is not None
    file.write_text("methods:\nmemories: {}\n")
    assert read_names(str(file)) == read_names("paper"), "a section without names"
    printed = names.of_methods(["bm25(top_k=3)", "rag(top_k=3)"])
    assert printed == {"bm25(top_k=3)": "Okapi", "rag(top_k=3)": "RAG"}
    assert names.measures["rougeL_stem"] == "ROUGE-L"
    assert read_names("canonical") is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("methods: [a]", "methods: Input should be a valid dictionary; names= is paper, canonical "
                         "or a YAML file with names under measures, methods, memories, corpora"),
        ("method: {bm25: Okapi}", "method: Extra inputs are not permitted; names= is paper"),
        ("methods: {bm25: 3}", "methods.bm25: Input should be a valid string"),
        ("text", "the file: Input should be a valid dictionary"),
        ("methods: {bm25: 'a", "not YAML: while scanning a quoted scalar"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_is_one_line(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "names.yaml"
    file.write_text(content)
    with pytest.raises(UsageError) as refused:
        read_names(str(file))
    assert str(refused.value).startswith(f"names={file}: {says}")
    assert "\n" not in str(refused.value)
    for path in (tmp_path / "none.yaml", tmp_path, "papr"):
        with pytest.raises(UsageError, match=rf"^names={path}: [^\n]+$|; names= is paper"):
            read_names(str(path))


LR = Column("lr_1", "LR-1", 30)
CR = Column("compression_rate", "CR", 10)
RECALL = Column("evidence_recall", "recall", 60)
COUNTED = {"n": 6, "answered": 5, "calls": 7, "tokens": 70, "judge_tokens": 3}
ROW = Row("m", None, {}, {**COUNTED})
REPORT = Report("night", {}, (LR, CR, RECALL, FALLBACK), ("lr_1",), (ROW,), {}, (), (), {})


def chosen(columns: str | None, names: Names | None = None) -> list[str]:
    return [c.measure for c in with_columns(REPORT, columns, names, COST_COLUMNS).columns]


def test_columns_are_named_by_measure_or_heading_in_any_order() -> None:
    of_report = ["lr_1", "compression_rate", "evidence_recall", "fallback", "calls", "tokens"]
    assert chosen(None) == of_report, "the cost, too"
    assert chosen("recall,lr_1,tokens") == ["evidence_recall", "lr_1", "tokens"]
    assert chosen(" CR , LR-1,compression_rate") == ["compression_rate", "lr_1"]
    assert chosen("judge tokens,n,cr") == ["judge_tokens", "compression_rate"]
    printed = Names(measures={"evidence_recall": "R", "lr_1": "CR"})
    assert chosen("R,CR", printed) == ["evidence_recall", "compression_rate"], "a heading is first"


def test_every_column_of_every_stage_is_defined() -> None:
    """`cite` prints the definitions."""
    metrics = (*METRICS, *PARTS, *RANKING_MEASURES)
    columns = [
        column
        for stage in STAGES.values()
        for of_kind in stage.model_construct(metrics=metrics).columns().values()
        for column in of_kind
    ]
    assert {"valid_actions", "queries", "lr_1", "accuracy"} <= {c.measure for c in columns}
    assert [c.measure for c in (*columns, *known_columns(REPORT)[3:-1]) if not c.about] == []
