"""A server that is away has not replied: requests wait for it, and none gets a row for it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.core.engine import Reply
from pipeline.core.errors import OutageError
from pipeline.engines.openai import OpenAIEngine
from pipeline.engines.openai_client import FailedError, Gate
from tests.pipeline.engines.test_openai_engine import AWAY, settings, with_engine
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.reading import request

REFUSING = (400, 402, 404, 408, 429, 451, 500, 503)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.engines.openai_client._FIRST_WAIT", 0.01)
    monkeypatch.setattr("pipeline.engines.openai_client._LONGEST_WAIT", 0.05)


CUT_OFF = 0  # in place of a status


@dataclass
class Server:
    """Fails with these statuses, for requests and for probes, and then replies."""

    failures: list[int]
    of_probe: list[int] = field(default_factory=list)
    is_fragile: bool = False  # away at the first probe after each request
    num_sent: int = 0
    num_probed: int = 0

    async def reply(self) -> str:
        self.num_sent += 1
        if self.is_fragile:
            self.of_probe = [503]
        if self.failures:
            raise FailedError("no", status=self.failures.pop(0))
        return "reply"

    async def probe(self) -> None:
        self.num_probed += 1
        if self.of_probe:
            raise FailedError("not there", status=self.of_probe.pop(0))

    def gate(self, minutes: float = AWAY, retries: int = 2) -> Gate:
        return Gate("http://h/v1", self.probe, minutes, retries)

    def send(self, minutes: float = AWAY, retries: int = 2) -> str:
        return asyncio.run(asyncio.wait_for(self.gate(minutes, retries).send(self.reply), 60))


@pytest.mark.parametrize(
    ("failures", "of_probe"),
    [
        *(([status], [503, CUT_OFF, 404]) for status in (CUT_OFF, 401, 404, 429, 500, 503)),
        ([429, 503] * 10, []),
    ],
)
def test_after_an_outage_and_while_it_is_busy_the_same_request_is_sent_again(
    failures: list[int], of_probe: list[int]
) -> None:
    """Even one that the server would otherwise be right to refuse, such as a 404 of a proxy."""
    expected = "reply", len(failures) + 1, len(failures) + len(of_probe)
    server = Server(failures, of_probe)
    assert (server.send(retries=0), server.num_sent, server.num_probed) == expected


@pytest.mark.parametrize(
    ("status", "minutes", "num_sent", "is_fragile"),
    [(CUT_OFF, AWAY, 3, False), (500, AWAY, 3, False), (401, AWAY, 3, False), (400, AWAY, 1, False),
     (429, 0.0, 1, False), (CUT_OFF, AWAY, 3, True)],
)  # fmt: skip
def test_a_request_that_alone_fails_or_brings_the_server_down_is_given_up(
    status: int, minutes: float, num_sent: int, is_fragile: bool
) -> None:
    server = Server([status] * 9, is_fragile=is_fragile)
    with pytest.raises(FailedError):
        server.send(minutes, retries=2)
    assert server.num_sent == num_sent


def test_one_that_is_always_there_at_the_second_probe_ends_the_run() -> None:
    with pytest.raises(OutageError, match=r"outage_minutes\); run the same"):
        Server([429] * 1000, is_fragile=True).send(minutes=0.001)


@pytest.mark.parametrize(("status", "minutes"), [(503, 0.0), (401, AWAY)])
def test_one_that_stays_away_or_refuses_the_key_ends_the_run(status: int, minutes: float) -> None:
    """After that nothing is sent."""
    server = Server([status], of_probe=[status] * 9)

    async def twice() -> None:
        gate = server.gate(minutes)
        for _ in range(2):
            with pytest.raises(OutageError, match=r"^http://h/v1: .*; run the same command"):
                await gate.send(server.reply)

    asyncio.run(twice())
    assert (server.num_sent, server.num_probed) == (1, 1)


def test_an_outage_does_not_count_against_a_request_that_failed_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]

    class Clocked(Server):
        async def reply(self) -> str:
            self.of_probe = [503] if now[0] else []  # there at the first failure alone
            now[0] += 60.0
            return await super().reply()

        async def probe(self) -> None:
            now[0] += 120.0 if self.of_probe else 0.0
            await super().probe()

    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("pipeline.engines.openai_client.time", clock)
    assert Clocked([429, 429]).send(minutes=2.5) == "reply"
    assert now[0] == 60.0 * 3 + 120.0


def test_all_requests_wait_for_one_probe() -> None:
    server = Server([503] * 30, of_probe=[503] * 5)
    gate = server.gate()

    async def many() -> list[str]:
        sending = [asyncio.create_task(gate.send(server.reply)) for _ in range(30)]
        while not gate.waiting_for():
            await asyncio.sleep(0)
        assert gate.waiting_for() == "http://h/v1 since 0 s"
        late = asyncio.create_task(gate.send(server.reply))
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
    changes = {"outage_minutes": AWAY, "retries": 1, **changes}
    return with_engine(settings(server.url, **changes), use)


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
    async def frozen(engine: OpenAIEngine) -> Reply:
        server.ready = Answer(seconds=60)
        return await engine.generate(request())

    with LoopbackServer(answer=lambda body: Answer(seconds=60)) as server:
        reply = on(server, lambda engine: engine.generate(request()), deadline_seconds=2.0)
        assert (reply.problem, reply.seconds) == ("timeout", 2.0)
        with pytest.raises(OutageError, match="no reply within 1 s"):
            on(server, frozen, deadline_seconds=1.0, outage_minutes=0.0)


async def poison_among_bread(engine: OpenAIEngine) -> Reply:
    """The reply to a request that fails while others are answered."""
    failing = asyncio.create_task(engine.generate(request("poison")))
    while not failing.done():
        assert (await engine.generate(request("bread"))).text == "a short reply"
    return await failing


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
    (Answer(body="[" * 100_000), None, "no reply (RecursionError"),  # as any other exception
    (Answer(status=413, body="{}"), "context_overflow", "413: "),
    (Answer(status=307, body="", headers={"location": "http://127.0.0.1:9/v1"}), None,
     "no server answers"),
    (Answer(hang_up=True), None, "no server answers"),
]  # fmt: skip


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
