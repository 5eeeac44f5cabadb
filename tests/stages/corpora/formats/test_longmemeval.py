"""LongMemEval: histories as documents, sessions in order, evidence by turns."""

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from stages.corpora import Loaded
from tests.support.texts.loading import DATA, bad, details, good, loaded

ORACLE = DATA / "longmemeval" / "longmemeval_oracle_16.json"


def turn(content: str, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


HISTORY: dict[str, Any] = {
    "question_id": "q1",
    "question_type": "multi-session",
    "question": "When?",
    "answer": "at noon",
    "question_date": "2023/06/01 (Thu) 10:00",
    "haystack_session_ids": ["answer_1", "s2"],
    "haystack_dates": ["2023/05/30 (Tue) 21:48", "2023/05/20 (Sat) 02:21"],
    "haystack_sessions": [[turn("We leave at noon."), turn("Fine.", "assistant")], [turn("Hi.")]],
    "answer_session_ids": ["answer_1"],
}
TEXT = (
    "\f[2023/05/20 (Sat) 02:21]\nuser: Hi.\n\n"
    "\f[2023/05/30 (Tue) 21:48]\nuser: We leave at noon.\n\nassistant: Fine.\n\n"
)


def written(folder: Path, *histories: Any) -> Path:
    path = folder / "longmemeval_s.json"
    path.write_text(json.dumps(histories), encoding="utf-8")
    return path


def read(folder: Path, **change: Any) -> Loaded:
    [item] = loaded(written(folder, {**HISTORY, **change}), "longmemeval")
    return item


def gold(item: Loaded) -> list[str]:
    text = item.document.text
    return [text[span.start_char : span.end_char] for span in item.questions[0].evidence]


def naive_turn(turn: dict[str, str]) -> str:
    """Without the blank lines within: they would be paragraphs."""
    lines = f"{turn['role']}: {turn['content']}".replace("\f", " ").split("\n")
    kept = [line for i, line in enumerate(lines) if line.strip() or i in (0, len(lines))]
    return "\n".join(kept).strip()


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def test_the_real_histories_by_date_with_their_words_and_gold() -> None:
    corpus = loaded(ORACLE, "longmemeval")
    native: list[dict[str, Any]] = json.loads(ORACLE.read_bytes())
    assert len(corpus) == len(native) == 16 and details(corpus) == []
    for item, line in zip(corpus, native, strict=True):
        [question] = item.questions
        assert question.question_id == item.document.document_id == line["question_id"]
        assert question.references == (str(line["answer"]),)
        assert question.question_type == line["question_type"]
        dated = zip(line["haystack_dates"], line["haystack_sessions"], strict=True)
        ordered = sorted(dated, key=lambda d: datetime.strptime(d[0], "%Y/%m/%d (%a) %H:%M"))
        turns = [naive_turn(turn) for _, session in ordered for turn in session]
        written = [
            f"[{date}] " + " ".join(squeezed(naive_turn(turn)) for turn in session)
            for date, session in ordered
        ]
        assert [squeezed(part) for part in item.document.text.split("\f")[1:]] == written
        assert item.document.num_words == sum(len(text.split()) for text in turns)
        assert item.document.num_paragraphs == len(turns)
        assert sum(map(len, gold(item))) == sum(map(len, turns))  # the oracle is all evidence
        assert [squeezed(text) for text in gold(item)] == [squeezed(text) for text in turns]
    assert "3" in {item.questions[0].references[0] for item in corpus}  # an integer there


def test_a_history_is_written_session_by_session(tmp_path: Path) -> None:
    item = read(tmp_path)
    assert item.document.text == TEXT
    assert (item.document.num_words, item.document.num_paragraphs) == (9, 3)
    sessions = json.loads(item.document.metadata)["sessions"]
    assert [s["start_char"] for s in sessions] == [0, TEXT.index("\f", 1)]
    assert [s["session_id"] for s in sessions] == ["s2", "answer_1"]
    [question] = item.questions
    assert question.asked_at == "2023/06/01 (Thu) 10:00"
    assert gold(item) == ["user: We leave at noon.", "assistant: Fine."]


ONE = [turn("one")]
TRAPS: dict[str, tuple[dict[str, Any], str]] = {
    # what is odd -> what the text is
    "no dates": ({"haystack_dates": None}, "\f[no date]\nuser: We leave at noon.\n\nassistant: "
                 "Fine.\n\n\f[no date]\nuser: Hi.\n\n"),
    "dates that cannot be read": (
        {"haystack_dates": ["May [30]\n", "yesterday"]}, "\f[May 30]\nuser: We leave at noon.\n\n"
        "assistant: Fine.\n\n\f[yesterday]\nuser: Hi.\n\n"),
    "the same date twice keeps the file's order": (
        {"haystack_dates": ["2023/05/20 (Sat) 02:21"] * 2}, "\f[2023/05/20 (Sat) 02:21]\n"
        "user: We leave at noon.\n\nassistant: Fine.\n\n\f[2023/05/20 (Sat) 02:21]\nuser: Hi.\n\n"),
    "repeated session ids": ({"haystack_session_ids": ["s2", "s2"]}, TEXT),
    "no session ids": ({"haystack_session_ids": None}, TEXT),
    "an empty session": (
        {"haystack_sessions": [HISTORY["haystack_sessions"][0], []]}, TEXT[TEXT.index("\f", 1):]),
    "the assistant begins": (
        {"haystack_sessions": [[turn("Hello.", "assistant")], ONE]},
        "\f[2023/05/20 (Sat) 02:21]\nuser: one\n\n"
        "\f[2023/05/30 (Tue) 21:48]\nassistant: Hello.\n\n"),
    "form feeds and blank lines in a turn": (
        {"haystack_sessions": [[turn("a\f[b]\n\n \n\nc")], ONE]},
        "\f[2023/05/20 (Sat) 02:21]\nuser: one\n\n"
        "\f[2023/05/30 (Tue) 21:48]\nuser: a [b]\nc\n\n"),
    "an empty turn": (
        {"haystack_sessions": [[turn(""), turn(" \n", "assistant")], ONE]},
        "\f[2023/05/20 (Sat) 02:21]\nuser: one\n\n"
        "\f[2023/05/30 (Tue) 21:48]\nuser:\n\nassistant:\n\n"),
    "control characters and templates": (
        {"haystack_sessions": [[turn("\0 <5> Page [3] {{ x }} <|im_start|>\x0b")], ONE]},
        "\f[2023/05/20 (Sat) 02:21]\nuser: one\n\n"
        "\f[2023/05/30 (Tue) 21:48]\nuser: \0 <5> Page [3] {{ x }} <|im_start|>\n\n"),
}  # fmt: skip


@pytest.mark.parametrize("trap", TRAPS)
def test_odd_histories_are_read(tmp_path: Path, trap: str) -> None:
    change, text = TRAPS[trap]
    item = read(tmp_path, **change)
    assert item.document.problem is None and item.document.text == text
    assert good(item.questions) == ["When?"]
    for place in json.loads(item.document.metadata)["sessions"]:
        assert text[place["start_char"]] == "\f"


def test_marked_turns_are_the_evidence_where_there_are_any(tmp_path: Path) -> None:
    marked = [turn("Hi."), turn("At noon.", has_answer=True), turn("ok", has_answer=False)]
    item = read(tmp_path, haystack_sessions=[marked, [turn("x", has_answer=True)]])
    assert gold(item) == ["user: At noon."]
    item = read(tmp_path, haystack_sessions=[[turn("Hi."), turn("")], [turn("x")]])
    assert gold(item) == ["user: Hi.", "user:"]
    assert gold(read(tmp_path, answer_session_ids=None)) == []
    assert gold(read(tmp_path, answer_session_ids=["nosuch"])) == []


@pytest.mark.parametrize(
    ("change", "only_judged", "references"),
    [
        ({}, False, ("at noon",)),
        ({"answer": 3}, False, ("3",)),
        ({"answer": 2.5}, False, ("2.5",)),
        ({"answer": None}, False, ()),
        ({"question_id": 7}, False, ("at noon",)),
        ({"question_id": "q1_abs"}, True, ("at noon",)),
        ({"question_type": "single-session-preference"}, True, ("at noon",)),
    ],
)
def test_answers(
    tmp_path: Path, change: dict[str, Any], only_judged: bool, references: tuple[str, ...]
) -> None:
    [question] = read(tmp_path, **change).questions
    about = json.loads(question.metadata)
    assert question.references == references
    assert question.only_judged is only_judged
    assert about["is_abstention"] is question.question_id.endswith("_abs")
    assert question.task == ("abstention" if about["is_abstention"] else None)


BAD_HISTORIES: list[tuple[dict[str, Any], str]] = [
    ({"haystack_dates": ["2023/05/30 (Tue) 21:48"]}, "2 sessions, 1 `haystack_dates`; fix them"),
    ({"haystack_session_ids": ["a"] * 3}, "2 sessions, 3 `haystack_session_ids`; fix them"),
    ({"haystack_dates": [1, 2]}, "`haystack_dates` is not a list of strings"),
    ({"haystack_sessions": None}, "`haystack_sessions` is null, not a list"),
    ({"haystack_sessions": [[], []]}, "the text has no words"),
    ({"haystack_sessions": [], "haystack_dates": [], "haystack_session_ids": []}, "no words"),
    ({"haystack_sessions": ["user: Hi.", []]}, "haystack_sessions[0] is a string, not a list"),
    ({"haystack_sessions": [ONE, ["Hi."]]}, "haystack_sessions[1][0] is a string, not an object"),
    ({"haystack_sessions": [ONE, [{"role": "user"}]]}, "[1][0]: no `content`; add it"),
    ({"haystack_sessions": [ONE, [turn(7)]]}, "`content` is a number"),  # type: ignore[arg-type]  # what is tested
    ({"haystack_sessions": [ONE, [{"content": "x"}]]}, "[1][0]: no `role`; add it"),
]


@pytest.mark.parametrize(("change", "words"), BAD_HISTORIES)
def test_a_bad_history_is_one_bad_row_and_keeps_its_question(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    item = read(tmp_path, **change)
    [detail] = details([item])
    assert detail.startswith("longmemeval_s.json:1: ") and words in detail
    assert good(item.questions) == ["When?"] and gold(item) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"question": None}, "no `question`"),
        ({"question": "\n"}, "`question` is empty"),
        ({"answer": ["a"]}, "`answer` is a list"),
        ({"answer_session_ids": "answer_1"}, "`answer_session_ids` is not a list of strings"),
        ({"question_type": 3}, "`question_type` is a number"),
        ({"question_id": ["q"]}, "`question_id` is a list"),
    ],
)
def test_a_bad_question_leaves_the_history(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    item = read(tmp_path, **change)
    [detail] = bad(item.questions)
    assert detail.startswith("longmemeval_s.json:1: ") and words in detail
    assert item.document.problem is None


def test_ids_of_every_kind(tmp_path: Path) -> None:
    ids = ["q1", "q1", "a/b", "..", "x" * 300, None, "<5>"]
    path = written(tmp_path, *({**HISTORY, "question_id": i} for i in ids), [1])
    corpus = loaded(path, "longmemeval")
    found = [item.document.document_id for item in corpus]
    assert [found[i] for i in (0, 2, 3, 4, 6)] == ["q1", "a/b", "..", "x" * 300, "<5>"]
    assert re.fullmatch("[0-9a-f]{16}", found[5])
    assert details(corpus) == [
        'longmemeval_s.json:2: `question_id` "q1" is used twice, first in longmemeval_s.json:1; '
        "give this row another or delete it",
        "longmemeval_s.json:8: a list, not an object; fix or delete it",
    ]
