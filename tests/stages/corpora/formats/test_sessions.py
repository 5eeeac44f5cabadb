"""A history's sessions: a page never spans two, and a session is gisted once for all documents."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from upath import UPath

from pipeline.asking.known_replies import SharedReplies
from pipeline.core.rows import UnitRows
from stages.corpora import Loaded
from stages.index.gist_pages import GistPages
from stages.index.paginate import PaginateByModel, PaginateUniform
from stages.tables.pages import Page
from tests.stages.corpora.formats.test_longmemeval import HISTORY, read, turn, written
from tests.support.command import sql, succeed
from tests.support.reading import Listener, adding, always, content, document, run
from tests.support.texts.loading import loaded

UNIFORM = PaginateUniform(page_breaks=True, paragraphs="blank_lines", words=30, max_words=60)
BY_MODEL = PaginateByModel(
    page_breaks=True, paragraphs="blank_lines", min_words=20, max_words=60, tail_words=10,
    preceding_words=15, following="nothing", label_rule="within_limits",
)  # fmt: skip
GIST = GistPages(page_breaks=True)

WORDS = st.integers(1, 90).map(lambda n: "word " * n)
CONTENTS = st.one_of(WORDS, st.text("ab. \n\f[]中", max_size=40))
SESSIONS = st.lists(st.lists(st.builds(turn, CONTENTS), max_size=5), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(
    sessions=SESSIONS,
    stage=st.sampled_from([UNIFORM, BY_MODEL]),
    how=st.sampled_from(["blank_lines", "lines", "auto"]),
    date=st.sampled_from(["2023/05/20 (Sat) 02:21", "Sept. 5, in the year 2023. At noon."]),
)
def test_pages_tile_a_history_and_never_span_two_sessions(
    sessions: list[list[dict[str, Any]]],
    stage: PaginateUniform | PaginateByModel,
    how: str,
    date: str,
) -> None:
    stage = stage.model_copy(update={"paragraphs": how})
    dates = [date] * len(sessions)
    change = {"haystack_sessions": sessions, "haystack_dates": dates, "haystack_session_ids": None}
    assume(any(sessions))
    with tempfile.TemporaryDirectory() as folder:
        history = read(Path(folder), **change).document
    made, _ = run(stage, UnitRows(document=history), always("<3>"))
    assert "".join(page.text for page in made) == history.text
    assert all("\f" not in page.text[1:] for page in made)
    starts = [page.text for page in made if page.text.startswith("\f")]
    assert len(starts) == sum(bool(session) for session in sessions)
    assert [page.text.partition("\n")[0] for page in made if "[" + date in page.text] == [
        f"\f[{date}]"
    ] * len(starts)
    assert all(page.num_words > 0 for page in made)
    assert sum(page.num_words for page in made) == history.num_words


def paginated(item: Loaded) -> UnitRows:
    rows = UnitRows(document=item.document)
    made, _ = run(UNIFORM, rows, always("<1>"))
    return adding(rows, {Page: made})


def test_a_window_shows_no_header_and_nothing_of_the_session_before(tmp_path: Path) -> None:
    turns = [turn(f"w{i} " * 12) for i in range(8)]
    item = read(tmp_path, haystack_sessions=[turns, [turn("before " * 9)]])
    engine = always("<4>")
    run(BY_MODEL, UnitRows(document=item.document), engine, "qmsum")
    assert engine.requests and not any("2023/" in prompt for prompt in engine.prompts())
    assert not any("before before" in prompt for prompt in engine.prompts())


def test_a_session_in_two_histories_is_gisted_once(tmp_path: Path) -> None:
    both, first, second = ([turn(f"{name} " * 20)] for name in ("both", "first", "second"))
    dates = HISTORY["haystack_dates"]
    histories = [
        {**HISTORY, "haystack_sessions": [both, first]},
        {**HISTORY, "question_id": "q2", "haystack_sessions": [second, both]},
    ]
    corpus = [paginated(item) for item in loaded(written(tmp_path, *histories), "longmemeval")]
    engine = Listener(lambda request: f"of {content(request).split('user:')[1].split()[0]}")
    shared = SharedReplies(UPath(tmp_path / "shared"))
    gists, calls = zip(*(run(GIST, rows, engine, shared=shared) for rows in corpus), strict=True)
    assert len(engine.requests) == 3  # of four pages
    assert not any("2023/" in prompt for prompt in engine.prompts())
    early, late = sorted(dates)
    assert [[g.gist for g in of] for of in gists] == [
        [f"[{early}] of first", f"[{late}] of both"],
        [f"[{early}] of both", f"[{late}] of second"],
    ]
    assert [[g.num_words for g in of] for of in gists] == [[2, 2], [2, 2]]
    assert [[call.is_shared for call in of] for of in calls] == [[False, False], [True, False]]
    assert [[call.document_id for call in of] for of in calls] == [["q1"] * 2, ["q2"] * 2]
    assert [[call.page_index for call in of] for of in calls] == [[0, 1], [0, 1]]


def test_every_page_of_a_session_is_remembered_with_its_date(tmp_path: Path) -> None:
    turns = [turn(f"w{i} " * 25) for i in range(3)]
    rows = paginated(read(tmp_path, haystack_sessions=[turns, [turn("Hi.")]]))
    gists, _ = run(GIST, rows, always("so"))
    early, late = sorted(HISTORY["haystack_dates"])
    assert [g.gist for g in gists] == [f"[{early}] so", *[f"[{late}] so"] * 3]
    assert [g.num_words for g in gists] == [1] * 4


def test_pages_without_sessions_have_no_header() -> None:
    text = "\f[x]\nuser: Hi."
    page = Page(document_id="d", page_index=0, start_char=0, end_char=len(text), text=text,
                num_words=2, chosen_by="rule")  # fmt: skip
    stage = GistPages(page_breaks=False)
    engine = always("so")
    [gist], _ = run(stage, adding(UnitRows(document=document(text)), {Page: [page]}), engine)
    assert gist.gist == "so" and "[x]" in engine.prompts()[0]


def test_a_session_that_stands_twice_in_a_history_costs_once(tmp_path: Path) -> None:
    rows = paginated(read(tmp_path, haystack_sessions=[[turn("Ann spoke.")]] * 2))
    engine, shared = always("so"), SharedReplies(UPath(tmp_path / "shared"))
    gists, calls = run(GIST, rows, engine, shared=shared)
    assert len(gists) == 2 and len(engine.requests) == 1
    assert sorted(call.is_shared for call in calls) == [False, True]


@pytest.mark.slow
def test_a_run_asks_for_a_shared_session_once(tmp_path: Path) -> None:
    """Three histories of a session of their own and one that all have: four gists are asked for."""
    own = [[turn(f"{name} spoke of it in spring.")] for name in ("Ann", "Ben", "Cyd")]
    both = [turn("Dee spoke of it in autumn.")]
    histories = [
        {**HISTORY, "question_id": f"q{n}", "haystack_sessions": [session, both]}
        for n, session in enumerate(own)
    ]
    words = ["corpus=longmemeval", f"corpus.path={written(tmp_path, *histories)}", "memory=uniform"]
    words += ["methods=gist_only", "rater=none", f"warehouse={tmp_path / 'w'}"]
    succeed("run", *words)
    counted = "select is_shared, count(*) as n from calls where stage = 'gist' group by all"
    rows = sql(tmp_path / "w", counted)
    assert {row["is_shared"]: row["n"] for row in rows} == {False: 4, True: 2}
    (row,) = sql(tmp_path / "w", "select calls, ok from runs where stage = 'gist'")
    assert row == {"calls": 4, "ok": 3}


@pytest.mark.slow
def test_accuracy_is_no_column_before_a_judge_is_named(tmp_path: Path) -> None:
    words = ["corpus=longmemeval", f"corpus.path={written(tmp_path, HISTORY)}", "memory=uniform"]
    succeed("run", *words, "methods=constant", "rater=none", f"warehouse={tmp_path / 'w'}")
    printed = succeed("report", f"warehouse={tmp_path / 'w'}").splitlines()
    header = next(line for line in printed if line.startswith("| method"))
    assert "accuracy" not in header and "rouge1_stem" in header
    assert any("rater none that is a model" in line for line in printed)
