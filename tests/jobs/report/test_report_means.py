"""What a report's means are over, and the sizes of `--corpus`: small runs, worked by hand."""

import json
from pathlib import Path
from statistics import fmean, geometric_mean, quantiles
from typing import Any

import pytest
import yaml
from rouge_score.rouge_scorer import RougeScorer

from stages.score import score
from tests.support.command import WHOLE_QMSUM, refused, sql_values, succeed
from tests.support.reading import family, written_family
from tests.support.runs.finished_run import FinishedRun
from tests.support.runs.hand_run import HandRun
from tests.support.runs.small_run import RULES
from tests.support.texts.loading import written

pytestmark = pytest.mark.slow


def report(folder: Path, *words: str) -> tuple[dict[str, dict[str, Any]], list[list[str]]]:
    """The means by method or, with by=, group; and the cells of the table that is printed."""
    warehouse = f"warehouse={folder / 'warehouse'}"
    rows = json.loads(succeed("report", warehouse, *words, "--json"))["rows"]
    lines = [line for line in succeed("report", warehouse, *words).splitlines() if line[:1] == "|"]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row["by"] or row["method"]: row["means"] for row in rows}, cells[: 2 + len(rows)]


def column(table: list[list[str]], heading: str) -> list[str]:
    return [row[table[0].index(heading)] for row in table[2:]]


def test_each_row_of_longbench_is_scored_as_its_task_is(tmp_path: Path) -> None:
    """And by no metric of LongBench where it has none for the task."""
    # Of each task the reference and the answer.
    tasks = {"hotpotqa": ("Ann", "It was Ann"), "trec": ("Food", "Food\nType: Date"),
             "other": ("Nothing", "Nothing")}  # fmt: skip
    rows = [
        {"_id": task, "input": f"{task}?", "answers": [key], "dataset": task, "language": "en",
         "context": f"The mill stood by the river. {task}", "all_classes": ["Food", "Date"]}
        for task, (key, _) in tasks.items()
    ]  # fmt: skip
    written(tmp_path / "data.jsonl", *rows)
    rules = [{"match": rf"{task}\?", "reply": said} for task, (_, said) in tasks.items()]
    (tmp_path / "script.yaml").write_text(yaml.safe_dump({"replies": rules}))
    succeed(
        "run", "corpus=longbench", f"corpus.path={tmp_path}", "rater=none", "methods=full_text",
        "memory=uniform", "engine=scripted", f"engine.script={tmp_path / 'script.yaml'}",
        f"warehouse={tmp_path / 'warehouse'}",
    )  # fmt: skip
    means, table = report(tmp_path, "by=question_type")
    scores = {task: of["longbench"]["mean"] for task, of in means.items() if "longbench" in of}
    assert scores == {"hotpotqa": pytest.approx(50), "trec": pytest.approx(100)}, "by hand"
    shown = dict(zip(column(table, "by"), column(table, "longbench"), strict=True))
    assert shown == {"hotpotqa": "50.0", "trec": "100.0", "other": "-"}
    _, table = report(tmp_path)
    assert (column(table, "n"), column(table, "longbench")) == (["3"], ["75.0 (n=2)"])


def test_an_answer_that_failed_counts_no_0_beside_answers_without_a_verdict(tmp_path: Path) -> None:
    """q1 and q2 are answered, the answer to q3 is cut off, so a problem."""
    unreadable = [{"prompt": name, "reply": "Hm."} for name in ("rate_strict", "rate_permissive")]
    cut_off = {"prompt": "answer", "match": "number 3 ", "reply": "as", "finish_reason": "length"}
    FinishedRun(tmp_path, [*unreadable, cut_off, *RULES])
    means, table = report(tmp_path)
    (of_method,) = means.values()
    assert "lr_2" not in of_method
    assert column(table, "LR-2") == ["- (2 unscored)"]


@pytest.mark.whole
def test_scrolls_rouge_is_the_geometric_mean_of_means(tmp_path: Path) -> None:
    """QMSum val, answered by one sentence: by rouge-score itself. The mean of every question's
    geometric mean would be 11.41."""
    said = family("qmsum").settings["constant_answer"]
    settings = {"constant_answer": said, "metrics": ["scrolls_rouge"]}
    mine = written_family(tmp_path, settings=settings)
    succeed(
        "run", "corpus=qmsum", f"corpus.path={WHOLE_QMSUM}", f"family={mine}", "methods=constant",
        "memory=uniform", "rater=none", f"warehouse={tmp_path / 'warehouse'}", "run=r",
    )  # fmt: skip
    means, table = report(tmp_path)
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"])
    rows = sql_values(tmp_path / "warehouse", """select q."references"[1], a.answer
        from answers a join questions q using (question_id)""")  # fmt: skip
    scores = [scorer.score(*row) for row in rows]
    parts = [100 * fmean(s[kind].fmeasure for s in scores) for kind in scorer.rouge_types]
    mean = means["constant"]["scrolls_rouge"]
    assert (mean["n"], len(rows)) == (272, 272)
    assert mean["mean"] == mean["answered_mean"] == pytest.approx(geometric_mean(parts))
    assert mean["mean"] == pytest.approx(12.23, abs=0.005)
    assert mean["low"] < mean["mean"] < mean["high"]
    assert column(table, "scrolls_rouge") == [f"{mean['mean']:.1f}"]
    assert "scrolls_rouge1" not in table[0]
    documented = (score.__doc__ or "").split("`")[-2]
    assert documented.startswith("select")
    found = sql_values(tmp_path / "warehouse", documented)
    assert found == [("constant", pytest.approx(mean["mean"]))]


# Counted in hand_run.py, by document: pages of 20, 30 and 10 words, of 24 and 8, and five of 30;
# gists of 4, 5 and 3, of 4 and 4, and five of 2. The blank document is left out.
SIZES: dict[str, list[float]] = {
    "words per document": [60, 32, 150],
    "pages per document": [3, 2, 5],
    "words per page": [20, 30, 10, 24, 8, *[30] * 5],
    "words per gist memory": [12, 8, 10],
    "words per gist": [4, 5, 3, 4, 4, *[2] * 5],
    "compression rate of the gists, %": [80, 75, 100 * (1 - 10 / 150)],
}


def test_sizes_of_a_corpus_and_its_memories(hand: HandRun) -> None:
    corpus = ("report", f"warehouse={hand.warehouse}", "--corpus")
    rows = {row["measure"]: row for row in json.loads(succeed(*corpus, "--json"))}
    numbers = ("n", "mean", "min", "q1", "median", "q3", "max")
    for measure, values in SIZES.items():
        shown = [rows[measure][name] for name in numbers]
        quarters = quantiles(values, n=4, method="inclusive")
        summary = [len(values), fmean(values), min(values), *quarters, max(values)]
        assert shown == pytest.approx(summary), measure
    for word in ("by=question_type", "where=true", "rater=x"):
        assert refused(*corpus, word).startswith(f"{word.partition('=')[0]}: ")
    assert refused(*corpus[:2], "plugins=x").startswith("plugins: ")
