"""A server that is away has not replied: requests wait for it, and none gets a row for it."""

import asyncio
import importlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import openai
import pytest

from pipeline.core.engine import Reply
from pipeline.core.errors import OutageError
from pipeline.engines.openai import OpenAIEngine
from pipeline.engines.openai_client import FailedError, Gate
from tests.pipeline.engines.test_openai_engine import AWAY, settings, with_engine
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.reading import request

http: Any = importlib.import_module(openai.DefaultHttpxClient.__mro__[1].__module__.split(".")[0])
REFUSING = (400, 402, 404, 408, 429, 451, 500, 503)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.engines.openai_client._FIRST_WAIT", 0.01)
    monkeypatch.setattr("pipeline.engines.openai_client._LONGEST_WAIT", 0.05)


CUT_OFF = 0  # in place of a status


@dataclass
class Server:
    """Fails with these statuses, for requests and for probes, and then replies."""

    failures: list[int] = field(default_factory=list)
    of_probe: list[int] = field(default_factory=list)
    num_sent: int = 0
    num_probed: int = 0

    async def send(self) -> str:
        self.num_sent += 1
        if self.failures:
            raise FailedError("no", status=self.failures.pop(0))
        return "reply"

    async def probe(self) -> None:
        self.num_probed += 1
        if self.of_probe:
            raise FailedError("not there", status=self.of_probe.pop(0))

    def gate(self, minutes: float = AWAY, retries: int = 2) -> Gate:
        return Gate("http://h/v1", self.probe, minutes, retries)


@pytest.mark.parametrize("status", [CUT_OFF, 401, 404, 429, 500, 503])
def test_after_an_outage_the_same_request_is_sent_again(status: int) -> None:
    """Even one that the server would otherwise be right to refuse, such as a 404 of a proxy."""
    server = Server([status], of_probe=[503, CUT_OFF, 404])
    assert asyncio.run(server.gate(retries=0).send(server.send)) == "reply"
    assert (server.num_sent, server.num_probed) == (2, 4)


@pytest.mark.parametrize(
    ("status", "minutes", "num_sent"),
    [(CUT_OFF, AWAY, 3), (500, AWAY, 3), (401, AWAY, 3), (400, AWAY, 1), (429, 0.0, 1)],
)
def test_a_request_that_alone_fails_is_given_up(status: int, minutes: float, num_sent: int) -> None:
    server = Server([status] * 9)
    with pytest.raises(FailedError):
        asyncio.run(server.gate(minutes, retries=2).send(server.send))
    assert server.num_sent == num_sent


class Fragile(Server):
    """Is away at the first probe after each request."""

    async def send(self) -> str:
        self.of_probe = [503]
        return await super().send()


def test_a_request_that_brings_the_server_down_is_given_up() -> None:
    server = Fragile([CUT_OFF] * 9)
    with pytest.raises(FailedError):
        asyncio.run(server.gate(retries=2).send(server.send))
    assert server.num_sent == 3


def test_one_that_is_always_there_at_the_second_probe_ends_the_run() -> None:
    server = Fragile([429] * 1000)
    with pytest.raises(OutageError, match=r"outage_minutes\); run the same"):
        asyncio.run(asyncio.wait_for(server.gate(minutes=0.001).send(server.send), 60))


def test_a_server_that_says_that_it_is_busy_is_waited_for() -> None:
    server = Server([429, 503] * 10)
    assert asyncio.run(server.gate(retries=0).send(server.send)) == "reply"


@pytest.mark.parametrize(("status", "minutes"), [(503, 0.0), (401, AWAY)])
def test_one_that_stays_away_or_refuses_the_key_ends_the_run(status: int, minutes: float) -> None:
    """After that nothing is sent."""
    server = Server([status], of_probe=[status] * 9)

    async def twice() -> None:
        gate = server.gate(minutes)
        for _ in range(2):
            with pytest.raises(OutageError, match=r"^http://h/v1: .*; run the same command"):
                await gate.send(server.send)

    asyncio.run(twice())
    assert (server.num_sent, server.num_probed) == (1, 1)


def test_an_outage_does_not_count_against_a_request_that_failed_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]

    class Clocked(Server):
        async def send(self) -> str:
            self.of_probe = [503] if now[0] else []  # there at the first failure alone
            now[0] += 60.0
            return await super().send()

        async def probe(self) -> None:
            now[0] += 120.0 if self.of_probe else 0.0
            await super().probe()

    monkeypatch.setattr(
        "pipeline.engines.openai_client.time", SimpleNamespace(monotonic=lambda: now[0])
    )
    server = Clocked([429, 429])
    assert asyncio.run(server.gate(minutes=2.5).send(server.send)) == "reply"
    assert now[0] == 60.0 * 3 + 120.0


def test_all_requests_wait_for_one_probe() -> None:
    server = Server([503] * 30, of_probe=[503] * 5)
    gate = server.gate()

    async def many() -> list[str]:
        sending = [asyncio.create_task(gate.send(server.send)) for _ in range(30)]
        while not gate.waiting_for():
            await asyncio.sleep(0)
        assert gate.waiting_for() == "http://h/v1 since 0 s"
        late = asyncio.create_task(gate.send(server.send))
        await asyncio.sleep(0)
        assert server.num_sent == 30, "no more are sent meanwhile"
        return [*await asyncio.gather(*sending), await late]

    assert asyncio.run(many()) == ["reply"] * 31
    assert server.num_probed == 6
    assert gate.waiting_for() == ""


# The engine, and a server.


def on(
    server: LoopbackServer, use: Callable[[OpenAIEngine], Awaitable[Any]], **changes: Any
) -> Any:
    return with_engine(
        settings(server.url, **{"outage_minutes": AWAY, "retries": 1, **changes}), use
    )


@pytest.mark.slow
def test_an_outage_does_not_count_towards_a_deadline() -> None:
    async def through_it(engine: OpenAIEngine) -> Reply:
        server.ready = Answer(status=503, body="{}")
        server.answer = lambda body: server.ready
        asking = asyncio.create_task(engine.generate(request()))
        await asyncio.sleep(1.5)
        assert not asking.done()
        server.ready, server.answer = Answer(text="ready"), lambda body: Answer()
        return await asking

    with LoopbackServer() as server:
        reply = on(server, through_it, deadline_seconds=0.5)
        assert reply.problem in (None, "timeout")  # a busy machine may be late itself
        assert reply.seconds <= 0.5 or reply.problem is None


@pytest.mark.slow
def test_a_late_reply_is_a_timeout_only_where_the_server_answers_others() -> None:
    async def late(engine: OpenAIEngine) -> Reply:
        return await engine.generate(request())

    with LoopbackServer(answer=lambda body: Answer(seconds=60)) as server:
        reply = on(server, late, deadline_seconds=2.0)
    assert (reply.problem, reply.seconds) == ("timeout", 2.0)

    async def frozen(engine: OpenAIEngine) -> Reply:
        server.ready = Answer(seconds=60)
        return await engine.generate(request())

    with (
        LoopbackServer(answer=lambda body: Answer(seconds=60)) as server,
        pytest.raises(OutageError, match="no reply within 1 s"),
    ):
        on(server, frozen, deadline_seconds=1.0, outage_minutes=0.0)


async def poison_among_bread(engine: OpenAIEngine) -> Reply:
    """The reply to a request that fails while others are answered."""
    failing = asyncio.create_task(engine.generate(request("poison")))
    while not failing.done():
        assert (await engine.generate(request("bread"))).text == "a short reply"
    return await failing


DEEP = json.dumps({"choices": [{"message": {"content": "x"}}]})[:-1] + ', "more": ' + "[" * 100_000
NO_TEXT = (
    '{"choices": []}', "{}", "[1]", "null", '{"choices": [{}]}', '{"choices": {"a": 1}}',
    '{"choices": [7]}', '{"choices": [{"message": null}]}',
    *(f'{{"choices": [{{"finish_reason": "stop", "message": {{"content": {content}}}}}]}}'
      for content in ("7", "{}", "[7]", "true", "NaN", '[{"type": "image"}]')),
)  # fmt: skip
BAD = [
    *((Answer(status=status, body="{}"), "refused", f"{status}: ") for status in REFUSING),
    *((Answer(body=body), None, "the response has no reply of text") for body in NO_TEXT),
    *((Answer(body=body), None, "the response is not JSON") for body in ('{"choices', '"text"')),
    (Answer(status=413, body="{}"), "context_overflow", "413: "),
    (
        Answer(status=307, body="", headers={"location": "http://127.0.0.1:9/v1"}),
        None,
        "no server answers",
    ),
    (Answer(hang_up=True), None, "no server answers"),
    (Answer(body=DEEP + "]" * 100_000 + "}"), None, "the response is not JSON"),
]


@pytest.mark.parametrize(("bad", "problem", "says"), BAD)
def test_one_bad_request_among_good_ones(bad: Answer, problem: str | None, says: str) -> None:
    """It is given up, and the good ones are answered meanwhile. Where it is told that the server is
    busy, after `outage_minutes`; where it gets no reply that can be read, after it was sent again.
    """

    def answer(body: dict[str, Any]) -> Answer:
        return bad if "poison" in body["messages"][0]["content"] else Answer()

    with LoopbackServer(answer=answer) as server:
        reply = on(server, poison_among_bread, outage_minutes=0.002)
    assert (reply.finish_reason, reply.problem) == ("abort", problem)
    assert says in reply.text
    if problem is None:
        sent = [asked.body["messages"][0]["content"] for asked in server.asked]
        assert sent.count("poison") == 2


@pytest.mark.parametrize(
    "error",
    [http.ReadError("x"), http.InvalidURL("x"), http.StreamClosed(), openai.OpenAIError("x"),
     UnicodeDecodeError("utf-8", b"x", 0, 1, "x"), RecursionError("x")],
    ids=repr,
)  # fmt: skip
def test_every_exception_of_the_client_is_the_requests(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = http.AsyncHTTPTransport.handle_async_request

    async def raising(self: Any, sent: Any) -> Any:
        if b"poison" in sent.content:
            raise error
        return await send(self, sent)

    monkeypatch.setattr(http.AsyncHTTPTransport, "handle_async_request", raising)
    with LoopbackServer() as server:
        assert on(server, poison_among_bread).finish_reason == "abort"


def test_tokens_are_counted_when_the_server_is_back() -> None:
    async def count(engine: OpenAIEngine) -> int:
        server.is_busy_counting = True
        counting = asyncio.create_task(engine.count_tokens(request("one two").messages))
        while server.num_counted < 3:
            await asyncio.sleep(0.01)
        server.is_busy_counting = False
        return await counting

    with LoopbackServer() as server:
        assert on(server, count) == 5
