"""The costs of methods, of a warehouse that is filled by hand, worked by hand."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.calls import Call
from pipeline.store.runs.run_folder import RunFolder
from pipeline.work.units import Step
from tests.support.command import succeed
from tests.support.runs.compared_run import FACTS
from tests.support.runs.warehouse import (
    Warehouse,
    answer,
    chunk,
    document,
    document_unit,
    gist,
    page,
    question,
    step,
)


def call(of: Step, question_id: str | None, prompt: int, reply: int, **values: Any) -> Call:
    tokens = {"prompt_tokens": prompt, "reply_tokens": reply, **values}
    return Call.about(document(), stage=of.name, question_id=question_id, engine="x", **tokens)


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gists g of the pages p, which cost 100 and 10 tokens; other gists of 1000 that only c reads,
    and some of 7 that nobody does. a and b read g, each for 20 tokens; b has a verdict of 3."""
    warehouse = Warehouse(tmp_path_factory.mktemp("costs"))
    documents, questions, pages = step("documents"), step("questions"), step("pages")
    pages = replace(pages, memory="shared", upstream=(documents,))
    of_pages = replace(step("gists"), memory="shared", upstream=(documents, pages))
    gists = {name: replace(of_pages, settings={"of": name}) for name in ("g", "other", "unread")}
    unit = document_unit(documents, "d1")
    warehouse.commit(documents, unit, [document()])
    of_question = chunk(questions, "d1", "q1")
    warehouse.commit(questions, of_question, [question()])
    planned: list[tuple[Step, Sequence[Any]]] = [(documents, [unit]), (questions, [of_question])]
    for of, tokens in ((pages, 10), *zip(gists.values(), (100, 1000, 7), strict=True)):
        unit = document_unit(of, "d1")
        copied = call(of, None, 5, 5, is_shared=True, call_index=1)
        warehouse.commit(of, unit, [call(of, None, tokens - 1, 1), copied], Call)
        warehouse.commit(of, unit, [page(0)] if of is pages else [gist(0)])
        planned.append((of, [unit]))
    prices = {}
    for method, memory in (("a", "g"), ("b", "g"), ("c", "other")):
        answers = replace(step("answers", method), upstream=(documents, gists[memory]))
        unit = chunk(answers, "d1", "q1")
        warehouse.commit(answers, unit, [call(answers, "q1", 15, 5)], Call)
        warehouse.commit(answers, unit, [answer()])
        planned.append((answers, [unit]))
        prices[answers.id] = {"input": 1e6, "output": 1e7}
        if method == "b":
            ratings = replace(step("ratings", method), upstream=(documents, answers))
            unit = chunk(ratings, "d1", "q1")
            warehouse.commit(ratings, unit, [call(ratings, "q1", 2, 1)], Call)
            planned.append((ratings, [unit]))
            prices[ratings.id] = {"input": 2e6, "output": 0.0}
    warehouse.plan("r", *planned)
    facts = {**FACTS, "methods": ["a", "b", "c"], "prices": prices,
             "columns": {"any": [], "free": [], "choice": []}}  # fmt: skip
    RunFolder(warehouse.folder, "r").start({"report": facts}, {}, True)
    return Path(warehouse.folder)


def test_a_method_costs_what_the_steps_that_it_rests_on_took(by_hand: Path) -> None:
    """Copied calls cost nothing. If they are divided, three methods rest on the pages, two on the
    gists g."""

    def costs(part: str, *words: str) -> dict[str, tuple[float, float]]:
        """Calls and tokens of a part by method."""
        report = json.loads(succeed("report", f"warehouse={by_hand}", *words, "--json"))
        return {row["method"]: (row["counts"][f"{part}calls"], row["counts"][f"{part}tokens"])
                for row in report["rows"]}  # fmt: skip

    assert costs("memory_") == {"a": (2, 110), "b": (2, 110), "c": (2, 1010)}
    assert costs("") == dict.fromkeys("abc", (1, 20))
    assert costs("judging_") == {"a": (0, 0), "b": (1, 3), "c": (0, 0)}
    third = 10 / 3
    assert costs("memory_", "--split-shared") == {
        "a": pytest.approx((1 / 3 + 1 / 2, third + 50)),
        "b": pytest.approx((1 / 3 + 1 / 2, third + 50)),
        "c": pytest.approx((1 / 3 + 1, third + 1000)),
    }


def test_money_is_by_the_prices_that_are_given_or_of_each_steps_engine(by_hand: Path) -> None:
    """By hand, at 1 a prompt's token and 10 a reply's: a has 15 + 50 of its own, 99 + 10 and
    9 + 10 of memories; the run 3 x 65, 2 + 10, 9 + 10, 99 + 10, 999 + 10 and 6 + 10. The engines
    have 1 and 10 for answers, 2 and 0 for verdicts and no price for memories: a has 15 + 50, b also
    2 x 2; the run 3 x 65 + 4."""
    words = ("report", f"warehouse={by_hand}")
    given = (*words, "price=1000000,10000000")
    report = json.loads(succeed(*given, "--json"))
    of_a, total = report["rows"][0]["counts"], report["total"]
    assert (of_a["money"], of_a["memory_money"], of_a["judging_money"]) == (65, 128, 0)
    assert total == {"calls": 8, "tokens": 1180, "money": 195 + 12 + 19 + 109 + 1009 + 16}
    assert report["unpriced"] == []
    table = succeed(*given).split("Money by these")[1].split("\n\n")[1].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert ["a", "65.00", "128.00", "0", "193.00"] in cells
    assert ["run", "-", "-", "-", "1360.00"] in cells
    report = json.loads(succeed(*words, "--json"))
    parts = ("money", "memory_money", "judging_money")
    money = {row["method"]: [row["counts"][part] for part in parts] for row in report["rows"]}
    assert money == {"a": [65, 0, 0], "b": [65, 0, 4], "c": [65, 0, 0]}
    assert report["total"]["money"] == 199
    assert "in that of the run every call counts once. Without a price: x.\n" in succeed(*words)
