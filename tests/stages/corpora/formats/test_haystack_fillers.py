"""What a filler may be, the dates that fillers get, and input that cannot be used."""

import gzip
import json
import random
from datetime import date, datetime
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import UsageError
from stages.corpora import Loaded, load
from stages.corpora.chats.session_dates import interval
from stages.corpora.chats.sessions import Session
from stages.corpora.formats.fillers import Fillers
from tests.support.texts.haystack import files, gold, histories, parts, question, session, shown
from tests.support.texts.loading import corpus_of, details, good, loaded

TALK = "user: one\n\nassistant: two"
TURNS = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
SHAREGPT = [{"from": "human", "value": "one"}, {"from": "gpt", "value": "two"}]
HISTORY = {
    "question_id": "x",
    "haystack_session_ids": ["gold", "s9"],
    "haystack_sessions": [session("gold"), TURNS],
    "answer_session_ids": ["gold"],
}


def drawn(item: Loaded) -> set[str]:
    """The texts of the fillers among the evidence of one word, A."""
    return {text for _, text in parts(item) if text != shown(session("A"))}


def names(item: Loaded) -> set[str]:
    found = {place["session_id"] for place in json.loads(item.document.metadata)["sessions"]}
    return found - {"answer_A"}


@pytest.mark.parametrize(
    ("filler", "name"),
    [
        (TURNS, "filler_0"),
        ({"session_id": "s7", "session": TURNS}, "s7"),  # the authors' data_5_filler_sess.json
        ({"id": 7, "messages": TURNS}, "7"),
        ({"id": "a_0", "conversations": SHAREGPT}, "a_0"),
        ({"conversation": SHAREGPT}, "filler_0"),
        ({"id": "0", "data": ["one", "two"]}, "0"),  # UltraChat
        ([{**turn, "has_answer": True} for turn in TURNS], "filler_0"),
        (HISTORY, "s9"),
    ],
)
def test_a_filler_in_every_format(tmp_path: Path, filler: Any, name: str) -> None:
    [item] = histories(tmp_path, [question(1, "A")], [filler], sessions=3)
    assert (drawn(item), names(item)) == ({TALK}, {name})
    assert len(parts(item)) == 3 and "one" not in gold(item)


def test_a_file_of_fillers_in_every_container(tmp_path: Path) -> None:
    made = files(tmp_path, [question(1, "A")], [TURNS, session("B")])
    lines = Path(made["fillers"]).read_bytes()
    once = loaded(**made, sessions=4)
    (tmp_path / "f.json").write_text(json.dumps([TURNS, session("B")]))
    (tmp_path / "f.jsonl.gz").write_bytes(gzip.compress(lines))
    for name in ("f.json", "f.jsonl.gz"):
        assert loaded(**{**made, "fillers": str(tmp_path / name)}, sessions=4) == once


def test_evidence_of_any_question_is_no_filler(tmp_path: Path) -> None:
    rows = [question(1, "A"), question(2, "B", haystack_session_ids=["s1"],
                                       answer_session_ids=["s1"])]  # fmt: skip
    fillers = [
        session("B"),  # by content
        {"id": "other", "session": session("A")},
        {"id": "answer_4f", "session": session("C")},  # by its id's beginning
        {"id": "s1", "session": session("D")},  # by the id that a question gives
        [],
        TURNS,
        TURNS,  # a copy
    ]
    for item in histories(tmp_path, rows, fillers, sessions=5):
        others = {text for _, text in parts(item)} - {shown(session(n)) for n in "AB"}
        assert others == {TALK}
        assert len(gold(item)) == 2


def test_of_a_history_only_the_evidence_is_used(tmp_path: Path) -> None:
    row = question(1, "A", "B", answer_session_ids=["answer_B"])
    [item] = histories(tmp_path, [row], [TURNS], sessions=2)
    assert {text for _, text in parts(item)} == {shown(session("B")), TALK}
    [item] = histories(tmp_path, [{**row, "answer_session_ids": None}], [TURNS], sessions=3)
    assert {text for _, text in parts(item)} == {shown(session(n)) for n in "AB"} | {TALK}
    assert gold(item) == []


def test_fillers_are_drawn_evenly_and_in_every_order() -> None:
    fillers = Fillers(BytesIO())
    for name in "abc":
        fillers.add(Session(name, None, [name], ()))
    orders = set()
    for seed in range(200):
        found = fillers.drawn(random.Random(seed))
        order = "".join(str(each.session_id) for each in islice(found, 6))
        assert sorted(order[:3]) == sorted(order[3:]) == ["a", "b", "c"]
        orders.add(order)
    assert len(orders) == 36


def minute(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M")


EVIDENCE = [minute("2023-02-14 12:45"), minute("2023-03-15 10:20")]
ASKED = minute("2023-03-20 09:00")
INTERVALS: list[tuple[tuple[Any, ...], str, str]] = [
    # first_date, last_date, dates of the evidence, date of the question -> first, last minute
    ((None, None, [], None), "2023-05-01 00:00", "2023-05-31 23:59"),
    ((None, None, [], ASKED), "2023-02-18 09:00", "2023-03-20 08:59"),
    ((None, None, EVIDENCE, None), "2023-01-15 12:45", "2023-04-14 10:20"),
    ((None, None, EVIDENCE, ASKED), "2023-01-15 12:45", "2023-03-20 08:59"),
    ((date(2022, 1, 1), None, EVIDENCE, ASKED), "2022-01-01 00:00", "2023-03-20 08:59"),
    ((None, date(2023, 3, 1), EVIDENCE, ASKED), "2023-01-15 12:45", "2023-03-01 23:59"),
    ((date(2023, 3, 1), date(2023, 3, 1), EVIDENCE, ASKED), "2023-03-01 00:00", "2023-03-01 23:59"),
    ((date(2023, 3, 1), date(2023, 9, 1), [], ASKED), "2023-03-01 00:00", "2023-03-20 08:59"),
]


@pytest.mark.parametrize(("given", "first", "last"), INTERVALS)
def test_the_interval_of_dates(given: tuple[Any, ...], first: str, last: str) -> None:
    assert interval(*given) == (minute(first), minute(last))


def test_fillers_are_in_the_interval_and_evidence_keeps_its_dates(tmp_path: Path) -> None:
    fillers = [session(f"f{n}") for n in range(60)]
    keys = {"sessions": 61, "first_date": "2023/05/29", "last_date": "2023/06/30"}
    [item] = histories(tmp_path, [question(1, "A")], fillers, **keys)
    (first, text), *others = parts(item)
    assert (first, text) == ("2023/05/10 (Wed) 08:00", shown(session("A")))
    found = [datetime.strptime(when, "%Y/%m/%d (%a) %H:%M") for when, _ in others]
    assert minute("2023-05-29 00:00") <= found[0] and found[-1] < minute("2023-05-30 10:00")
    assert len(set(found)) > 50


def test_evidence_without_dates_gets_some_in_its_order(tmp_path: Path) -> None:
    row = question(1, "A", "B", "C", haystack_dates=None)
    for seed in range(5):
        [item] = histories(tmp_path, [row], [TURNS], sessions=9, seed=seed)
        assert [text[6] for _, text in parts(item) if text != TALK] == ["A", "B", "C"]


def test_a_bad_row_of_fillers_is_a_bad_row_and_the_others_are_drawn(tmp_path: Path) -> None:
    bad: list[Any] = [
        7,
        {"text": "x"},
        [{"role": "user"}],
        {"data": [1]},
        {**HISTORY, "haystack_sessions": 1},
    ]
    corpus = histories(tmp_path, [question(1, "A")], [*bad, TURNS], sessions=2)
    turns = "no turns, under session or turns or messages or conversation or conversations or data"
    assert details(corpus) == [
        "fillers.jsonl:1: a number, not an object; fix or delete the line",
        f"fillers.jsonl:2: {turns}; add them",
        "fillers.jsonl:3: turns[0]: no `content`; add it",
        "fillers.jsonl:4: `data`[0] is a number, not an object; fix it",
        "fillers.jsonl:5: `haystack_sessions` is a number, not a list; fix it",
    ]
    assert len(corpus) == 6 and drawn(corpus[-1]) == {TALK}


@pytest.mark.parametrize(
    ("change", "keys", "words"),
    [
        ({}, {"sessions": 1}, "its evidence has 2 sessions; raise corpus.sessions to that"),
        ({}, {"tokens": 20}, "its evidence has 32 tokens; raise corpus.tokens to that"),
        ({}, {"first_date": "2023/05/31"}, "no date from 2023/05/31 (Wed) 00:00 to "
         "2023/05/30 (Tue) 09:59 for its sessions; set corpus.first_date and corpus.last_date"),
        ({"haystack_dates": ["2023/05/30 (Tue) 21:48", "May"]}, {},
         '`haystack_dates` "May" is no date like 2023/05/31 (Wed) 21:48; fix it'),
        ({"question_date": "May"}, {}, '`question_date` "May" is no date like'),
        ({"haystack_sessions": [[], []]}, {}, "no evidence session; add it or delete"),
        ({"haystack_sessions": "x"}, {}, "`haystack_sessions` is a string, not a list"),
    ],
)  # fmt: skip
def test_a_question_without_a_history_is_one_bad_row(
    tmp_path: Path, change: dict[str, Any], keys: dict[str, Any], words: str
) -> None:
    rows = [question(1, "A", "B", **change), question(2)]
    rows[1] = question(2, "C", question_date="2023/06/30 (Fri) 10:00")
    settings = {"sessions": None if "tokens" in keys else 3, **keys}
    one, two = histories(tmp_path, rows, [TURNS], **settings)
    [detail] = details([one])
    assert detail.startswith("longmemeval_oracle.json:1: ") and words in detail
    assert good(one.questions) == ["Who is 1?"] and two.document.problem is None


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"tokens": 7}, "corpus.sessions, corpus.tokens: both are set; set one of them"),
    ({"sessions": None}, "corpus.sessions, corpus.tokens: neither is set; set one of them"),
    ({"first_date": "2023/05/02", "last_date": "2023/05/01"},
     "corpus.first_date is after corpus.last_date; exchange them"),
    ({"fillers": "/nowhere/f.jsonl"}, "/nowhere/f.jsonl: no such file; set corpus.fillers=..."),
    ({"path": "/nowhere/q.json"}, "/nowhere/q.json: no such file or folder; set corpus.path=..."),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "words"), REFUSED)
def test_settings_that_cannot_work_are_refused(
    tmp_path: Path, keys: dict[str, Any], words: str
) -> None:
    made = files(tmp_path, [question(1, "A")], [TURNS])
    with pytest.raises(UsageError) as refused:
        load(corpus_of(**{**made, "sessions": 3, **keys}))
    assert str(refused.value) == words


@pytest.mark.parametrize(
    ("fillers", "words"),
    [
        ([], "no session in it can be a filler; set corpus.fillers=..."),
        ([session("A")], "no session in it can be a filler; set corpus.fillers=..."),
        ([7], "can be a filler; fillers.jsonl:1: a number, not an object; fix or delete the line"),
    ],
)
def test_a_file_without_a_filler_is_refused(tmp_path: Path, fillers: list[Any], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        histories(tmp_path, [question(1, "A")], fillers, sessions=3)
    assert str(refused.value).startswith(f"{tmp_path / 'fillers.jsonl'}: ")
    assert str(refused.value).endswith(words)


def test_a_day_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"first_date\n.*Input should be a date like 2023/05/31"):
        corpus_of(tmp_path, "longmemeval_haystack", first_date="May 2023")
