"""The papers' figures beside those of a run, and that the files name what our experiments make."""

import csv
import json
from pathlib import Path

import pytest

from jobs.graph.resolved_run import read_run
from pipeline.core.settings import CONF
from stages.score.metrics import METRICS
from stages.tables.lookups import RANKING_MEASURES
from tests.support.command import refused, succeed
from tests.support.texts.paper_corpora import corpus_path

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
    assert "add by=" not in refused("report", "--published", "--corpus", warehouse)
    line = refused("report", "--published", warehouse, "by=question_type")
    assert "--published: the paper's figures are of all questions; leave by= out" in line
