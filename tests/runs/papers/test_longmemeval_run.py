"""LongMemEval's design on its 16 real questions, with the extractive engine."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from jobs.graph.resolved_run import read_run
from tests.support.command import DATA, refused, sql, succeed

pytestmark = pytest.mark.slow

HISTORIES = DATA / "longmemeval" / "longmemeval_oracle_16.json"
BM25 = "retriever=bm25"
METHODS = (
    f"methods=longmemeval({BM25},top_k=3,expansion=facts|none),"
    f"longmemeval({BM25},top_k=3,expansion=events,join=separate,time_aware=true),"
    f"longmemeval_notes({BM25},top_k=2),full_history(reading=direct),oracle_history"
)
WORDS = ("corpus=longmemeval", f"corpus.path={HISTORIES}", "rater=none", "run=chats", METHODS)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chats")
    succeed("run", *WORDS, f"warehouse={folder}", "max_problem_rate=1")
    return folder


def raw() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(HISTORIES.read_text())
    return found


def test_values_are_the_sessions_and_rounds_of_the_file(warehouse: Path) -> None:
    sessions = sum(1 for one in raw() for turns in one["haystack_sessions"] if turns)
    rounds = sum(
        max(1, sum(turn["role"] == "user" for turn in turns))
        for one in raw() for turns in one["haystack_sessions"] if turns
    )  # fmt: skip
    found = sql(warehouse, "select memory, count(*) as n from pages group by all order by all")
    assert [tuple(row.values()) for row in found] == [
        ("paginate(kind=chat,value=round)", rounds),
        ("paginate(kind=chat,value=session)", sessions),
    ]


def test_keys_are_made_once_for_all_methods(warehouse: Path) -> None:
    found = sql(warehouse, "select prompt, count(*) as n from calls where stage = 'expand' "
                           "group by all order by all")  # fmt: skip
    (pages,) = sql(warehouse, "select count(*) as n from pages where memory like '%round%'")
    assert [(row["prompt"], row["n"]) for row in found] == [
        ("extract_events", pages["n"]), ("extract_facts", pages["n"]),
    ]  # fmt: skip
    kinds = sql(warehouse, "select distinct kind from keys order by kind")
    assert [row["kind"] for row in kinds] == ["event", "merged", "value"]
    (steps,) = sql(
        warehouse, "select count(distinct step_id) as n from expansions where kind <> 'none'"
    )
    assert steps["n"] == 2, "facts, which two methods share, and events"


def test_every_question_is_answered(warehouse: Path) -> None:
    found = sql(
        warehouse,
        """select split_part(method, '(', 1) as method, count(*) as n,
          count(*) filter (problem is null) as ok, max(num_lookups) as pages
        from answers group by all order by all""",
    )
    assert {row["method"]: (row["n"], row["ok"]) for row in found} == {
        "longmemeval": (48, 48), "longmemeval_notes": (16, 16), "full_history": (16, 16),
        "oracle_history": (16, 16),
    }  # fmt: skip
    most = {row["method"]: row["pages"] for row in found}
    assert (most["longmemeval"], most["longmemeval_notes"]) == (3, 2)
    notes = sql(warehouse, "select count(*) as n, count(distinct question_id) as asked from notes")
    assert notes[0]["asked"] == 16 < notes[0]["n"] <= 32


def test_a_trace_shows_keys_queries_and_notes(warehouse: Path) -> None:
    question_id = raw()[0]["question_id"]
    shown = succeed("trace", question_id, "run=chats", f"warehouse={warehouse}")
    for line in (r"KEYS \(\d+\)", r"query 0 \(question\): \S+", r"note on page \d+: \S+",
                 r"MEMORY paginate\(kind=chat,value=round\)"):  # fmt: skip
        assert re.search(rf"^ *{line}", shown, re.MULTILINE), line


def test_the_experiments_have_the_design_and_its_ablations() -> None:
    path = f"corpus.path={HISTORIES}"
    chosen = [m.name for m in read_run(["experiment=longmemeval_s", path]).methods]
    best = "value=round,expansion=facts,join=merge,merge=score,retriever=dense,top_k=10"
    best = f"{best},time_aware=false,reading=con,history=json,shown=value"
    assert chosen[0] == f"longmemeval({best})"
    # In each of the others one setting differs, so that it shows what that does.
    settings = [set(name[12:-1].split(",")) for name in chosen if name.startswith("longmemeval(")]
    assert len(settings) == 13 and all(len(own - settings[0]) == 1 for own in settings[1:])
    assert any(name.startswith("full_history") for name in chosen)
    assert "embedder.model" in refused("run", "experiment=longmemeval_s", path,
                                       "embedder.model=null")  # fmt: skip
    reading = [m.name for m in read_run(["experiment=longmemeval_fig6", path]).methods]
    assert len(reading) == 4


@pytest.mark.slow
def test_facts_and_time_ranges_may_be_of_other_models(tmp_path: Path) -> None:
    words = []
    for role, said in (("extractor", '["The user rows."]'), ("query_expander", "N/A")):
        script = tmp_path / f"{role}.yaml"
        script.write_text(json.dumps({"replies": [{"reply": said}]}))
        words += [f"{role}=scripted", f"{role}.script={script}"]
    method = f"methods=longmemeval({BM25},value=session,time_aware=true)"
    words += ["limit=1", "rater=none", f"warehouse={tmp_path / 'w'}", "max_problem_rate=1"]
    succeed("run", "corpus=longmemeval", f"corpus.path={HISTORIES}", "run=r", method, *words)
    engines = sql(tmp_path / "w", "select distinct stage, prompt, engine from calls order by all")
    assert [tuple(row.values()) for row in engines] == [
        ("answer", "answer_chats_con", "extractive"),
        ("expand", "extract_events", "scripted:extractor"),
        ("expand", "extract_facts", "scripted:extractor"),
        ("queries", "time_range", "scripted:query_expander"),
    ]  # fmt: skip
    texts = sql(tmp_path / "w", "select text from keys")
    assert all(row["text"].startswith("The user rows. ") for row in texts)
