"""The bare engine keeps the order of dependence and the number of requests at once; what a worker
records is what it was asked."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from benchmarks.limit import script_of
from benchmarks.peers.bare import Script, replay
from benchmarks.recorder import Sent, read_records, start_recorded
from pipeline.asking.ask import Ask
from pipeline.asking.replies import Replies
from pipeline.core.calls import Subject
from pipeline.core.engine import Reply, Request
from pipeline.core.prompts import Message
from stages.prompts.readagent_memory import PageGist
from tests.benchmarks.test_bench_dependencies import CUTS, NOTES, made
from tests.support.engines.simulated import request, settings
from tests.support.reading import family

REQUESTS = [request(str(number)) for number in range(4)]


class Watched:
    """Answers after a turn of the event loop; keeps how it went."""

    name = "watched"
    context_tokens = 100

    def __init__(self) -> None:
        self.events: list[str] = []
        self.most_at_once = self._now = 0

    async def generate(self, request: Request) -> Reply:
        content = request.messages[0]["content"]
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        self.events.append(f"{content} in")
        await asyncio.sleep(0)
        self.events.append(f"{content} out")
        self._now -= 1
        return Reply(text="", finish_reason="stop")

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return 1


def watched(script: Script, at_once: int) -> Watched:
    engine = Watched()
    seconds, cpu = asyncio.run(replay(engine, script, at_once))
    assert cpu > 0 and seconds > 0
    assert sorted(engine.events) == sorted(f"{n} {way}" for n in range(4) for way in ("in", "out"))
    return engine


def test_a_request_waits_for_those_it_follows_from() -> None:
    engine = watched(Script(REQUESTS, [(2,), (0,), (), (0, 1)]), at_once=4)
    assert engine.events == [f"{n} {way}" for n in (2, 0, 1, 3) for way in ("in", "out")]


def test_requests_are_replayed_in_the_order_they_were_sent() -> None:
    reply = Reply(text="", finish_reason="stop")
    calls = [made(NOTES, page_index=0, request_sha="g"), made(CUTS, page_index=0, request_sha="p")]
    sent = [Sent("p", REQUESTS[1], reply, begun=1.0), Sent("g", REQUESTS[0], reply, begun=2.0)]
    script = script_of(calls, sent)
    assert script.requests == [REQUESTS[1], REQUESTS[0]]
    assert script.waits == [(), (0,)]


def test_what_an_engine_is_asked_is_kept_under_the_name_of_its_call(tmp_path: Path) -> None:
    pages = ["one page", "another page"]

    async def ask() -> Ask:
        engine = settings(decode_tokens_per_second=1e6)
        reader = await start_recorded(tmp_path / "recorded", engine, family(), False)
        asking = Ask(reader, "note", "d1", Replies())
        for index, page in enumerate(pages):
            await asking(PageGist(page=page), Subject(page_index=index))
        return asking

    calls = asyncio.run(ask()).calls()
    (worker,) = read_records(tmp_path / "recorded")
    assert [one.request_sha for one in worker.sent] == [call.request_sha for call in calls]
    assert [one.request.fields for one in worker.sent] == [PageGist(page=p) for p in pages]
    assert [one.reply.text for one in worker.sent] == [call.reply for call in calls]
    assert worker.ready.clock <= worker.sent[0].begun <= worker.sent[1].begun
    assert 0.0 == worker.sent[0].recorder_cpu < worker.sent[1].recorder_cpu == worker.recorder_cpu
