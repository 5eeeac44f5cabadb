"""A report's columns, names, headline and parts; and the figures of papers beside a run's."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from jobs.graph.resolved_run import read_run
from jobs.output.terminal import fitted_to_terminal
from jobs.report.columns import COST_COLUMNS, Names, known_columns, read_names, with_columns
from jobs.report.render import headline_parts
from jobs.report.report import FALLBACK, Report, Row
from jobs.statistics.statistics import Mean
from pipeline.core.errors import UsageError
from pipeline.core.settings import CONF
from pipeline.work.methods import methods_in
from pipeline.work.stage import STAGES, Column
from stages.score.metrics import METRICS, PARTS
from stages.tables.lookups import RANKING_MEASURES
from tests.jobs.output.test_tables import report
from tests.support.command import in_terminal, refused, succeed
from tests.support.runs.finished_run import FinishedRun
from tests.support.texts.paper_corpora import corpus_path

PRINTED = Names(
    measures={"rougeL_stem": "ROUGE-L", "lr_1": "LR-1", "other": "LR-1"},
    methods={"bm25": "BM25", "readagent_p": "ReadAgent-P", "bm25(top_k=9)": "Ours"},
)
ALIKE = Names(methods={"bm25": "Best", "dense": "Best", "rag": "Theirs"})


@pytest.mark.parametrize(
    ("by", "shown"),
    [
        # Only the arguments that differ.
        (PRINTED, {"readagent_p(max_pages=5)": "ReadAgent-P", "bm25(top_k=3)": "BM25",
                   "gist_only": "gist_only"}),
        (PRINTED, {"m(a=1,b=1,c=0)": "m (a=1, b=1)", "m(a=1,b=2,c=0)": "m (a=1, b=2)",
                   "m(a=2,b=2,c=0)": "m (a=2, b=2)"}),
        # A name with its arguments is that method's alone.
        (PRINTED, {"bm25(top_k=9)": "Ours", "bm25(top_k=3)": "BM25 (top_k=3)"}),
        # Methods that would be alike stay distinct.
        (ALIKE, {name: name for name in ("bm25(top_k=3)", "dense(top_k=4)", "rag(top_k=3)",
                                         "Theirs")}),
    ],
)  # fmt: skip
def test_printed_names_of_methods(by: Names, shown: dict[str, str]) -> None:
    assert by.of_methods([*shown]) == shown


def test_measures_of_one_name_have_their_own_beside_it() -> None:
    columns = [Column(name, name, 1) for name in ("rougeL_stem", "lr_1", "other", "unknown")]
    headings = [column.heading for column in PRINTED.of_columns(columns)]
    assert headings == ["ROUGE-L", "LR-1 (lr_1)", "LR-1 (other)", "unknown"]


def test_every_metric_and_method_has_a_printed_name() -> None:
    ours = read_names("paper")
    assert ours is not None and {*ours.methods} == {*methods_in([CONF / "method"])}
    parts = {part for parts in PARTS.values() for part in parts}
    assert {*METRICS, *PARTS, *RANKING_MEASURES} - parts <= {*ours.measures}


def test_a_user_s_file_goes_before_ours_and_a_wrong_one_is_a_line(tmp_path: Path) -> None:
    file = tmp_path / "names.yaml"
    file.write_text("methods:\n  bm25: Okapi\n  no_such_method: fine\n")
    names = read_names(str(file))
    assert names is not None
    printed = names.of_methods(["bm25(top_k=3)", "rag(top_k=3)"])
    assert printed == {"bm25(top_k=3)": "Okapi", "rag(top_k=3)": "RAG"}
    assert names.measures["rougeL_stem"] == "ROUGE-L"
    assert read_names("canonical") is None
    for content, says in {
        "method: {bm25: Okapi}": "method: ",
        "methods: {bm25: 3}": "methods.bm25: ",
        "methods: {bm25: 'a": "not YAML: ",
    }.items():
        file.write_text(content)
        with pytest.raises(UsageError, match=rf"^names={file}: {says}[^\n]+$"):
            read_names(str(file))
    with pytest.raises(UsageError, match=r"^names=papr: [^\n]+$"):
        read_names("papr")


LR = Column("lr_1", "LR-1", 30)
CR = Column("compression_rate", "CR", 10)
RECALL = Column("evidence_recall", "recall", 60)
ROW = Row("m", None, {}, {"n": 6, "answered": 5, "calls": 7, "tokens": 70, "judge_tokens": 3})
REPORT = Report("night", {}, (LR, CR, RECALL, FALLBACK), ("lr_1",), (ROW,), {}, (), (), {})


def chosen(columns: str | None) -> list[str]:
    return [c.measure for c in with_columns(REPORT, columns, COST_COLUMNS).columns]


def test_columns_are_named_by_measure_or_heading_in_any_order() -> None:
    of_report = ["lr_1", "compression_rate", "evidence_recall", "fallback", "calls", "tokens"]
    assert chosen(None) == of_report, "the cost, too"
    assert chosen("recall,lr_1,tokens") == ["evidence_recall", "lr_1", "tokens"]
    assert chosen(" CR , LR-1,compression_rate") == ["compression_rate", "lr_1"]
    assert chosen("judge tokens,n,cr") == ["judge_tokens", "compression_rate"]


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


def test_a_screen_has_scores_intervals_and_how_much_was_answered() -> None:
    first, *others = report().rows[:10]
    means = {**first.means, "rouge1_stem": Mean(20.0, 272, 27.2, 200, 18.4, 21.6)}
    first = replace(first, counts={**first.counts, "answered": 200}, means=means,
                    best=("rouge1_stem",))  # fmt: skip
    made = replace(report(), main=("rouge1_stem",), rows=(first, *others))
    text = fitted_to_terminal(headline_parts(made), 80)
    assert max(map(cell_len, text.splitlines())) <= 80
    head, _, *rows = text[text.index("method ") :].splitlines()
    assert head.split() == ["method", "n", "rouge1_stem", "rouge2_stem"]
    assert " *20.0 [18.4, 21.6] (200 answered) " in rows[0] and rows[1].split()[-1] == "4.0"
    assert "[..]: 95% interval over documents." in text


@pytest.mark.slow
def test_parts_have_names(night: FinishedRun) -> None:
    folder = f"warehouse={night.warehouse}"
    texts = [succeed("report", folder, f"only={name}") for name in ("scores", "reading", "cost")]
    scores, reading, cost = (
        {cell.strip() for line in text.splitlines() if line.startswith("| method")
         for cell in line.split("|")} for text in texts
    )  # fmt: skip
    assert "squad_em" in scores and "squad_em" not in reading
    assert "CR" in reading and "CR" not in scores
    assert "tokens" in cost and not {"CR", "squad_em"} & cost
    assert "| memory" in texts[1] and "| stage" in texts[2]
    for words in (["only=money"], ["only=cost", "columns=n,CR"]):
        assert refused("report", folder, *words).startswith(f"{words[0]}: ")
    assert refused("report", folder, "--corpus", "only=cost").startswith("only: ")


@pytest.mark.slow
def test_a_terminal_gets_the_headline_and_all_of_it_if_asked(night: FinishedRun) -> None:
    """It fits; a pipe gets Markdown."""
    where = f"warehouse={night.warehouse}"
    shown = in_terminal(80, "report", where)
    assert len(shown.splitlines()) <= 24 and "More: gistmill report --all" in shown
    for verb, text in (("report", shown), ("ls", in_terminal(80, "ls", where))):
        assert "──" in text and "|--" not in text and "|--" in succeed(verb, where)
        assert max(map(cell_len, text.splitlines())) <= 80
    whole = in_terminal(80, "report", where, "--all")
    assert "prompt" in whole and len(whole) > 2 * len(shown)
    chosen = in_terminal(80, "report", where, "columns=tokens", "names=paper")
    assert re.search(r"^ReadAgent-P.* 3 ", chosen, re.M) and "readagent_p" not in chosen
    assert "rouge" not in chosen and "unscored" not in chosen, "no second table of costs"
    as_json = json.loads(in_terminal(80, "report", where, "--json"))
    assert as_json == json.loads(succeed("report", where, "--json"))


FILES = {file.stem: file for file in sorted((CONF / "published").glob("*.csv"))}
MEASURES = {
    *METRICS, *RANKING_MEASURES, "compression_rate", "lookups", "length", "accuracy", "lr_1",
    "lr_2", "valid_actions", "stray", "recovery", "longbench",
}  # fmt: skip
# Read off the papers' pages by eye, not by the script that wrote the files.
READ = {
    ("readagent_table1", "readagent_p(max_pages=5)", "accuracy"): 86.63,
    ("readagent_table1", "bm25(top_k=4)", "compression_rate"): 61.90,
    ("readagent_table2_gutenberg", "gist_only", "lr_1"): 55.31,
    ("readagent_table2_movie", "readagent_s(max_pages=3)", "rouge1_stem"): 21.0,
    ("readagent_table3", "truncated(keep=last,num_words=6000)", "rougeL_stem"): 14.13,
    ("readagent_table3", "readagent_s(max_pages=6)", "lookups"): 3.55,
    ("readagent_table11", "dense(over=pages,top_k=6)", "lr_2"): 92.65,
    ("memwalker_table2", "truncated_to_context(keep=last)", "accuracy"): 70.1,
    ("memorag_table7_infinitebench", "rq_rag(top_k=3,retriever=dense)", "longbench_f1"): 12.7,
    ("memorag_table6", "rag(retriever=dense,top_k=3)", "longbench_f1"): 42.0,  # legal
    ("longmemeval_fig3", "full_history(reading=con,history=json)", "accuracy"): 64.0,
}


def rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(FILES[name].read_text(encoding="utf-8").splitlines()))


@pytest.mark.parametrize("name", FILES)
def test_every_figure_is_of_a_method_that_the_experiment_has(name: str) -> None:
    methods = {method.name for method in read_run([f"experiment={name}", "corpus.path=."]).methods}
    figures = rows(name)
    assert {row["method"] for row in figures} <= methods
    assert {row["measure"] for row in figures} <= MEASURES
    assert len({(r["method"], r["split"], r["by"], r["measure"]) for r in figures}) == len(figures)
    assert all(float(row["value"]) >= 0 and row["paper"] for row in figures)


def test_figures_as_they_are_printed() -> None:
    for (name, method, measure), value in READ.items():
        first = next(r for r in rows(name) if (r["method"], r["measure"]) == (method, measure))
        assert float(first["value"]) == value, (name, method, measure)


def test_ours_and_theirs_stand_side_by_side(tmp_path: Path) -> None:
    path, warehouse = corpus_path("quality", tmp_path), f"warehouse={tmp_path / 'w'}"
    succeed("run", "experiment=readagent_table5", f"corpus.path={path}", "rater=none", "run=r",
            "cluster=inline", warehouse)  # fmt: skip
    report = json.loads(succeed("report", "--json", warehouse))
    ours = {row["method"]: row["means"]["accuracy"]["mean"] for row in report["rows"]}
    assert json.loads(succeed("report", "--published", "--json", warehouse)) == [
        {"method": f"readagent_p(max_pages=5)[memory={memory}]", "paper": said,
         "accuracy": ours[f"readagent_p(max_pages=5)[memory={memory}]"], "accuracy (paper)": value}
        for memory, said, value in (("model", "LLM", 86.63), ("uniform", "Uniform Length", 85.71))
    ]  # fmt: skip
    printed = succeed("report", "--published", warehouse)
    assert "| accuracy (paper) |" in printed and " 85.7 |" in printed
    line = refused("report", "--published", warehouse, "by=question_type")
    assert "the paper's figures are of the splits all and the groups all; see " in line
