"""Every table of the run worked by hand, `status` and `trace`: see hand_run.py."""

import json
from typing import Any

import pytest

from tests.support.command import gistmill, sql, sql_values, succeed, without_identity
from tests.support.runs.hand_numbers import ORDER, WORKED, numbers
from tests.support.runs.hand_run import TEXTS, HandRun

pytestmark = pytest.mark.slow

P = "readagent_p(max_pages=2)"


def values(hand: HandRun, query: str) -> list[tuple[Any, ...]]:
    return sql_values(hand.warehouse, query)


def test_pages_and_gists(hand: HandRun) -> None:
    query = """select document_id, page_index, p.num_words, chosen_by, gist, g.problem
        from pages p join gists g using (document_id, page_index)
        where document_id <> 'ledger' order by all"""
    assert values(hand, query) == [
        ("mill", 0, 20, "model", "Anna buys a mill.", None),
        ("mill", 1, 30, "fallback", "A flood breaks the wheel;", "truncated"),
        ("mill", 2, 10, "end", "It grinds again.", None),
        ("tide", 0, 24, "rule", "Keeper counts passing ships.", None),
        ("tide", 1, 8, "end", "Gulls in winter instead.", None),
    ]
    query = """select page_index, p.num_words, chosen_by, gist from pages p
        join gists g using (document_id, page_index) where document_id = 'ledger' order by 1"""
    assert values(hand, query) == [(i, 30, "rule", f"Entry {i + 1}.") for i in range(5)]
    joined = sql_values(
        hand.warehouse,
        "select document_id, string_agg(text, '' order by page_index) from pages group by 1",
    )
    assert dict(joined) == TEXTS  # pages tile the document


def test_lookups(hand: HandRun) -> None:
    """Page numbers in replies count from 1, page indexes in rows from 0."""
    query = f"""select question_id, turn, requested, used, dropped, problem from lookups
        where method = '{P}'"""
    lookups = {row.pop("question_id"): row for row in sql(hand.warehouse, query)}
    assert {row.pop("turn") for row in lookups.values()} == {0}
    nothing: dict[str, Any] = {"requested": [], "used": [], "dropped": [], "problem": None}
    reasons = [(2, "duplicate"), (8, "out_of_range"), (1, "over_maximum")]
    dropped = [{"page_index": index, "reason": reason} for index, reason in reasons]
    no_room = [{"page_index": 4, "reason": "no_room"}]
    assert lookups == {
        "m1": {**nothing, "requested": [1], "used": [1]},
        "m2": {**nothing, "requested": [2, 0, 2, 8, 1], "used": [2, 0], "dropped": dropped},
        "t1": {**nothing, "requested": [0], "used": [0]},
        "l1": {**nothing, "problem": "unparseable"},
        "l2": {**nothing, "requested": [3, 4], "used": [3], "dropped": no_room},
        "b1": {**nothing, "used": None, "problem": "upstream"},
    }
    query = """select question_id, used from lookups where method = 'bm25(top_k=1)' order by 1"""
    pages: dict[str, list[int] | None] = dict(values(hand, query))
    assert pages == {"m1": [1], "m2": [0], "t1": [1], "l1": [0], "l2": [3], "b1": None}


def test_answers(hand: HandRun) -> None:
    query = """select method, question_id, answer, problem, num_context_words, num_context_tokens
        from answers"""
    found = {(row[0], row[1]): row[2:] for row in values(hand, query)}
    assert len(found) == 36
    for method, worked in WORKED.items():
        words = numbers(worked.words_read)
        for index, question in enumerate(ORDER):
            counts = (words[index], words[index])  # the scripted engine's tokens are words
            expected = (worked.answers[index], worked.problems[index], *counts)
            assert found[method, question] == expected, (method, question)
    query = """select method, answer_index from answers where question_id = 't1' order by 1"""
    assert values(hand, query) == [
        ("bm25(top_k=1)", 2), ("closed_book", None), ("constant", 0), ("full_text", 2),
        ("gist_only", 2), (P, None),
    ]  # fmt: skip
    query = "select page_indexes, num_lookups, reader from answers where question_id = 'm2'"
    assert values(hand, f"{query} and method = '{P}'") == [([0, 2], 2, "scripted:reader")]
    assert values(hand, f"{query} and method = 'constant'") == [([], 0, "constant")]


def test_calls(hand: HandRun) -> None:
    """What does not fit is never asked; what goes wrong is kept as it was said."""
    query = "select stage, count(*) from calls group by 1"
    # 3 + 2 + 5 pages; 42 verdicts on 8 + 6 + 8 + 6 + 6 + 8 answers and references.
    assert dict(values(hand, query)) == {
        "paginate": 2, "gist": 10, "look_up": 5, "answer": 23, "rate": 42,
    }  # fmt: skip
    query = "select stage, problem, reply from calls where problem is not null order by all"
    assert values(hand, query) == [
        ("answer", "engine_failed", ""),
        ("answer", "truncated", "Flood water."),
        ("gist", "truncated", "A flood breaks the wheel;"),
    ]
    query = """select question_id, turn, prompt, reply, finish_reason, prompt_tokens, reply_tokens
        from calls where stage = 'look_up' and question_id = 'm2'"""
    reply = "Look up Page [3, 1, 3, 9, 2]"
    assert values(hand, query) == [("m2", 0, "look_up_p", reply, "stop", 28, 8)]


def test_trace_shows_the_whole_way(hand: HandRun) -> None:
    warehouse = f"warehouse={hand.warehouse}"
    text = without_identity(succeed("trace", "m2", warehouse, "method=readagent"))
    lines = [line.strip() for line in text.splitlines() if line]
    expected = [
        "QUESTION m2 of document mill",
        "Who mended the mill and where did it stand?",
        "reference: Peter mended it by the river.",
        "reference: A carpenter from the next valley.",
        "evidence: The old mill",
        "evidence: A carpenter called Peter",
        f"== {P}",
        "look-up 0: asked for [2, 0, 2, 8, 1], read [2, 0], "
        "dropped 2 (duplicate), 8 (out_of_range), 1 (over_maximum)",
        "<Page 2> By harvest the mill ground corn again for everybody there.",
        "context: 35 words, 35 tokens, compression 41.7%",
        "answer: Peter by the river.",
        "scripted:teacher on reference 0: permissive no, strict unparseable",
        "scripted:teacher on reference 1: permissive partially, strict no",
    ]
    assert [line for line in lines if line in expected] == expected
    (cut,) = (line for line in lines if line.startswith("page_index 1, gist A flood breaks"))
    assert "the wheel;, num_words 5" in cut and "problem truncated" in cut
    assert "gist_only" not in text
    text = gistmill("trace", "t1", warehouse).stdout
    assert "(C) Gulls and waves <- right" in text
    assert "answer: Answer: (F)\n  problem: out_of_range" in text
    assert gistmill("trace", "l2", warehouse, "method=full").stdout.count("context_overflow") == 1
    found = json.loads(gistmill("trace", "b1", warehouse, "method=constant", "--json").stdout)
    [answer] = found["methods"][0]["answers"]
    assert answer["problem"] == "upstream"
    assert "documents.jsonl:4" in answer["detail"]
