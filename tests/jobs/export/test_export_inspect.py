"""`gistmill export inspect`: logs that inspect_ai reads, and that `gistmill score` reads again."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import gistmill, refused, sql, succeed
from tests.support.runs.hand_numbers import ORDER, WORKED
from tests.support.runs.hand_run import HandRun
from tests.support.runs.kinds_of_runs import make

BM25, READAGENT = "bm25(top_k=1)", "readagent_p(max_pages=2)"


def words(hand: HandRun, *more: str | Path) -> list[str]:
    return [f"warehouse={hand.warehouse}", "run=hand", *map(str, more)]


@pytest.fixture(scope="module")
def logs(hand: HandRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the logs of two methods. The run is complete, if with problems."""
    folder = tmp_path_factory.mktemp("logs")
    for method, name in ((BM25, "bm25.eval"), (READAGENT, "readagent.eval")):
        made = words(hand, f"method={method}", f"to={folder / name}")
        assert succeed("export", "inspect", *made) == f"6 rows in {folder / name}\n"
    return folder


@pytest.mark.interchange
def test_samples_are_the_questions(logs: Path) -> None:
    """Answers as worked by hand, letters of the right options, and problems in place of scores."""
    from inspect_ai.log import read_eval_log

    log = read_eval_log(str(logs / "bm25.eval"))
    assert (log.status, log.eval.solver, log.eval.task) == ("success", BM25, log.eval.dataset.name)
    samples = {sample.id: sample for sample in log.samples}
    given = dict(zip(ORDER, WORKED[BM25].answers, strict=True))
    assert {name: sample.output.completion for name, sample in samples.items()} == {
        name: answer or "" for name, answer in given.items()
    }
    assert samples["t1"].target == "C" and samples["t1"].choices[2] == "Gulls and waves"
    assert samples["m1"].target == ["The great flood in May broke it."]
    assert samples["b1"].error.message.startswith("upstream: ")
    assert samples["m1"].error is None and samples["m1"].metadata["document_id"] == "mill"
    truncated = read_eval_log(str(logs / "readagent.eval")).samples
    (m1,) = [sample for sample in truncated if sample.id == "m1"]
    assert (m1.output.stop_reason, m1.metadata["problem"]) == ("max_tokens", "truncated")


@pytest.mark.interchange
def test_means_and_usage_are_those_of_the_report(hand: HandRun, logs: Path) -> None:
    from inspect_ai.log import read_eval_log

    log = read_eval_log(str(logs / "readagent.eval"))
    means = {score.name: score.metrics["mean"].value for score in log.results.scores}
    (row,) = [line.split(",") for line in csv_lines(hand) if line.startswith(READAGENT)]
    report = dict(zip(csv_lines(hand)[0].split(","), row, strict=True))
    assert means["squad_em"] == float(report["squad_em"]) == 25
    (lr,) = [name for name in means if name.startswith("lr_1")]
    assert means[lr] == pytest.approx(float(report["lr_1"])) == pytest.approx(100 / 3)
    assert log.results.scores[0].name not in ("compression_rate", "lookups"), "quality comes first"
    total = "select sum(prompt_tokens + reply_tokens)::int as n from calls"
    (tokens,) = sql(hand.warehouse, f"{total} where method = '{READAGENT}'", "run=hand")
    assert sum(usage.total_tokens for usage in log.stats.model_usage.values()) == tokens["n"]


def csv_lines(hand: HandRun) -> list[str]:
    return succeed("export", "report", *words(hand), "format=csv").splitlines()


@pytest.mark.interchange
def test_the_viewer_opens_them(logs: Path, tmp_path: Path) -> None:
    """The viewer is a page over the headers and summaries that these functions read."""
    from inspect_ai.log import bundle_log_dir, list_eval_logs, read_eval_log_sample_summaries

    assert len(list_eval_logs(str(logs))) == 2
    summaries = read_eval_log_sample_summaries(str(logs / "bm25.eval"))
    assert sorted(summary.id for summary in summaries) == sorted(ORDER)
    bundle_log_dir(log_dir=str(logs), output_dir=str(tmp_path / "site"))
    assert (tmp_path / "site" / "index.html").is_file()
    assert len([*(tmp_path / "site" / "logs").glob("*.eval")]) == 2


@pytest.mark.interchange
@pytest.mark.parametrize("name", ["bm25", "readagent"])
def test_a_log_that_is_scored_has_the_same_scores(
    hand: HandRun, logs: Path, tmp_path: Path, name: str
) -> None:
    """What failed here has no answer there, and counts 0 in both."""
    method = {"bm25": BM25, "readagent": READAGENT}[name]
    warehouse = next(w for w in hand.copied(tmp_path) if w.startswith("warehouse="))
    log = logs / f"{name}.eval"
    done = gistmill("score", f"predictions={log}", "method=Theirs", "run=hand", warehouse)
    assert done.returncode == 3, done.stderr  # the run has more problems than are allowed
    path = warehouse.partition("=")[2]
    ours, theirs = scores(path, method), scores(path, "Theirs")
    assert ours.keys() == theirs.keys() and {name for name, _ in ours} == {*ORDER}
    differing = {key[0] for key in ours if ours[key] != theirs[key]}
    assert differing <= {"m1"}, "a truncated answer is a whole one there"
    assert ours["m2", "rouge1_stem"] == theirs["m2", "rouge1_stem"] != 0


def scores(warehouse: str, method: str) -> Mapping[tuple[str, str], float | None]:
    """By question and metric; what was read of the evidence is not known of others' answers."""
    query = f"""select question_id, metric, value from scores
        where method = '{method}' and not starts_with(metric, 'evidence')"""
    rows: list[dict[str, Any]] = sql(warehouse, query, "run=hand")
    return {(row["question_id"], row["metric"]): row["value"] for row in rows}


@pytest.mark.interchange
def test_repeats_are_epochs(tmp_path: Path) -> None:
    """Of which `score` takes one."""
    from inspect_ai.log import read_eval_log

    make(tmp_path, "repeated")
    own = [f"warehouse={tmp_path / 'warehouse'}", "run=repeated"]
    log = tmp_path / "both.eval"
    succeed("export", "inspect", *own, "method=gist_only", f"to={log}")
    read = read_eval_log(str(log))
    assert read.eval.config.epochs == 2
    found = sorted((sample.id, sample.epoch) for sample in read.samples)
    assert found == [(f"q{n}", epoch) for n in range(3) for epoch in (1, 2)]
    again = ["score", f"predictions={log}", "method=Theirs", *own]
    assert "is answered twice, first in both.eval:1:samples[0]" in refused(*again)
    one = [*own, "method=gist_only", "where=repeat = 1", f"to={log}", "--force"]
    assert succeed("export", "inspect", *one) == f"3 rows in {log}\n"
    succeed(*again)


@pytest.mark.interchange
def test_a_run_that_is_not_complete(tmp_path: Path) -> None:
    """One of its two documents is not read yet."""
    from inspect_ai.log import read_eval_log

    make(tmp_path, "incomplete")
    log = tmp_path / "some.json"
    own = [f"warehouse={tmp_path / 'warehouse'}", "run=incomplete", "method=gist_only"]
    done = gistmill("export", "inspect", *own, f"to={log}")
    assert done.stderr.startswith("INCOMPLETE: ")
    read = read_eval_log(str(log))
    assert read.status == "cancelled"
    assert len({sample.metadata["document_id"] for sample in read.samples}) == 1


@pytest.mark.slow
def test_mistakes_are_one_line(
    hand: HandRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = words(hand, f"method={BM25}")
    assert refused("export", "inspect", *one).endswith("add to=FILE.eval, or to=FILE.json")
    assert "add to=FILE.eval" in refused("export", "inspect", *one, f"to={tmp_path / 'a.txt'}")
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    file = tmp_path / "a.eval"
    assert refused("export", "inspect", *one, f"to={file}") == (
        "export inspect needs inspect_ai; pip install 'gistmill[inspect]'"
    )
    file.touch()
    assert "exists already" in refused("export", "inspect", *one, f"to={file}")
