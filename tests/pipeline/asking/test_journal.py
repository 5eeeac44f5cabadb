"""The journal of an open unit: what a killed worker has asked is not asked again."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from upath import UPath

from pipeline.asking.replies import Journal, journal_files
from pipeline.core.calls import Call
from pipeline.core.errors import EngineError, Problem, StorageError
from pipeline.core.rows import Document
from pipeline.files.storage import as_path

STEP, UNIT = "gist-0123abcd", "00ff"


def call(number: int, problem: Problem | None = None) -> Call:
    reply = f"gist {number}\nof two lines"
    return Call.about(
        Document(document_id="d1"), page_index=number, request_sha=f"{number:016x}", reply=reply,
        prompt_tokens=5, seconds=0.5, problem=problem,
    )  # fmt: skip


def journal(warehouse: UPath, attempt: int = 1) -> Journal:
    return Journal(warehouse, STEP, UNIT, attempt)


def files(warehouse: UPath) -> list[UPath]:
    return sorted((warehouse / "journal" / STEP).glob("*"))


def cut_short(warehouse: UPath, *calls: Call) -> None:
    """What a process leaves that finishes these calls of the unit and dies."""

    async def dying() -> None:
        async with journal(warehouse) as opened:
            for finished in calls:
                await opened.add(finished)
            raise EngineError("dead")

    with pytest.raises(EngineError):
        asyncio.run(dying())


def left(warehouse: UPath) -> tuple[Call, ...]:
    return journal(warehouse).read()


@pytest.fixture
def warehouse(tmp_path: Path) -> UPath:
    return as_path(tmp_path)


def test_calls_are_read_again_until_the_unit_is_committed(warehouse: UPath) -> None:
    """Each is on disk before the next one is sent."""
    calls = [call(number) for number in range(3)]
    cut_short(warehouse, *calls[:2])
    assert [*journal_files(warehouse)] == [(*files(warehouse), STEP, UNIT)]
    assert journal(warehouse, attempt=2).read() == (), "an attempt has a journal of its own"

    async def again() -> None:
        async with journal(warehouse) as opened:
            assert opened.read() == tuple(calls[:2])
            for number in (2, 3):
                await opened.add(call(number))
                assert left(warehouse) == tuple(call(n) for n in range(number + 1))
            names = [file.name for file in files(warehouse)]
            assert names == [f"{UNIT}.1.{number}.jsonl" for number in (0, 1)], "its own, and ours"

    asyncio.run(again())
    assert files(warehouse) == []


@pytest.mark.parametrize(
    "junk", [b'{"document_id": "d1", "sta', b"\xff\xfe\x00", b"[1]\n", b"{}\n", b'"text"\n']
)
def test_a_torn_or_foreign_line_is_left_out(warehouse: UPath, junk: bytes) -> None:
    cut_short(warehouse, call(0))
    (file,) = files(warehouse)
    file.write_bytes(file.read_bytes() + junk)
    assert left(warehouse) == (call(0),)
    file.with_name(f"{UNIT}.1.1.jsonl").write_bytes(junk + file.read_bytes())
    (file.parent / "notes.txt").write_text("not ours")
    assert left(warehouse) == (call(0), call(0))


def test_what_got_no_reply_is_not_kept(warehouse: UPath) -> None:
    problems: list[Problem | None] = ["timeout", "engine_failed", None, "truncated"]
    cut_short(warehouse, *(call(n, problem) for n, problem in enumerate(problems)))
    assert [replied.page_index for replied in left(warehouse)] == [2, 3]


def test_a_journal_that_cannot_be_written_ends_the_unit(warehouse: UPath) -> None:
    """And one that cannot be read stops nothing."""
    (warehouse / "journal").write_text("a file, not a folder")
    with pytest.raises(StorageError, match="File exists"):
        cut_short(warehouse, call(0))
    assert left(warehouse) == ()
    assert list(journal_files(warehouse)) == []


def test_a_journal_does_not_wait_for_commits(warehouse: UPath) -> None:
    """All threads that commit wait for a slow disk; a call is kept nevertheless."""
    may_commit = threading.Event()

    async def full() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        committing = asyncio.create_task(asyncio.to_thread(may_commit.wait, 60))
        await asyncio.sleep(0)
        try:
            await asyncio.wait_for(journal(warehouse).add(call(0)), 30)
            assert len(files(warehouse)) == 1
        finally:
            may_commit.set()
            await committing

    asyncio.run(full())


def test_a_call_that_is_being_written_when_its_unit_ends_is_written(
    warehouse: UPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All threads that write are busy when another call's error cancels ours."""
    may_write = threading.Event()
    writers = ThreadPoolExecutor(1)
    monkeypatch.setattr("pipeline.asking.replies._WRITERS", writers)

    async def cancelled() -> None:
        writers.submit(may_write.wait, 60)
        async with journal(warehouse) as opened:
            adding = asyncio.create_task(opened.add(call(0)))
            await asyncio.sleep(0)
            adding.cancel()
            await asyncio.sleep(0.01)
            assert not adding.done(), "it waits until it is written"
            may_write.set()
            await adding

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert left(warehouse) == (call(0),)


def test_files_that_another_process_makes_meanwhile_are_its_own(warehouse: UPath) -> None:
    """Two workers execute a unit at once, as each knows only of what it has read."""

    async def both() -> None:
        first, second = journal(warehouse), journal(warehouse)
        assert first.read() == second.read() == ()
        for of_process, number in ((first, 0), (second, 1), (first, 2)):
            await of_process.add(call(number))

    asyncio.run(both())
    assert len(files(warehouse)) == 2
    assert left(warehouse) == (call(0), call(2), call(1))


def test_a_call_that_comes_after_the_commit_leaves_nothing(warehouse: UPath) -> None:
    async def late() -> None:
        async with journal(warehouse) as opened:
            await opened.add(call(0))
            opened.delete()
            assert files(warehouse) == []
            await opened.add(call(1))
            assert len(files(warehouse)) == 1

    asyncio.run(late())
    assert files(warehouse) == []


@pytest.fixture
def store(tmp_path: Path) -> UPath:
    """An object store that needs no server."""
    return as_path(f"memory://{tmp_path.name}")


def test_an_object_store_gets_parts_of_twenty_calls(store: UPath) -> None:
    async def many() -> None:
        async with journal(store) as opened:
            for number in range(45):
                await opened.add(call(number))
            assert len(left(store)) == 40, "the unit is still open"
            raise EngineError("dead")

    with pytest.raises(EngineError):
        asyncio.run(many())
    assert [f.read_bytes().count(b'"d1"') for f in files(store)] == [20, 20, 5]
    assert left(store) == tuple(map(call, range(45))), "what is pending is written at an error"


def test_an_object_store_gets_a_part_after_a_while(
    store: UPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.asking.replies._SECONDS_A_FILE", 0.01)

    async def two() -> None:
        async with journal(store) as opened:
            for number in range(2):
                await opened.add(call(number))
                while len(files(store)) <= number:
                    await asyncio.sleep(0.01)

    asyncio.run(two())
    assert files(store) == []
