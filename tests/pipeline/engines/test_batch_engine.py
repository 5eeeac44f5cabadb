"""engine=batch against a server on loopback: waves, outcomes of lines and of batches, and what a
second process takes up."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.compose import compose
from pipeline.core.engine import Reply, Resumable
from pipeline.core.errors import OutageError, StartError
from pipeline.engines.batch import BatchEngine, BatchSettings
from pipeline.files.place import as_path
from tests.pipeline.engines.test_openai_engine import KEY, NO_PATIENCE, request
from tests.support.engines.loopback_batches import BatchServer
from tests.support.engines.loopback_server import Answer

QUICK = {"wave_seconds": 0.1, "look_seconds": 0.02, "retries": 1, "outage_minutes": 0.0}
Use = Callable[[BatchEngine], Awaitable[Any]]


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("pipeline.engines.outage._FIRST_WAIT", 0.01)


@cache
def composed() -> dict[str, Any]:
    section: dict[str, Any] = compose(["engine=batch", "engine.base_url=x", "engine.model=m"])
    return dict(section["engine"])


def settings(url: str, **changes: Any) -> BatchSettings:
    return BatchSettings.model_validate({**composed(), "base_url": url, **QUICK, **changes})


def used(made: BatchSettings, use: Use, folder: Path | None = None) -> Any:
    async def start_and_use() -> Any:
        engine = await made.start()
        assert isinstance(engine, Resumable)
        if folder:
            await engine.resume(as_path(folder))
        try:
            return await use(engine)
        finally:
            await engine.close()

    return asyncio.run(start_and_use())


def replies(
    server: BatchServer, contents: Sequence[str], folder: Path | None = None, **changes: Any
) -> list[Reply]:
    async def all_at_once(engine: BatchEngine) -> list[Reply]:
        return await asyncio.gather(*(engine.generate(request(one)) for one in contents))

    found: list[Reply] = used(settings(server.url, **changes), all_at_once, folder)
    return found


def echo(body: dict[str, Any]) -> Answer:
    return Answer(text=f"said {body['messages'][0]['content']}")


def is_a(body: dict[str, Any]) -> bool:
    return bool(body["messages"][0]["content"] == "a")


def test_requests_that_come_together_are_one_batch() -> None:
    with BatchServer(answer=echo, looks=3) as server:
        first, second = replies(server, ["one two", "three"])
    assert (first.text, first.finish_reason, first.problem) == ("said one two", "stop", None)
    assert (first.prompt_tokens, first.cached_tokens, first.reply_tokens) == (5, 1, 3)
    assert (second.text, second.answered_by) == ("said three", "m")
    assert first.seconds >= 0.1
    assert server.waves() == [["one two", "three"]]
    assert server.num_ready == 0, "no reply was requested at the full price"


def test_a_line_has_what_engine_openai_sends() -> None:
    async def one(engine: BatchEngine) -> Reply:
        return await engine.generate(request("a", seed=7, temperature=0.5))

    args = {"args": {"top_p": 0.9}, "thinking_tokens": 500}
    with BatchServer() as server:
        used(settings(server.url, **args), one)
        (line,) = map(json.loads, server.files["file-0"].splitlines())
    assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
    assert line["body"] == {
        "model": "m", "messages": [{"role": "user", "content": "a"}], "max_tokens": 510,
        "temperature": 0.5, "seed": 7, "top_p": 0.9,
    }  # fmt: skip


def test_a_request_that_follows_from_a_reply_is_in_the_next_wave() -> None:
    async def in_turn(engine: BatchEngine) -> Reply:
        told = await engine.generate(request("first"))
        return await engine.generate(request(told.text))

    async def two_chains(engine: BatchEngine) -> list[Reply]:
        return list(await asyncio.gather(in_turn(engine), in_turn(engine)))

    with BatchServer(answer=echo) as server:
        used(settings(server.url), two_chains)
    assert server.waves() == [["first", "first"], ["said first", "said first"]]


@pytest.mark.parametrize(
    ("limit", "waves"),
    [({"max_requests": 2}, [["a", "b"], ["c", "d"], ["e"]]), ({"max_megabytes": 1}, None)],
)
def test_a_full_wave_is_sent_at_once(
    limit: dict[str, Any], waves: list[list[str]] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By bytes with a megabyte of 250: a body has 94, so that two fit."""
    monkeypatch.setattr("pipeline.engines.batch._MEGABYTE", 250)
    with BatchServer() as server:
        replies(server, ["a", "b", "c", "d", "e"], **limit)
    sizes = sorted(map(len, server.waves()))
    assert sizes == [1, 2, 2]
    assert waves is None or sorted(server.waves()) == sorted(waves)


def test_a_line_that_the_server_refuses_is_a_problem_of_its_own() -> None:
    def refusing(body: dict[str, Any]) -> Answer:
        message = {"bad": "no such thing", "long": "longer than max_model_len"}
        told = message.get(body["messages"][0]["content"])
        return (
            Answer(status=400, body=json.dumps({"error": {"message": told}}))
            if told
            else echo(body)
        )

    with BatchServer(answer=refusing) as server:
        good, bad, long = replies(server, ["good", "bad", "long"])
    assert good.text == "said good"
    assert (bad.text, bad.finish_reason, bad.problem) == ("400: no such thing", "abort", "refused")
    assert (long.finish_reason, long.problem) == ("abort", "context_overflow")
    assert len(server.batches) == 1, "what is at fault itself is not sent again"


@pytest.mark.parametrize(
    ("answer", "text", "problem"),
    [
        (Answer(status=500, body="{}"), "500: {}", "refused"),
        (Answer(status=429, body="{}"), "429: {}", "refused"),
        (Answer(hang_up=True), "server_error: it broke", None),
        (Answer(body="{}"), "the response has no reply of text", None),
        (Answer(body="[7]"), "the response has no reply of text", None),
    ],
)
def test_a_line_that_fails_goes_into_the_next_wave(
    answer: Answer, text: str, problem: str | None
) -> None:
    """`problem` None with `abort` is engine_failed."""
    with BatchServer(answer=lambda body: answer) as server:
        (found,) = replies(server, ["a"])
    assert (found.text, found.finish_reason, found.problem) == (text, "abort", problem)
    assert server.waves() == [["a"], ["a"]], "once, as retries=1"
    rest = iter([answer])
    with BatchServer(answer=lambda body: next(rest, Answer())) as server:
        (found,) = replies(server, ["a"])
    assert found.text == "a short reply"


def test_what_an_expired_batch_has_left_is_sent_again_alone() -> None:
    with BatchServer(answer=echo, statuses=["expired"], is_reached=is_a) as server:
        found = replies(server, ["a", "b"])
    assert [one.text for one in found] == ["said a", "said b"]
    assert server.waves() == [["a", "b"], ["b"]]


def test_one_that_expires_each_time_is_given_up() -> None:
    with BatchServer(statuses=["expired"] * 9) as server:
        (found,) = replies(server, ["a"])
    assert found.text == "the batch ended without this reply (expired)"
    assert (found.finish_reason, found.problem, len(server.batches)) == ("abort", None, 2)


def refusal(server: BatchServer, folder: Path | None = None, **changes: Any) -> str:
    with pytest.raises(OutageError) as caught:
        replies(server, ["a", "b"], folder, **changes)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_batch_that_ends_as_a_whole_ends_the_run_in_one_line(status: str) -> None:
    with BatchServer(statuses=[status], why="no more\ncredit") as server:
        told = refusal(server)
    assert told.startswith(f"engine.base_url={server.url}: the server refuses a batch (batch-0 ")
    assert (f"{status} no more credit)" if status == "failed" else f"{status})") in told
    assert told.endswith("run the same command to resume once that is fixed")
    assert len(server.batches) == 1


def test_a_batch_that_cannot_be_made_ends_the_run_in_one_line() -> None:
    body = json.dumps({"error": {"message": "batches are not for m"}})
    with BatchServer(refusals=[Answer(status=400, body=body)] * 9) as server:
        assert "refuses a batch (400: batches are not for m); run" in refusal(server)
    assert len(server.refusals) == 8


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_is_busy_is_tried_again(status: int) -> None:
    with BatchServer(refusals=[Answer(status=status)]) as server:
        found = replies(server, ["a"], outage_minutes=1.0)
    assert [one.text for one in found] == ["a short reply"]
    assert len(server.batches) == 1


def test_a_key_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with BatchServer(key=KEY) as server:
        with pytest.raises(StartError, match="put it into OPENAI_API_KEY"):
            replies(server, ["a"])
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert [one.text for one in replies(server, ["a"])] == ["a short reply"]


def test_a_context_that_is_not_listed_is_asked_for() -> None:
    with BatchServer(model={"id": "m"}) as server:
        with pytest.raises(StartError, match=r"set engine\.context_tokens"):
            replies(server, ["a"])
        assert replies(server, ["a"], context_tokens=50)


def killed_meanwhile(server: BatchServer, contents: Sequence[str], folder: Path) -> None:
    """Ask, and end once the server has a batch, which goes on there."""

    async def ask(engine: BatchEngine) -> None:
        asked = [asyncio.create_task(engine.generate(request(one))) for one in contents]
        while server.num_looks < 2:
            await asyncio.sleep(0.01)
        assert engine.waiting_for().startswith(f"batch-0 (0 of {len(contents)} requests) since ")
        for task in asked:
            task.cancel()

    server.is_held = True
    used(settings(server.url), ask, folder)
    server.is_held = False


def test_the_next_process_waits_for_the_batch_and_pays_nothing_twice(tmp_path: Path) -> None:
    with BatchServer(answer=echo) as server:
        killed_meanwhile(server, ["a", "b", "b"], tmp_path)
        found = replies(server, ["c", "b", "a", "b", "b"], tmp_path)
    assert [one.text for one in found] == ["said c", "said b", "said a", "said b", "said b"]
    assert server.waves() == [["a", "b", "b"], ["c", "b"]], "each line answers once"


def test_a_batch_of_which_nothing_is_asked_is_not_looked_at(tmp_path: Path) -> None:
    with BatchServer() as server:
        killed_meanwhile(server, ["a"], tmp_path)
        before = server.batches["batch-0"]["looks"]
        replies(server, ["c"], tmp_path)
        assert server.batches["batch-0"]["looks"] == before


@pytest.mark.parametrize("status", ["failed", "cancelled", "expired"])
def test_what_a_batch_has_not_answered_meanwhile_is_sent_again(status: str, tmp_path: Path) -> None:
    with BatchServer(answer=echo, statuses=[status], is_reached=is_a) as server:
        killed_meanwhile(server, ["a", "b"], tmp_path)
        found = replies(server, ["a", "b"], tmp_path)
    assert [one.text for one in found] == ["said a", "said b"]
    again = ["a", "b"] if status == "failed" else ["b"]
    assert server.waves() == [["a", "b"], again]


def test_a_batch_that_the_server_has_forgotten_is_sent_again(tmp_path: Path) -> None:
    with BatchServer() as server:
        killed_meanwhile(server, ["a"], tmp_path)
        server.batches.clear()
        replies(server, ["a"], tmp_path)
        assert server.waves() == [["a"]]
    assert len([*tmp_path.glob("*.json")]) == 1, "the note of the forgotten one is deleted"


def test_a_batch_whose_creation_was_cut_off_is_found(tmp_path: Path) -> None:
    """By the file that it is of."""
    with BatchServer(is_cut_off=True) as server:
        found = replies(server, ["a"], tmp_path, outage_minutes=1.0)
    assert [one.text for one in found] == ["a short reply"]
    assert len(server.batches) == 1


@pytest.mark.parametrize("is_killed", [True, False])
@pytest.mark.parametrize("is_there", [True, False])
def test_where_no_batches_are_listed_the_user_says_whether_there_is_one(
    is_there: bool, is_killed: bool, tmp_path: Path
) -> None:
    """It is not paid twice unasked, by the same process or the next."""
    with BatchServer(answer=echo, can_list=False) as server:
        if is_killed:
            killed_while_it_is_created(server, tmp_path)
        else:
            server.is_cut_off = True
        for _ in range(2):
            with pytest.raises(OutageError, match="of the file file-0 may have been") as caught:
                replies(server, ["a"], tmp_path, outage_minutes=1.0)
        (note,), told = tmp_path.glob("*.json"), str(caught.value)
        assert f'write its id as "batch" into {note} and remove "sha256" there, else delete' in told
        assert len(server.batches) == 1
        if is_there:
            noted = {**json.loads(note.read_text()), "batch": "batch-0"}
            note.write_text(json.dumps({k: v for k, v in noted.items() if k != "sha256"}))
        else:
            note.unlink()
        assert [one.text for one in replies(server, ["a"], tmp_path)] == ["said a"]
        assert len(server.batches) == (1 if is_there else 2)


def killed_while_it_is_created(server: BatchServer, folder: Path) -> None:
    """Between the server's creation of the batch and its response."""

    async def ask(engine: BatchEngine) -> None:
        asked = asyncio.create_task(engine.generate(request("a")))
        while not server.batches:
            await asyncio.sleep(0.01)
        asked.cancel()

    server.is_silent = True
    used(settings(server.url), ask, folder)
    server.is_silent = False


def test_one_whose_id_never_came_is_found_by_its_file(tmp_path: Path) -> None:
    with BatchServer(answer=echo) as server:
        killed_while_it_is_created(server, tmp_path)
        assert [one.text for one in replies(server, ["a"], tmp_path)] == ["said a"]
        assert len(server.batches) == 1


def test_a_server_that_cannot_say_what_became_of_a_batch_is_asked_by_the_next_process(
    tmp_path: Path,
) -> None:
    with BatchServer(answer=echo) as server:
        killed_meanwhile(server, ["a", "b"], tmp_path)
        server.look_status = 500
        assert "the server refuses a batch (500: {})" in refusal(server, tmp_path)
        server.look_status = 200
        assert len(replies(server, ["a", "b"], tmp_path)) == 2
    assert server.waves() == [["a", "b"]]


def test_a_server_that_goes_away_meanwhile_is_one_line_and_nothing_is_paid_twice(
    tmp_path: Path,
) -> None:
    with BatchServer(answer=echo) as server:
        killed_meanwhile(server, ["a"], tmp_path)
    with pytest.raises(StartError):
        replies(server, ["a"], tmp_path)
    assert [*tmp_path.glob("*.json")], "it is still noted"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"max_requests": 0}, "max_requests"),
        ({"max_megabytes": -1}, "max_megabytes"),
        ({"wave_seconds": 0.0}, "wave_seconds"),
        ({"look_seconds": "often"}, "look_seconds"),
        ({"args": {"max_tokens": 5}}, "max_tokens is set by the engine itself"),
    ],
)
def test_settings_that_cannot_be(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        settings("http://h/v1", **change)


def test_only_what_changes_replies_is_hashed() -> None:
    one, other = settings("http://h/v1"), settings("http://o/v1", max_requests=3, wave_seconds=9.0)
    assert one.identity() == other.identity()
    assert one.title == "batch:m"
    assert NO_PATIENCE["retries"] == 0
