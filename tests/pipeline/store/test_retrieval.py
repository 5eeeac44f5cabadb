"""Views of evidence, rankings and retrieval, against LongMemEval's own functions and by hand."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log2
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.rows import Question, Record, Span
from pipeline.work.units import Step
from stages.tables.lookups import Lookup, RankedPage
from stages.tables.pages import Page
from tests.pipeline.store.test_views import rows
from tests.support.command import DATA
from tests.support.runs.warehouse import Warehouse, chunk, document, document_unit, question, step

AUTHORS = json.loads((DATA / "authors_metrics.json").read_text(encoding="utf-8"))[
    "longmemeval_retrieval"
]
DOCUMENTS, QUESTIONS = step("documents"), step("questions")
PAGES = replace(step("pages"), memory="shared")
KS = (1, 3, 5, 10, 30, 50)
CHARS = 10  # of each page


def pages(num: int, document_id: str) -> list[Page]:
    return [
        Page(document_id=document_id, page_index=n, start_char=CHARS * n,
             end_char=CHARS * (n + 1), text="x" * CHARS, num_words=1, chosen_by="rule")
        for n in range(num)
    ]  # fmt: skip


def evidence(*page_indexes: int) -> tuple[Span, ...]:
    """A span within each of these pages."""
    return tuple(Span(CHARS * n + 3, CHARS * n + 5) for n in page_indexes)


def looked_up(*page_indexes: int, question_id: str = "q", **more: Any) -> Lookup:
    ranked = tuple(RankedPage(n, 1 / rank) for rank, n in enumerate(page_indexes, 1))
    of_d = {"document_id": "d", "turn": 0, "requested": page_indexes[:2], "ranked": ranked}
    return Lookup(question_id=question_id, **{**of_d, **more})


class Filled(Warehouse):
    """A warehouse with documents of pages, and the rankings of methods."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.planned: list[Any] = []

    def put(self, of: Step, document_id: str, rows: Sequence[Record]) -> None:
        names = {row.question_id: 0 for row in rows if isinstance(row, (Question, Lookup))}
        unit = chunk(of, document_id, *names) if names else document_unit(of, document_id)
        self.commit(of, unit, rows)
        self.planned.append((of, [unit]))

    def add(self, num_pages: int, questions: Sequence[Question], looked_up: Sequence[Lookup],
            starts: Sequence[int] | None = None) -> None:  # fmt: skip
        """A document of the questions; `starts`: the first pages of its sessions."""
        document_id = questions[0].document_id
        sessions = [{"start_char": CHARS * page} for page in starts or ()]
        about = "{}" if starts is None else json.dumps({"sessions": sessions})
        self.put(DOCUMENTS, document_id, [document(document_id, metadata=about)])
        self.put(PAGES, document_id, pages(num_pages, document_id))
        self.put(QUESTIONS, document_id, questions)
        self.put(lookups("bm25"), document_id, looked_up)

    def rows(self, statement: str) -> list[dict[str, Any]]:
        self.plan("r", *self.planned)
        return rows(self, statement)


def lookups(method: str) -> Step:
    return replace(step("lookups", method), memory="shared")


@pytest.fixture
def filled(tmp_path: Path) -> Filled:
    return Filled(tmp_path)


@pytest.mark.parametrize(
    ("spans", "gold"),
    [([(8, 13)], [2, 3, 0]), ([(9, 11), (25, 27)], [1, 1, 2]), ([(20, 20)], [0, 0, 0]), ([], []),
     ([(2, 6), (4, 8), (5, 6)], [6, 0, 0])],  # overlapping spans count once
)  # fmt: skip
def test_the_gold_characters_of_each_page(
    filled: Filled, spans: list[tuple[int, int]], gold: list[int]
) -> None:
    """Pages 0-10, 10-20 and 20-30 have those of q1; q2 has no evidence."""
    asked = question("q1", "d", evidence=tuple(Span(*span) for span in spans))
    filled.put(PAGES, "d", pages(3, "d"))
    filled.put(QUESTIONS, "d", [asked, question("q2", "d")])
    columns = "question_id, page_index, start_char, end_char, gold_chars"
    of_run = filled.rows(f"select {columns} from page_evidence order by all")
    expected = [("q1", n, 10 * n, 10 * n + 10, chars) for n, chars in enumerate(gold)]
    assert [tuple(row.values()) for row in of_run] == expected
    of_all = filled.rows(f"select run, {columns} from all_page_evidence order by all")
    assert of_all == [{"run": "r", **row} for row in of_run]


Ranks = Callable[[Sequence[int], Sequence[str]], Sequence[int]]


def to_the_50th_session(order: Sequence[int], sessions: Sequence[str]) -> Sequence[int]:
    """The ranks that the look-up by keys keeps, see tests/stages/retrieve/test_search.py."""
    ranked = [sessions[page] for page in order]
    firsts = [rank for rank, session in enumerate(ranked) if session not in ranked[:rank]]
    return order[: firsts[49] + 1] if len(firsts) >= 50 else order


# Eight times the first 50 of more than 50 items are of fewer sessions than k.
@pytest.mark.parametrize(
    ("kept", "num_unknown"), [(to_the_50th_session, 0), (lambda order, sessions: order[:50], 8)]
)
def test_the_authors_values(filled: Filled, kept: Ranks, num_unknown: int) -> None:
    """Their items are pages, those of a session side by side. Null where values rest on ranks that
    were not kept."""
    cases = {f"case-{n:02}": case for n, case in enumerate(AUTHORS["cases"])}
    assert len(cases) == 25 and AUTHORS["k"] == list(KS)
    for name, case in cases.items():
        ids: list[str] = case["corpus_ids"]
        order = sorted(range(len(ids)), key=ids.__getitem__)
        page_of = {item: page for page, item in enumerate(order)}
        sessions = [ids[item].rsplit("_", 1)[0] for item in order]
        starts = [sessions.index(session) for session in dict.fromkeys(sessions)]
        gold = [page_of[item] for item, of_item in enumerate(ids) if of_item in case["correct"]]
        ranks = kept([page_of[item] for item in case["ranking"]], sessions)
        asked = question(name, name, evidence=evidence(*gold))
        filled.add(
            len(ids), [asked], [looked_up(*ranks, question_id=name, document_id=name)], starts
        )
    retrieval = filled.rows("from retrieval")
    assert len(retrieval) == 25 * 2 * len(KS)
    unknown = [row for row in retrieval if row["left_out"] is None and row["recall_any"] is None]
    assert {(row["level"], row["k"]) for row in unknown} <= {("session", 30), ("session", 50)}
    assert len(unknown) == num_unknown
    for row in (row for row in retrieval if row not in unknown):
        case = cases[row["question_id"]]
        theirs = case["as_items" if row["level"] == "page" else "turns_as_sessions"][str(row["k"])]
        ours = [row[name] for name in ("recall_any", "recall_all", "ndcg_published")]
        if not case["correct"]:  # theirs are 0, 1 and 0, and their runner leaves them out, too
            assert ours == [None] * 3 and row["left_out"] == "no evidence"
        else:
            assert ours == pytest.approx([100 * value for value in theirs], abs=1e-4), row


A, B = 1 / log2(3), 1 / log2(5)  # the discounts of ranks 2 and 4
WORKED = {  # level -> metric -> the values at k 1, 3, and from 5 on
    "page": {
        "recall_any": (0, 100, 100),
        "recall_all": (0, 0, 100),
        "ndcg": (0, 100 * A / (1 + A), 100 * (A + B) / (1 + A)),
        "ndcg_published": (0, 50, 75),  # gains of 1 at ranks 1 and 2, 1 / 2 at rank 4
    },
    "session": {  # of pages 0 and 1, of 2, of 3: in the order second, first, third
        "recall_any": (0, 100, 100),
        "recall_all": (0, 100, 100),
        "ndcg": (0, 100 * A, 100 * A),
        "ndcg_published": (0, 50, 75),  # both pages of the first session are relevant
    },
}


def test_worked_by_hand(filled: Filled) -> None:
    """Ranked 2, 0, 3, 1; gold on 0 and 1."""
    asked = question("q", "d", evidence=evidence(0, 1))
    filled.add(4, [asked], [looked_up(2, 0, 3, 1)], [0, 2, 3])
    for row in filled.rows("from retrieval"):
        column = min(KS.index(row["k"]), 2)
        worked = {metric: values[column] for metric, values in WORKED[row["level"]].items()}
        assert {metric: row[metric] for metric in worked} == pytest.approx(worked), row
    measured = {row["measure"]: row["value"] for row in filled.rows("from measures")}
    assert measured == {
        f"session_{metric}@{k}": pytest.approx(values[2])
        for metric, values in WORKED["session"].items()
        for k in (5, 10)
    }


def test_turns_are_one_ranking(filled: Filled) -> None:
    """Each turn's pages that it asked for come first, then the others that it ranked. A document
    without sessions has pages only."""
    turns = [looked_up(2, 0, 1, 3), looked_up(4, 2, 0, 1, turn=1)]  # the first two are asked for
    filled.add(5, [question("q", "d", evidence=evidence(4))], turns)
    rankings = filled.rows("select page_index, rank, score from rankings order by rank")
    assert [tuple(row.values()) for row in rankings] == [
        (2, 1, 1.0), (0, 2, 1 / 2), (4, 3, 1.0), (1, 4, 1 / 3), (3, 5, 1 / 4),
    ]  # fmt: skip
    assert filled.rows("select distinct level from retrieval") == [{"level": "page"}]


@pytest.mark.slow
def test_what_is_left_out_and_what_counts_as_nothing(filled: Filled) -> None:
    abouts = {"whole": "{}", "unasked": '{"user_evidence": []}', "failed": "{}",
              "of 0.2": '{"has_user_evidence": false}',
              "abstains": '{"is_abstention": true}'}  # fmt: skip
    asked = [question("no gold", "d")]
    asked += [question(name, "d", evidence=evidence(1), metadata=abouts[name]) for name in abouts]
    names = [row.question_id for row in asked if row.question_id != "failed"]
    ranked = [looked_up(1, 0, question_id=name) for name in names]
    lost = Lookup(document_id="d", question_id="failed", turn=0, used=None, problem="timeout")
    filled.add(2, asked, [*ranked, lost])
    chosen = [Lookup(document_id="d", question_id=row.question_id, turn=0) for row in asked]
    filled.put(lookups("by a model"), "d", chosen)
    skipped = [replace(row, skipped=True) for row in chosen if row.question_id != "whole"]
    filled.put(lookups("oracle"), "d", [looked_up(1, 0, question_id="whole"), *skipped])
    rows = filled.rows(
        """select method, question_id, left_out, problem, recall_any from retrieval where k = 1
        order by all"""
    )
    assert [tuple(row.values()) for row in rows] == [
        ("bm25", "abstains", "abstention", None, None), ("bm25", "failed", None, "timeout", 0),
        ("bm25", "no gold", "no evidence", None, None),
        ("bm25", "of 0.2", "no user evidence", None, None),
        ("bm25", "unasked", "no user evidence", None, None),
        ("bm25", "whole", None, None, 100), ("oracle", "whole", None, None, 100),
    ]  # fmt: skip
    everywhere = filled.rows("select count(*) as n from all_retrieval where run = 'r'")
    assert everywhere == filled.rows("select count(*) as n from retrieval")


def test_where_there_are_no_pages_all_values_are_0(filled: Filled) -> None:
    """Pagination failed: it left one row without text."""
    filled.add(2, [question("fine", "d")], [looked_up(0, 1, question_id="fine")])
    no_page = replace(pages(1, "e")[0], end_char=0, text=None, problem="unit_failed")
    lost = Lookup(document_id="e", question_id="q", turn=0, used=None, problem="upstream")
    filled.put(DOCUMENTS, "e", [document("e")])
    filled.put(PAGES, "e", [no_page])
    filled.put(QUESTIONS, "e", [question("q", "e", evidence=evidence(0))])
    filled.put(lookups("bm25"), "e", [lost])
    statement = """select distinct left_out, problem, recall_any, recall_all, ndcg, ndcg_published
    from retrieval where question_id = 'q'"""
    (row,) = filled.rows(statement)
    assert tuple(row.values()) == (None, "upstream", 0, 0, 0, 0)
