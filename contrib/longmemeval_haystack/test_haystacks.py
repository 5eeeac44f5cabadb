"""Compiled histories: evidence among fillers, of the length wanted, the same for the same seed."""

import json
import subprocess
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import gistmill

SCRIPT = Path(__file__).with_name("haystacks.py")
DATE = "%Y/%m/%d (%a) %H:%M"
Turns = list[dict[str, Any]]


def session(name: str, num_words: int = 10) -> Turns:
    """Two turns with `name` as every word."""
    said = " ".join([name] * (num_words // 2))
    return [{"role": role, "content": said} for role in ("user", "assistant")]


def question(number: int, *evidence: str, **change: Any) -> dict[str, Any]:
    """A question with these sessions as its evidence, dated 2023/05/10, 11, 12 ..."""
    ids = [f"answer_{name}" for name in evidence]
    return {
        "question_id": f"q{number}",
        "question_type": "multi-session",
        "question": f"Who is {number}?",
        "answer": "Ann",
        "question_date": "2023/05/30 (Tue) 10:00",
        "haystack_session_ids": ids,
        "haystack_dates": [f"2023/05/{10 + n} (Wed) 08:00" for n, _ in enumerate(evidence)],
        "haystack_sessions": [session(name) for name in evidence],
        "answer_session_ids": ids,
        **change,
    }


def made(folder: Path, rows: list[Any], fillers: list[Any], *words: str) -> list[dict[str, Any]]:
    """The rows that the script writes."""
    (folder / "oracle.json").write_text(json.dumps(rows))
    (folder / "fillers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in fillers))
    names = (str(folder / name) for name in ("oracle.json", "fillers.jsonl", "out.jsonl"))
    done = subprocess.run([sys.executable, SCRIPT, *names, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]


def said(turns: Turns) -> str:
    return str(turns[0]["content"]).split()[0]


FILLERS = [session(f"f{n}", 10 + n) for n in range(12)]


@pytest.mark.parametrize(("words", "num"), [(("--sessions", "30"), 30), (("--tokens", "300"), 0)])
def test_evidence_once_fillers_evenly_and_by_date(
    tmp_path: Path, words: tuple[str, ...], num: int
) -> None:
    (row,) = made(tmp_path, [question(1, "A", "B")], FILLERS, *words)
    dates = [datetime.strptime(date, DATE) for date in row["haystack_dates"]]
    assert dates == sorted(dates) and dates[-1] < datetime(2023, 5, 30, 10)
    assert dates[0] >= datetime(2023, 4, 10, 8)
    drawn = Counter(map(said, row["haystack_sessions"]))
    assert (drawn.pop("A"), drawn.pop("B")) == (1, 1)
    assert {*drawn} <= {said(turns) for turns in FILLERS}
    counts = [drawn[said(turns)] for turns in FILLERS]
    assert max(counts) - min(counts) <= 1, "none comes again before all others have come"
    if num:
        assert len(dates) == num
    else:
        words_of = [sum(1 + len(turn["content"].split()) for turn in turns)
                    for turns in row["haystack_sessions"]]  # fmt: skip
        assert 300 <= 1.3 * sum(words_of) < 300 + 1.3 * max(words_of)
    places = dict(zip(row["haystack_session_ids"], row["haystack_dates"], strict=True))
    assert places["answer_A"] == "2023/05/10 (Wed) 08:00", "evidence keeps its date"


def test_the_seed_and_the_question_make_the_history(tmp_path: Path) -> None:
    rows = [question(1, "A"), question(2, "A")]
    once = made(tmp_path, rows, FILLERS, "--sessions", "9")
    assert made(tmp_path, rows[::-1], FILLERS, "--sessions", "9") == once[::-1]
    one, two = (row["haystack_sessions"] for row in once)
    assert one != two
    other = made(tmp_path, rows, FILLERS, "--sessions", "9", "--seed", "1")
    assert other[0]["haystack_sessions"] not in (one, two)


def test_fillers_of_several_formats_and_no_evidence_among_them(tmp_path: Path) -> None:
    theirs = {"from": "human", "value": "s"}, {"from": "gpt", "value": "s"}
    fillers = [
        {"id": "sharegpt", "conversations": theirs}, {"data": ["u", "u"]}, session("plain"),
        session("plain"), session("A"), {"session_id": "answer_x", "turns": session("x")},
        question(7, "E", haystack_sessions=[session("E"), session("o")], haystack_dates=None,
                 haystack_session_ids=["answer_E", "o"]),
    ]  # fmt: skip
    rows = [question(1, "A"), question(2, "B")]
    first, second = made(tmp_path, rows, fillers, "--sessions", "5")
    for row, own in ((first, "A"), (second, "B")):
        assert {said(t) for t in row["haystack_sessions"]} == {own, "s", "u", "plain", "o"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--sessions", "1"), "q1: its evidence has 2 sessions"),
        (("--sessions", "9", "--first-date", "2024/01/01"), "q1: no date from 2024/01/01"),
        (("--tokens", "9", "--sessions", "9"), "not allowed with"),
    ],
)
def test_what_cannot_be_made_is_said(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        made(tmp_path, [question(1, "A", "B")], FILLERS, *words)


def test_gistmill_reads_the_histories(tmp_path: Path) -> None:
    made(tmp_path, [question(1, "A"), question(2, "B")], FILLERS, "--sessions", "6")
    corpus = gistmill.config("corpus=longmemeval", f"corpus.path={tmp_path / 'out.jsonl'}").corpus
    for loaded, name in zip(corpus.load(), "AB", strict=True):
        text, (asked,) = loaded.document.text, loaded.questions
        assert text.count("\f") == 6 and asked.problem is None
        gold = [text[span.start_char : span.end_char] for span in asked.evidence]
        assert gold == [f"{turn['role']}: {turn['content']}" for turn in session(name)]
