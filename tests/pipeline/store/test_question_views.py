"""The views over questions: how much gold evidence each page holds, and methods paired."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.rows import Span
from tests.pipeline.store.test_views import rows
from tests.support.runs.warehouse import (
    Warehouse,
    chunk,
    document_unit,
    page,
    question,
    score,
    step,
)

PAGES, QUESTIONS = step("pages"), step("questions")
METHODS = {name: step("scores", name) for name in ("bm25", "full_text", "gist_only")}


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path)


def with_evidence(warehouse: Warehouse, *spans: tuple[int, int]) -> list[tuple[Any, ...]]:
    """`page_evidence` of q1, of pages 0-10, 10-20 and 20-30; q2 has no evidence."""
    pages = [
        replace(page(index, "0123456789"), start_char=10 * index, end_char=10 * index + 10)
        for index in range(3)
    ]
    of, asked = document_unit(PAGES, "d1"), chunk(QUESTIONS, "d1", "q1", "q2")
    warehouse.commit(PAGES, of, pages)
    gold = tuple(Span(*span) for span in spans)
    warehouse.commit(QUESTIONS, asked, [question("q1", evidence=gold), question("q2")])
    warehouse.plan("r", (PAGES, [of]), (QUESTIONS, [asked]))
    columns = "question_id, page_index, start_char, end_char, gold_chars"
    found = rows(warehouse, f"select {columns} from page_evidence order by all")
    of_all = rows(warehouse, f"select run, {columns} from all_page_evidence order by all")
    assert [{"run": "r", **row} for row in found] == of_all
    return [tuple(row.values()) for row in found]


@pytest.mark.parametrize(
    ("spans", "gold"),
    [
        ([(8, 13)], [2, 3, 0]),
        ([(9, 11), (25, 27)], [1, 1, 2]),
        ([(2, 6), (4, 8), (5, 6)], [6, 0, 0]),  # what overlaps counts once
        ([(20, 20)], [0, 0, 0]),
    ],
)
def test_the_gold_characters_of_each_page(
    warehouse: Warehouse, spans: list[tuple[int, int]], gold: list[int]
) -> None:
    assert with_evidence(warehouse, *spans) == [
        ("q1", index, 10 * index, 10 * index + 10, chars) for index, chars in enumerate(gold)
    ]


def test_questions_without_evidence_have_no_rows(warehouse: Warehouse) -> None:
    assert with_evidence(warehouse) == []


def test_methods_are_paired_question_by_question(warehouse: Warehouse) -> None:
    values = {
        "bm25": [score("q1", "f1", 40.0), score("q2", "f1", 10.0)],
        "full_text": [score("q1", "f1", 100.0), score("q2", "f1", None)],
        "gist_only": [score("q1", "em", 0.0)],
    }
    units = {name: chunk(of, "d1", "q1", "q2") for name, of in METHODS.items()}
    for name, of in METHODS.items():
        warehouse.commit(of, units[name], values[name])
    warehouse.plan("r", *((of, [units[name]]) for name, of in METHODS.items()))
    asked = "select method, other, question_id, metric, value, other_value, difference from {}"
    found = rows(warehouse, asked.format("paired order by all"))
    assert [tuple(row.values()) for row in found] == [
        ("bm25", "full_text", "q1", "f1", 40.0, 100.0, -60.0),
        ("full_text", "bm25", "q1", "f1", 100.0, 40.0, 60.0),
    ]
    assert rows(warehouse, asked.format("all_paired where run = 'r' order by all")) == found
