"""Retrieval of chats as LongMemEval's own scripts (run_retrieval.py, eval_utils.py) would have it,
all computed here from the raw file; none of our rows has a part in it. For nDCG, and for
sessions by the ranks of their turns, see tests/pipeline/store/test_retrieval.py."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rank_bm25 import BM25Okapi

from tests.support.command import DATA, sql, succeed

pytestmark = pytest.mark.slow

HISTORIES = DATA / "longmemeval" / "longmemeval_oracle_16.json"
KS = (1, 3, 5, 10)
Item = tuple[str, str]
"""An id and the text that is indexed."""


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def marked(session: Sequence[dict[str, str]], answer: str) -> list[dict[str, Any]]:
    """The turn that shares most words with the answer has it."""
    shared = [len(words(turn["content"]) & words(answer)) for turn in session]
    best = shared.index(max(shared))
    return [{**turn, "has_answer": n == best} for n, turn in enumerate(session)]


def histories() -> list[dict[str, Any]]:
    """The sixteen questions, their evidence among five sessions of the questions that follow."""
    native: list[dict[str, Any]] = json.loads(HISTORIES.read_bytes())
    made = []
    for place, row in enumerate(native):
        others = [s for n in range(1, 16) for s in native[(place + n) % 16]["haystack_sessions"]]
        sessions = [
            *((f"answer_{row['question_id']}_{n}", marked(session, str(row["answer"])))
              for n, session in enumerate(row["haystack_sessions"])),
            *((f"other_{n}", session) for n, session in enumerate(others[:5])),
        ]  # fmt: skip
        sessions.sort(key=lambda pair: len(pair[1][0]["content"]))  # evidence is anywhere
        made.append({
            **row,
            "question_date": "2023/06/30 (Fri) 10:00",
            "haystack_dates": [f"2023/05/{n:02} (Mon) 10:00" for n, _ in enumerate(sessions, 1)],
            "haystack_session_ids": [name for name, _ in sessions],
            "haystack_sessions": [session for _, session in sessions],
            "answer_session_ids": [name for name, _ in sessions if name.startswith("answer")],
        })  # fmt: skip
    return made


def items(row: dict[str, Any], value: str) -> list[Item]:
    """What is indexed, the user's side alone, under ids that say whether it has evidence."""
    found: list[Item] = []
    for name, session in zip(row["haystack_session_ids"], row["haystack_sessions"], strict=True):
        lost = name.replace("answer", "noans")
        own = [(n, turn) for n, turn in enumerate(session, 1) if turn["role"] == "user"]
        if value == "session":
            has_answer = any(turn.get("has_answer") for _, turn in own)
            text = " ".join(cleaned(turn["content"]) for _, turn in own)
            found.append((name if has_answer or lost == name else lost, text))
        else:
            found += [
                (f"{name if turn.get('has_answer') else lost}_{n}", cleaned(turn["content"]))
                for n, turn in own
            ]
    return found


def cleaned(content: str) -> str:
    """Without blank lines, which would end a turn in our texts."""
    return re.sub(r"\n\s*\n", "\n", content).strip()


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    path = folder / "longmemeval_s.json"
    path.write_text(json.dumps(histories()), encoding="utf-8")
    succeed(
        "run", "corpus=longmemeval", f"corpus.path={path}", "family=longmemeval", "run=r",
        "methods=longmemeval(value=round|session,expansion=none,retriever=bm25)", "rater=none",
        "cluster=inline", f"warehouse={folder / 'warehouse'}",
    )  # fmt: skip
    return folder / "warehouse"


def test_a_family_s_metrics_are_columns(warehouse: Path) -> None:
    report = json.loads(succeed("report", "run=r", f"warehouse={warehouse}", "--json"))
    names = [f"session_{name}@{k}" for k in (5, 10) for name in ("recall_all", "ndcg_published")]
    assert [c["measure"] for c in report["columns"] if "@" in c["measure"]] == names
    assert all({*names} <= {*row["means"]} for row in report["rows"])


@pytest.mark.parametrize("value", ["round", "session"])
def test_the_view_has_the_authors_values(warehouse: Path, value: str) -> None:
    query = f"from retrieval where method like '%value={value},%' and level = 'page' and k <= 10"
    by_id = {history["question_id"]: history for history in histories()}
    compared = left_out = 0
    for row in sql(warehouse, query):
        history = by_id[row["question_id"]]
        found = items(history, value)
        okapi = BM25Okapi([text.split(" ") for _, text in found])
        order = np.argsort(okapi.get_scores(history["question"].split(" ")))[::-1]
        ranked = [found[n][0] for n in order]
        correct, top = {name for name in ranked if "answer" in name}, {*ranked[: row["k"]]}
        if not correct:  # their runner leaves it out
            assert row["left_out"] == "no user evidence", row
            left_out += 1
            continue
        recall = (100.0 * bool(correct & top), 100.0 * (correct <= top))
        assert (row["recall_any"], row["recall_all"]) == recall, (row, ranked)
        compared += 1
    assert compared + left_out == 16 * len(KS)
    assert compared >= 24 and left_out >= 4
