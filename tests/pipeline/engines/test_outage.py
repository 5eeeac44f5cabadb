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
from pipeline.core.errors import EngineError, OutageError, StartError
from pipeline.engines.openai import OpenAIEngine
from pipeline.engines.outage import Blame, FailedError, Outage
from tests.pipeline.engines.test_openai_engine import AWAY, KEY, NO_PATIENCE, request, settings
from tests.support.engines.loopback_server import Answer, LoopbackServer

http: Any = importlib.import_module(openai.DefaultHttpxClient.__mro__[1].__module__.split(".")[0])
REFUSING = (400, 402, 404, 405, 408, 409, 418, 422, 425, 429, 451, 500, 501, 502, 503, 504)


def subclasses(kind: type[Exception]) -> set[type[Exception]]:
    return {kind}.union(*map(subclasses, kind.__subclasses__()))


# Those of the HTTP library, and of the client where it raises them from a response or by itself.
CLIENT_ERRORS = sorted(
    {*subclasses(http.HTTPError), *subclasses(http.StreamError), http.InvalidURL,
     *subclasses(openai.OpenAIError), *subclasses(ValueError) & {UnicodeDecodeError, ValueError},
     RecursionError} - {http.HTTPStatusError, *subclasses(openai.APIStatusError)},
    key=lambda kind: kind.__name__,
)  # fmt: skip


def made(kind: type[Exception], asked: Any) -> Exception:
    """An exception of the kind, whatever its arguments are called."""
    error = kind.__new__(kind)
    Exception.__init__(error, "poisoned")
    error.__dict__.update(request=asked, message="poisoned", body=None, code=None)
    return error


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.engines.outage._FIRST_WAIT", 0.01)
    monkeypatch.setattr("pipeline.engines.outage._LONGEST_WAIT", 0.05)


@dataclass
class Server:
    """Fails as listed, for requests and for probes, and then replies."""

    failures: list[Blame] = field(default_factory=list)
    of_probe: list[Blame] = field(default_factory=list)
    num_sent: int = 0
    num_probed: int = 0

    async def send(self) -> str:
        self.num_sent += 1
        if self.failures:
            raise FailedError("no", self.failures.pop(0))
        return "reply"

    async def probe(self) -> None:
        self.num_probed += 1
        if self.of_probe:
            raise FailedError("not there", self.of_probe.pop(0))

    def outage(self, minutes: float = AWAY, retries: int = 2) -> Outage:
        return Outage("http://h/v1", self.probe, minutes, retries)


@pytest.mark.parametrize("blame", ["server", "either", "request"])
def test_after_an_outage_the_same_request_is_sent_again(blame: Blame) -> None:
    """Even one that the server would otherwise be right to refuse, such as a 404 of a proxy."""
    server = Server([blame], of_probe=["server", "either", "request"])
    assert asyncio.run(server.outage(retries=0).send_when_up(server.send)) == "reply"
    assert (server.num_sent, server.num_probed) == (2, 4)


@pytest.mark.parametrize(("blame", "num_sent"), [("either", 3), ("request", 1)])
def test_a_request_that_alone_fails_is_given_up(blame: Blame, num_sent: int) -> None:
    server = Server([blame] * 9)
    with pytest.raises(FailedError):
        asyncio.run(server.outage(retries=2).send_when_up(server.send))
    assert server.num_sent == num_sent


def test_a_request_that_brings_the_server_down_is_given_up() -> None:
    class Fragile(Server):
        async def send(self) -> str:
            self.of_probe = ["server"]
            return await super().send()

    server = Fragile(["either"] * 9)
    with pytest.raises(FailedError):
        asyncio.run(server.outage(retries=2).send_when_up(server.send))
    assert server.num_sent == 3


def test_a_busy_server_is_waited_for_as_long_as_it_takes() -> None:
    server = Server(["server"] * 20)
    assert asyncio.run(server.outage(retries=0).send_when_up(server.send)) == "reply"


def test_one_that_stays_away_ends_the_run() -> None:
    server = Server(["server"] * 99, of_probe=["server"] * 99)
    with pytest.raises(OutageError, match=r"^http://h/v1: .*outage_minutes\); run the same"):
        asyncio.run(server.outage(minutes=0.0).send_when_up(server.send))


def test_one_that_is_busy_for_too_long_ends_the_run() -> None:
    """For two requests; one that is alone may be at fault itself, but not the next one, too."""
    server = Server(["server"] * 999)

    async def together() -> None:
        outage = server.outage(minutes=0.0005)
        both = (outage.send_when_up(server.send) for _ in range(2))
        for told in await asyncio.gather(*both, return_exceptions=True):
            assert isinstance(told, OutageError)

    async def alone() -> None:
        outage = server.outage(minutes=0.0)
        for kind in (FailedError, OutageError, OutageError):
            with pytest.raises(kind):
                await outage.send_when_up(server.send)
        server.failures = []
        await outage.send_when_up(server.send)
        server.failures = ["server"] * 99
        with pytest.raises(FailedError):
            await outage.send_when_up(server.send)

    asyncio.run(together())
    asyncio.run(alone())


@pytest.mark.parametrize("retries", [0, 2])
def test_one_that_is_busy_for_a_single_request_is_up(retries: int) -> None:
    """Four times as many refusals as there are retries (at least four) are believed, each after
    another request was answered; before the first one, none may have been."""
    bad, good = Server(["server"] * 99), Server()

    async def ask() -> None:
        outage = bad.outage(retries=retries)
        failing = asyncio.create_task(outage.send_when_up(bad.send))
        while not failing.done():
            assert await outage.send_when_up(good.send) == "reply"
            await asyncio.sleep(0.001)
        with pytest.raises(FailedError):
            await failing

    asyncio.run(ask())
    assert bad.num_sent - 4 * max(1, retries) in (0, 1)


def test_counting_tokens_is_no_sign_that_it_is_up() -> None:
    """A server counts them while it is too busy to reply."""
    bad, good = Server(["server"] * 30), Server()

    async def ask() -> str:
        outage = bad.outage(retries=0)
        failing = asyncio.create_task(outage.send_when_up(bad.send))
        while not failing.done():
            await outage.send_when_up(good.send, tells_of_others=False)
            await asyncio.sleep(0.001)
        return await failing

    assert asyncio.run(ask()) == "reply"


def test_one_that_is_always_there_at_the_second_probe_ends_the_run() -> None:
    class Flapping(Server):
        async def send(self) -> str:
            self.of_probe = ["server"]
            raise FailedError("too many requests", "server")

    server = Flapping()

    async def within_a_minute() -> str:
        outage = server.outage(minutes=0.001)
        return await asyncio.wait_for(outage.send_when_up(server.send), 60)

    with pytest.raises(OutageError, match=r"outage_minutes\); run the same"):
        asyncio.run(within_a_minute())


def test_an_outage_does_not_count_against_a_request_that_failed_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]

    class Clocked(Server):
        async def send(self) -> str:
            self.of_probe = ["server"] if now[0] else []  # there at the first failure alone
            now[0] += 60.0
            return await super().send()

        async def probe(self) -> None:
            now[0] += 120.0 if self.of_probe else 0.0
            await super().probe()

    monkeypatch.setattr("pipeline.engines.outage.time", SimpleNamespace(monotonic=lambda: now[0]))
    server = Clocked(["server", "server"])
    assert asyncio.run(server.outage(minutes=2.5).send_when_up(server.send)) == "reply"
    assert now[0] == 60.0 * 3 + 120.0


def test_after_that_nothing_is_sent() -> None:
    server = Server(["server"], of_probe=["server"] * 9)

    async def twice() -> None:
        outage = server.outage(minutes=0.0)
        for _ in range(2):
            with pytest.raises(OutageError):
                await outage.send_when_up(server.send)

    asyncio.run(twice())
    assert (server.num_sent, server.num_probed) == (1, 1)


def test_all_requests_wait_for_one_probe() -> None:
    server = Server(["server"] * 30, of_probe=["server"] * 5)
    outage = server.outage()

    async def many() -> list[str]:
        sending = [asyncio.create_task(outage.send_when_up(server.send)) for _ in range(30)]
        while not outage.waiting_for:
            await asyncio.sleep(0)
        assert outage.waiting_for == "http://h/v1 since 0 s"
        late = asyncio.create_task(outage.send_when_up(server.send))
        await asyncio.sleep(0)
        assert server.num_sent == 30, "no more are sent meanwhile"
        return [*await asyncio.gather(*sending), await late]

    assert asyncio.run(many()) == ["reply"] * 31
    assert server.num_probed == 6
    assert outage.waiting_for == ""


# The engine, and a server.


def with_engine(
    server: LoopbackServer, use: Callable[[OpenAIEngine], Awaitable[Any]], **changes: Any
) -> Any:
    async def start_and_use() -> Any:
        given = {"outage_minutes": AWAY, "retries": 1, **changes}
        return await use(await settings(server.url, **given).start())

    return asyncio.run(start_and_use())


def down(server: LoopbackServer, status: int = 503, body: str = "{}") -> None:
    """From now on every request gets this, the probe too."""
    server.ready = Answer(status=status, body=body)
    server.answer = lambda body_: server.ready


def up(server: LoopbackServer) -> None:
    server.ready = Answer(text="ready")
    server.answer = lambda body: Answer()


@pytest.mark.parametrize("status", [404, 429, 500, 502, 503, 504])
def test_what_a_server_that_is_away_refuses_is_asked_when_it_is_back(status: int) -> None:
    async def through_it(engine: OpenAIEngine) -> list[Reply]:
        down(server, status)
        asking = [asyncio.create_task(engine.generate(request(f"n {n}"))) for n in range(5)]
        while not engine.outage.waiting_for:
            await asyncio.sleep(0.01)
        up(server)
        return list(await asyncio.gather(*asking))

    with LoopbackServer() as server:
        found = with_engine(server, through_it)
    assert [one.text for one in found] == ["a short reply"] * 5
    assert len(server.asked) <= 5 * 2


@pytest.mark.slow
def test_an_outage_does_not_count_towards_a_deadline() -> None:
    """It lasts for several times the deadline."""

    async def through_it(engine: OpenAIEngine) -> Reply:
        down(server)
        asking = asyncio.create_task(engine.generate(request()))
        await asyncio.sleep(1.5)
        assert not asking.done()
        up(server)
        return await asking

    with LoopbackServer() as server:
        found = with_engine(server, through_it, deadline_seconds=0.5)
        assert found.problem in (None, "timeout")  # a busy machine may be late itself
        assert found.seconds <= 0.5 or found.problem is None


@pytest.mark.slow
def test_a_late_reply_is_a_timeout_only_where_the_server_answers_others() -> None:
    async def late(engine: OpenAIEngine) -> Reply:
        return await engine.generate(request())

    with LoopbackServer(answer=lambda body: Answer(seconds=60)) as server:
        found = with_engine(server, late, deadline_seconds=2.0)
    assert (found.problem, found.seconds) == ("timeout", 2.0)

    async def frozen(engine: OpenAIEngine) -> Reply:
        server.ready = Answer(seconds=60)
        return await engine.generate(request())

    with (
        LoopbackServer(answer=lambda body: Answer(seconds=60)) as server,
        pytest.raises(OutageError, match="no reply within 1 s"),
    ):
        with_engine(server, frozen, deadline_seconds=1.0, outage_minutes=0.0)


@pytest.mark.parametrize("last", [Answer(hang_up=True), Answer(vanish=True)])
def test_a_lost_server_is_an_outage(last: Answer) -> None:
    async def lose_it(engine: OpenAIEngine) -> None:
        server.ready, server.answer = last, lambda body: last
        with pytest.raises(OutageError, match=r"no server answers \(.*to resume"):
            await engine.generate(request())

    with LoopbackServer() as server:
        with_engine(server, lose_it, outage_minutes=0.0)


def test_one_that_hangs_up_on_a_single_request_goes_on_without_it() -> None:
    def rude(body: dict[str, Any]) -> Answer:
        return Answer(hang_up="poison" in body["messages"][0]["content"])

    async def ask(engine: OpenAIEngine) -> list[Reply]:
        asked = (request("poison"), request("bread"))
        return list(await asyncio.gather(*(engine.generate(one) for one in asked)))

    with LoopbackServer(answer=rude) as server:
        poison, bread = with_engine(server, ask)
    assert (poison.finish_reason, poison.problem) == ("abort", None)
    assert "no server answers" in poison.text
    assert bread.text == "a short reply"


DEEP = json.dumps({"choices": [{"message": {"content": "x"}}]})[:-1] + ', "more": ' + "[" * 100_000
TO_NOWHERE = {"location": "http://127.0.0.1:9/v1"}
BAD = [
    *((Answer(status=status, body="{}"), "refused", f"{status}: ") for status in REFUSING),
    (Answer(status=413, body="{}"), "context_overflow", "413: "),
    (
        Answer(status=307, body="", headers={"location": "http://127.0.0.1:9/v1"}),
        None,
        "no server answers",
    ),
    (Answer(hang_up=True), None, "no server answers"),
    (Answer(body="[" * 100_000 + "]" * 100_000), None, "the response is not JSON"),
    (Answer(body=DEEP + "]" * 100_000 + "}"), None, "the response is not JSON"),
    (Answer(body="no JSON"), None, "the response is not JSON"),
    (Answer(body="[]"), None, "the response has no reply of text"),
    (Answer(body='{"choices": 1}'), None, "the response has no reply of text"),
]


@pytest.mark.parametrize(("bad", "problem", "says"), BAD)
def test_one_bad_request_among_good_ones(bad: Answer, problem: str | None, says: str) -> None:
    """It is given up, and the good ones are answered meanwhile."""

    def answer(body: dict[str, Any]) -> Answer:
        return bad if "poison" in body["messages"][0]["content"] else Answer()

    async def ask(engine: OpenAIEngine) -> Reply:
        failing = asyncio.create_task(engine.generate(request("poison")))
        while not failing.done():
            assert (await engine.generate(request("bread"))).text == "a short reply"
        return await failing

    with LoopbackServer(answer=answer) as server:
        found = with_engine(server, ask)
    assert (found.finish_reason, found.problem) == ("abort", problem)
    assert says in found.text


@pytest.mark.parametrize("kind", CLIENT_ERRORS, ids=lambda kind: str(kind.__name__))
def test_every_exception_of_the_client_is_the_requests(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    send = http.AsyncHTTPTransport.handle_async_request

    async def raising(self: Any, asked: Any) -> Any:
        if b"poison" in asked.content:
            raise made(kind, asked)
        return await send(self, asked)

    monkeypatch.setattr(http.AsyncHTTPTransport, "handle_async_request", raising)

    async def ask(engine: OpenAIEngine) -> Reply:
        failing = asyncio.create_task(engine.generate(request("poison")))
        while not failing.done():
            assert (await engine.generate(request("bread"))).text == "a short reply"
        return await failing

    with LoopbackServer() as server:
        assert with_engine(server, ask).finish_reason == "abort"


def test_a_key_refused_from_now_on_ends_the_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    async def expire(engine: OpenAIEngine) -> None:
        body = json.dumps({"error": {"message": f"{KEY} (or {KEY[:11]}****cdef) has expired"}})
        down(server, 401, body)
        await engine.generate(request())

    with LoopbackServer(key=KEY) as server, pytest.raises(OutageError) as caught:
        with_engine(server, expire)
    assert str(caught.value) == (
        f"engine.base_url={server.url}: the server refuses the key in OPENAI_API_KEY (401: *** "
        "(or ***) has expired); correct it; run the same command to resume"
    )


def test_tokens_are_counted_when_the_server_is_back() -> None:
    async def count(engine: OpenAIEngine) -> int:
        server.is_busy_counting = True
        counting = asyncio.create_task(engine.count_tokens(request("one two").messages))
        while server.num_counted < 3:
            await asyncio.sleep(0.01)
        server.is_busy_counting = False
        return await counting

    with LoopbackServer() as server:
        assert with_engine(server, count) == 5


def test_neither_is_a_dead_engine() -> None:
    """A worker that dies of it would be restarted, and its documents suspected."""
    assert not issubclass(OutageError, EngineError) and not issubclass(FailedError, EngineError)
    with LoopbackServer() as server:
        url = server.url
    with pytest.raises(StartError, match="no server answers"):
        asyncio.run(settings(url, **NO_PATIENCE).start())
