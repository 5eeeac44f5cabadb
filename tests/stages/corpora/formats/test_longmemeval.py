"""LongMemEval: histories as documents, sessions in order, evidence by turns; a page never spans two
sessions, and a session is gisted once for all documents."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from pipeline.asking.replies import SharedReplies
from pipeline.core.rows import UnitRows
from stages.corpora import Loaded
from stages.index.gist_pages import GistPages
from stages.index.paginate import PaginateByModel, PaginateUniform
from stages.tables.pages import Page
from tests.stages.index.test_paginate import by_model, uniform
from tests.support.reading import Listener, adding, always, content, run
from tests.support.texts.loading import DATA, details, good, loaded

ORACLE = DATA / "longmemeval" / "longmemeval_oracle_16.json"
DATE = "%Y/%m/%d (%a) %H:%M"


def turn(content: str, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


HISTORY: dict[str, Any] = {
    "question_id": "q1", "question_type": "multi-session", "question": "When?",
    "answer": "at noon", "question_date": "2023/06/01 (Thu) 10:00",
    "haystack_session_ids": ["answer_1", "s2"], "answer_session_ids": ["answer_1"],
    "haystack_dates": ["2023/05/30 (Tue) 21:48", "2023/05/20 (Sat) 02:21"],
    "haystack_sessions": [[turn("We leave at noon."), turn("Fine.", "assistant")], [turn("Hi.")]],
}  # fmt: skip
EARLY, LATE = sorted(HISTORY["haystack_dates"])
NOON, HI = "user: We leave at noon.\n\nassistant: Fine.\n\n", "user: Hi.\n\n"
TEXT = f"\f[{EARLY}]\n{HI}\f[{LATE}]\n{NOON}"


def histories(folder: Path, *changes: dict[str, Any]) -> list[Loaded]:
    path = folder / "longmemeval_s.json"
    path.write_text(json.dumps([{**HISTORY, **change} for change in changes]), encoding="utf-8")
    return loaded(path, "longmemeval")


def read(folder: Path, **change: Any) -> Loaded:
    [item] = histories(folder, change)
    return item


def gold(item: Loaded) -> list[str]:
    text = item.document.text
    return [text[span.start_char : span.end_char] for span in item.questions[0].evidence]


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_the_real_histories_by_date_with_their_words_and_gold() -> None:
    corpus = loaded(ORACLE, "longmemeval")
    native: list[dict[str, Any]] = json.loads(ORACLE.read_bytes())
    assert len(corpus) == len(native) == 16 and details(corpus) == []
    for item, line in zip(corpus, native, strict=True):
        [question] = item.questions
        assert question.question_id == item.document.document_id == line["question_id"]
        assert question.references == (str(line["answer"]),)
        assert question.question_type == line["question_type"]
        keys = ("haystack_dates", "haystack_session_ids", "haystack_sessions")
        dated = zip(*(line[key] for key in keys), strict=True)
        turns, sessions, named = list[str](), list[str](), list[tuple[str, str]]()
        for date, name, session in sorted(dated, key=lambda d: datetime.strptime(d[0], DATE)):
            named.append((name, date))
            # Each in one line, since blank lines within would be paragraphs.
            lines = [squeezed(f"{turn['role']}: {turn['content']}") for turn in session]
            turns += lines
            sessions.append(" ".join([f"[{date}]", *lines]))
        assert [squeezed(part) for part in item.document.text.split("\f")[1:]] == sessions
        assert item.document.num_words == sum(len(text.split()) for text in turns)
        assert item.document.num_paragraphs == len(turns)
        assert [squeezed(text) for text in gold(item)] == turns  # the oracle is all evidence
        places = json.loads(item.document.metadata)["sessions"]
        assert [(place["session_id"], place["date"]) for place in places] == named
    assert "3" in {item.questions[0].references[0] for item in corpus}  # an integer there


ONE = [turn("one")]
TRAPS: dict[str, tuple[dict[str, Any], str]] = {  # what is odd, and what the text is
    "no dates": ({"haystack_dates": None}, f"\f[no date]\n{NOON}\f[no date]\n{HI}"),
    "dates that cannot be read": ({"haystack_dates": ["May [30]\n", "yesterday"]},
                                  f"\f[May 30]\n{NOON}\f[yesterday]\n{HI}"),
    "the same date twice keeps the file's order": (
        {"haystack_dates": [EARLY] * 2}, f"\f[{EARLY}]\n{NOON}\f[{EARLY}]\n{HI}"),
    "no session ids": ({"haystack_session_ids": None}, TEXT),
    "an empty session": ({"haystack_sessions": [HISTORY["haystack_sessions"][0], []]},
                         f"\f[{LATE}]\n{NOON}"),
    "form feeds and blank lines in a turn": (
        {"haystack_sessions": [[turn("a\f[b]\n\n \n\nc")], ONE]},
        f"\f[{EARLY}]\nuser: one\n\n\f[{LATE}]\nuser: a [b]\nc\n\n"),
    "an empty turn": (
        {"haystack_sessions": [[turn(""), turn(" \n", "assistant")], ONE]},
        f"\f[{EARLY}]\nuser: one\n\n\f[{LATE}]\nuser:\n\nassistant:\n\n"),
}  # fmt: skip


@pytest.mark.parametrize("trap", TRAPS)
def test_odd_histories_are_read(tmp_path: Path, trap: str) -> None:
    change, text = TRAPS[trap]
    item = read(tmp_path, **change)
    assert item.document.problem is None and item.document.text == text
    assert good(item.questions) == ["When?"]
    starts = [place["start_char"] for place in json.loads(item.document.metadata)["sessions"]]
    assert starts == [index for index, char in enumerate(text) if char == "\f"]


@pytest.mark.parametrize(
    ("change", "evidence"),
    [
        ({"haystack_sessions": [
            [turn("Hi."), turn("At noon.", has_answer=True), turn("ok", has_answer=False)],
            [turn("x", has_answer=True)]]}, ["user: At noon."]),
        ({"haystack_sessions": [[turn("Hi."), turn("")], [turn("x")]]}, ["user: Hi.", "user:"]),
        ({"answer_session_ids": None}, []), ({"answer_session_ids": ["nosuch"]}, []),
    ],
)  # fmt: skip
def test_marked_turns_are_the_evidence_where_there_are_any(
    tmp_path: Path, change: dict[str, Any], evidence: list[str]
) -> None:
    assert gold(read(tmp_path, **change)) == evidence


@pytest.mark.parametrize(
    ("change", "references", "only_judged"),
    [
        ({}, ("at noon",), False), ({"answer": 3}, ("3",), False), ({"answer": None}, (), False),
        ({"question_id": "q1_abs"}, ("at noon",), True),
        ({"question_type": "single-session-preference"}, ("at noon",), True),
    ],
)  # fmt: skip
def test_answers(
    tmp_path: Path, change: dict[str, Any], references: tuple[str, ...], only_judged: bool
) -> None:
    [question] = read(tmp_path, **change).questions
    assert (question.references, question.only_judged) == (references, only_judged)
    assert question.asked_at == "2023/06/01 (Thu) 10:00"
    is_abstention = "question_id" in change
    assert question.task == ("abstention" if is_abstention else None)
    assert json.loads(question.metadata)["is_abstention"] is is_abstention


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"haystack_dates": [LATE]}, "2 sessions, 1 `haystack_dates`; fix them"),
        ({"haystack_sessions": None}, "`haystack_sessions` is null, not a list"),
        ({"haystack_sessions": ["user: Hi.", []]}, "`haystack_sessions[0]` is a string, not a"),
        ({"haystack_sessions": [ONE, ["Hi."]]}, "`haystack_sessions[1][0]` is a string, not"),
        ({"haystack_sessions": [ONE, [{"role": "user"}]]}, "[1][0]: no `content`; add it"),
    ],
)
def test_a_bad_history_is_one_bad_row_and_keeps_its_question(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    item = read(tmp_path, **change)
    [detail] = details([item])
    assert detail.startswith("longmemeval_s.json:1: ") and words in detail
    assert good(item.questions) == ["When?"] and gold(item) == []


UNIFORM = uniform(30, 60, page_breaks=True, paragraphs="blank_lines")
BY_MODEL = by_model(20, 60, 10, page_breaks=True, paragraphs="blank_lines", preceding_words=15)


@pytest.mark.parametrize("stage", [UNIFORM, BY_MODEL])
def test_pages_tile_a_history_and_never_span_two_sessions(
    tmp_path: Path, stage: PaginateUniform | PaginateByModel
) -> None:
    sessions = [[turn("word " * n) for n in sizes] for sizes in ([50, 1, 90], [], [3], [29, 2])]
    change = {"haystack_session_ids": None, "haystack_dates": [EARLY] * 4}
    history = read(tmp_path, haystack_sessions=sessions, **change).document
    engine = always("<3>")
    pages, _ = run(stage, UnitRows(document=history), engine)
    assert "".join(page.text for page in pages) == history.text
    assert all("\f" not in page.text[1:] and page.num_words > 0 for page in pages)
    assert sum(page.text.startswith(f"\f[{EARLY}]\n") for page in pages) == 3
    assert not any("2023/" in prompt for prompt in engine.prompts())


def test_a_session_in_two_histories_is_gisted_once(tmp_path: Path) -> None:
    """And every page of a session is remembered with its date."""
    both, first, second = ([turn(f"{name} " * 20)] for name in ("both", "first", "second"))
    corpus = histories(
        tmp_path,
        {"haystack_sessions": [both, first]},
        {"question_id": "q2", "haystack_sessions": [second * 2, both]},
    )
    engine = Listener(lambda request: f"of {content(request).split('user:')[1].split()[0]}")
    shared = SharedReplies(UPath(tmp_path / "shared"))
    gists, calls = [], []
    for item in corpus:
        rows = UnitRows(document=item.document)
        pages, _ = run(UNIFORM, rows, always("<1>"))
        of_history, its_calls = run(
            GistPages(page_breaks=True), adding(rows, {Page: pages}), engine, shared=shared
        )
        gists.append([(gist.gist, gist.num_words) for gist in of_history])
        calls.append([(call.is_shared, call.document_id, call.page_index) for call in its_calls])
    assert not any("2023/" in prompt for prompt in engine.prompts())
    assert gists[0] == [(f"[{EARLY}] of first", 2), (f"[{LATE}] of both", 2)]
    assert gists[1] == [(f"[{EARLY}] of both", 2), *[(f"[{LATE}] of second", 2)] * 2]
    assert calls[0] == [(False, "q1", 0), (False, "q1", 1)] and calls[1][0] == (True, "q2", 0)
    assert len(engine.requests) == 3  # of five pages, of which two pairs are the same text
