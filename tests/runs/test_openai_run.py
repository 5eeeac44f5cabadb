"""Whole runs with engine=openai: servers that want a key, refuse, hang or vanish."""

from pathlib import Path
from typing import Any

import pytest

from tests.faults.scripted_run import complaint
from tests.support.command import gistmill, sql, sql_values, succeeded
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.faulty_storage import gistmill_with
from tests.support.texts.small_corpus import UNIFORM, document, question, write

pytestmark = pytest.mark.slow

KEY = "sk-loopback-0123456789abcdef"
# Three documents of three pages: nine gists; a question each, two methods that each ask once.
NUM_GISTS, NUM_ANSWERS = 9, 6


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def words(folder: Path, server: LoopbackServer, *more: str, num_documents: int = 3) -> list[str]:
    numbers = range(num_documents)
    write(folder / "corpus", [document(n) for n in numbers], [question(n, of=n) for n in numbers])
    return [
        "run", "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, "rater=none",
        "methods=gist_only,closed_book", f"warehouse={folder / 'warehouse'}",
        "engine=openai", f"engine.base_url={server.url}", "engine.model=m", *more,
    ]  # fmt: skip


def calls(folder: Path) -> list[dict[str, Any]]:
    return sql(folder / "warehouse", "from calls")


def test_a_server_that_vanishes_ends_the_run_and_the_same_command_goes_on(tmp_path: Path) -> None:
    num_answered = 0

    def vanishing(body: dict[str, Any]) -> Answer:
        nonlocal num_answered
        num_answered += 1
        return Answer(vanish=num_answered > 11)

    with LoopbackServer(answer=vanishing) as server:
        command = words(tmp_path, server, "engine.outage_minutes=0.02", "engine.sequences=1")
        done = gistmill(*command)
    told = complaint(done)
    assert told.startswith(f"engine.base_url={server.url}: no server answers (")
    assert told.endswith("(engine.outage_minutes); run the same command to resume")
    assert [*(tmp_path / "warehouse" / "tables" / "gists").rglob("*.parquet")]
    with LoopbackServer(port=server.port) as again:
        succeeded(gistmill(*command))
    assert len(calls(tmp_path)) == NUM_GISTS + NUM_ANSWERS
    # Eleven were answered; the journal has those of the units that were open.
    assert len(again.asked) == NUM_GISTS + NUM_ANSWERS - 11
    assert {row["problem"] for row in calls(tmp_path)} == {None}


@pytest.mark.parametrize("errno", ["ENOSPC", "EROFS"])
def test_no_more_is_asked_once_replies_cannot_be_kept(tmp_path: Path, errno: str) -> None:
    """What is paid twice is at most what was in flight: 1.25 x `engine.sequences` requests."""
    warehouse = tmp_path / "warehouse"
    fault = {"operation": "open", "path": f"{warehouse}/*", "errno": errno,
             "after": str(warehouse / "tables" / "gists")}  # fmt: skip
    four = ("engine.sequences=4", "engine.max_workers=1")
    with LoopbackServer(answer=lambda body: Answer(seconds=0.05)) as server:
        command = words(tmp_path, server, *four, num_documents=8)
        done = gistmill_with([fault], *command)
        assert done.returncode == 4, done.stderr
        assert len(server.asked) < 8 * 5, "it was refused before the end"
        succeeded(gistmill(*command))
    assert len(server.asked) - len(calls(tmp_path)) <= 5


def test_a_key_that_is_refused_or_expires_ends_the_run_in_one_line(tmp_path: Path) -> None:
    def expiring(body: dict[str, Any]) -> Answer:
        if len(server.asked) > NUM_GISTS:
            server.key = "another"
            return Answer(status=401, body='{"error": {"message": "expired"}}')
        return Answer()

    with LoopbackServer(key="another", answer=expiring) as server:
        command = words(tmp_path, server, "engine.sequences=1")
        for key, code in (("another", 1), (KEY, 4)):
            server.key = key
            done = gistmill(*command)
            assert "the server refuses the key in OPENAI_API_KEY (401: " in complaint(done, code)
            assert KEY not in done.stdout + done.stderr
        server.key, server.answer = KEY, lambda body: Answer()
        server.asked.clear()
        succeeded(gistmill(*command))
    assert len(server.asked) == NUM_ANSWERS, "what was answered is not asked again"
    assert {row["problem"] for row in calls(tmp_path)} == {None}


@pytest.mark.parametrize("status", [429, 503])
def test_one_request_that_is_always_refused_is_one_row(tmp_path: Path, status: int) -> None:
    """Its siblings of the same document are answered and kept; `retry` asks it again."""

    def refusing(body: dict[str, Any]) -> Answer:
        is_bad = "number 2" in body["messages"][0]["content"]
        return Answer(status=status, body="{}") if is_bad else Answer(seconds=0.1)

    more = ("methods=closed_book", "engine.retries=1", "engine.outage_minutes=0.05",
            "engine.sequences=2", "max_problem_rate=1.0")  # fmt: skip
    warehouse, query = tmp_path / "warehouse", "select question_id, problem from answers"
    with LoopbackServer(answer=refusing) as server:
        command = words(tmp_path, server, *more)
        write(tmp_path / "corpus", [document(1)], [question(n, of=1) for n in range(4)])
        succeeded(gistmill(*command))
        assert dict(sql_values(warehouse, query)) == {
            "q0": None, "q1": None, "q2": "refused", "q3": None,
        }  # fmt: skip
        (call,) = (row for row in calls(tmp_path) if row["problem"])
        assert call["reply"].startswith(f"{status}: ")
        server.answer = lambda body: Answer()
        server.asked.clear()
        succeeded(gistmill("retry", f"warehouse={warehouse}"))
        assert len(server.asked) == 1
    assert {problem for _, problem in sql_values(warehouse, query)} == {None}
