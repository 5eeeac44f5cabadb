"""LongMemEval's design on its 16 real questions, with the extractive engine."""

import json
import re
from pathlib import Path

import pytest

from jobs.graph.resolved_run import read_run
from tests.support.command import DATA, sql_values, succeed

pytestmark = pytest.mark.slow

HISTORIES = DATA / "longmemeval" / "longmemeval_oracle_16.json"
BM25 = "retriever=bm25"
METHODS = (
    f"methods=longmemeval({BM25},top_k=3,expansion=facts|none),"
    f"longmemeval({BM25},top_k=3,expansion=events,join=separate,time_aware=true),"
    f"longmemeval_notes({BM25},top_k=2),full_history(reading=direct),oracle_history"
)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chats")
    corpus = ("corpus=longmemeval", f"corpus.path={HISTORIES}", "max_problem_rate=1")
    succeed("run", *corpus, "rater=none", "run=chats", METHODS, f"warehouse={folder}")
    return folder


def test_values_are_sessions_and_rounds_whose_keys_are_made_once(warehouse: Path) -> None:
    histories = json.loads(HISTORIES.read_text())
    sessions = [turns for row in histories for turns in row["haystack_sessions"] if turns]
    rounds = sum(max(1, sum(turn["role"] == "user" for turn in turns)) for turns in sessions)
    pages = sql_values(warehouse, "select memory, count(*) from pages group by all order by all")
    assert pages == [
        ("paginate(kind=chat,value=round)", rounds),
        ("paginate(kind=chat,value=session)", len(sessions)),
    ]
    query = "select prompt, count(*) from calls where stage = 'expand' group by all order by all"
    assert sql_values(warehouse, query) == [("extract_events", rounds), ("extract_facts", rounds)]
    kinds = sql_values(warehouse, "select distinct kind from keys order by kind")
    assert kinds == [("event",), ("merged",), ("value",)]
    query = "select count(distinct step_id) from expansions where kind <> 'none'"
    assert sql_values(warehouse, query) == [(2,)], "facts, which two methods share, and events"


def test_every_question_is_answered(warehouse: Path) -> None:
    counts = sql_values(
        warehouse,
        """select split_part(method, '(', 1) as method, count(*),
          count(*) filter (problem is null), max(num_lookups) filter (method like 'longmem%')
        from answers group by all order by all""",
    )
    assert counts == [
        ("full_history", 16, 16, None), ("longmemeval", 48, 48, 3),
        ("longmemeval_notes", 16, 16, 2), ("oracle_history", 16, 16, None),
    ]  # fmt: skip
    query = "select count(*), count(distinct question_id) from notes"
    ((notes, asked),) = sql_values(warehouse, query)
    assert asked == 16 < notes <= 32


def test_a_trace_shows_keys_queries_and_notes(warehouse: Path) -> None:
    question = json.loads(HISTORIES.read_text())[0]["question_id"]
    shown = succeed("trace", question, "run=chats", f"warehouse={warehouse}")
    for line in (r"KEYS \(\d+ rows\)", r"query_index 0, kind question, text \S+",
                 r"page_index \d+, note \S+",
                 r"MEMORY paginate\(kind=chat,value=round\)"):  # fmt: skip
        assert re.search(rf"^ *{line}", shown, re.MULTILINE), line


def test_the_experiments_have_the_design_and_its_ablations() -> None:
    path = f"corpus.path={HISTORIES}"
    chosen = [m.name for m in read_run(["experiment=longmemeval_s", path]).methods]
    assert chosen[0] == (
        "longmemeval(value=round,expansion=facts,join=merge,merge=score,retriever=dense,top_k=10,"
        "time_aware=false,reading=con,history=json,shown=value)"
    )
    # In each of the others one setting differs, so that it shows what that does.
    best, *others = [{*name[12:-1].split(",")} for name in chosen if name[:12] == "longmemeval("]
    assert len(others) == 12 and all(len(other - best) == 1 for other in others)
    assert any(name.startswith("full_history") for name in chosen)
    reading = [m.name for m in read_run(["experiment=longmemeval_fig6", path]).methods]
    assert len(reading) == 4
