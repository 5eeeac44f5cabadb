"""`bench`: which call waits for which, their record and replay; figures, readings and dealings, and
the lower bound of `bench schedule`, by hand."""

import asyncio
from abc import ABC
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from benchmarks.dealing import shortest
from benchmarks.dependencies import Made, dependencies, longest_chain
from benchmarks.figures import Bar, figure_of
from benchmarks.limit import script_of
from benchmarks.peers.bare import Script, replay
from benchmarks.reading import Reading
from benchmarks.recorder import Moment, Recorded, Sent, read_records, start_recorded
from benchmarks.schedule import lengths, lower_bound
from pipeline.asking.ask import Ask
from pipeline.asking.replies import Replies
from pipeline.core.calls import Call, Subject
from pipeline.core.engine import Reply, Request
from pipeline.core.rows import Document, Record, UnitRows
from pipeline.work.stage import Stage
from pipeline.work.units import Step
from stages.prompts.readagent_memory import PageGist
from stages.tables.answers import Answer
from stages.tables.pages import Gist
from tests.support.command import refused
from tests.support.engines.simulated import request, settings
from tests.support.reading import Listener, content, family


class _AtOnce(Stage, ABC):
    """A stage; it is never run here."""

    async def run(self, rows: UnitRows, ask: Any) -> Sequence[Record]:
        return ()


class _InTurn(_AtOnce, ABC):
    """Each call waits for the last."""

    asks_in_turn: ClassVar[bool] = True


DOCUMENTS = Step(corpus="c", name="documents", version=1, settings={}, writes=Document)


def step(name: str, *upstream: Step, in_turn: bool = False, writes: type[Record] = Answer) -> Step:
    return replace(
        DOCUMENTS, name=name, writes=writes, upstream=(DOCUMENTS, *upstream),
        stage=_InTurn() if in_turn else _AtOnce(),
    )  # fmt: skip


CUTS = step("cut", in_turn=True, writes=Gist)
NOTES = step("note", CUTS, writes=Gist)
SEARCH = step("search", CUTS, NOTES)
TURNS = step("turns", CUTS, NOTES, in_turn=True)
REPLY = step("reply", CUTS, NOTES, SEARCH)
AFTER_TURNS = step("reply after turns", CUTS, NOTES, TURNS)
AFTER_RANKED = step("reply after ranked", CUTS, step("ranked", CUTS))  # which asks nothing
AFTER_NOTHING = step("reply after nothing", step("nothing"))


def made(of: Step, document_id: str = "d1", **place: Any) -> Made:
    document = Document(document_id=document_id, text="", num_words=0)
    return Made(of, Call.about(document, **{"stage": of.name, "attempt": 1, **place}))


MEMORY = (
    *(made(CUTS, page_index=page) for page in (0, 1, 3)),  # 2 had one legal end; 4 was the tail
    *(made(NOTES, page_index=page) for page in range(5)),
)
ALL_MEMORY = (2, 3, 4, 5, 6, 7)  # the last of the chain and all notes
TURN: dict[str, Any] = {"question_id": "q1", "turn": 0}
AGAIN: dict[str, Any] = {**TURN, "attempt": 2}


@pytest.mark.parametrize(
    ("calls", "waits"),
    [
        # Asked in turn: a chain; what is of a page waits for that page.
        (MEMORY, [(), (0,), (1,), (0,), (1,), (1,), (2,), (2,)]),
        # Else a call waits for all that its step reads.
        ([*MEMORY, made(SEARCH, **TURN), made(SEARCH, question_id="q2", turn=0)],
         [ALL_MEMORY, ALL_MEMORY]),
        ([*MEMORY, made(SEARCH, **TURN), made(REPLY, question_id="q1")],
         [ALL_MEMORY, (*ALL_MEMORY, 8)]),
        # Also through a step without calls.
        ([*MEMORY, made(AFTER_RANKED, question_id="q1"), made(AFTER_NOTHING, question_id="q1")],
         [(2,), ()]),
        # Turns are a chain of their question.
        ([made(TURNS, question_id=q, turn=turn) for turn, q in
          ((0, "q1"), (1, "q1"), (0, "q2"), (2, "q1"))] + [made(AFTER_TURNS, question_id="q1")],
         [(), (0,), (), (1,), (3,)]),
        # What is asked again waits for the first reply, and for nobody else's.
        ([made(SEARCH, **AGAIN), made(SEARCH, **TURN), made(SEARCH, question_id="q2", turn=0)],
         [(1,), (), ()]),
        # Documents do not wait for each other, and order does not matter.
        ([made(NOTES, page_index=0), made(CUTS, "d2", page_index=0), made(CUTS, page_index=0),
          made(NOTES, "d2", page_index=0)], [(2,), (), (), (1,)]),
    ],
)  # fmt: skip
def test_a_call_waits_for_what_it_follows_from(
    calls: Sequence[Made], waits: list[tuple[int, ...]]
) -> None:
    assert dependencies(calls)[-len(waits) :] == waits


def test_the_longest_chain_adds_up_what_waits_for_each_other() -> None:
    # A chain of 1 + 2 + 4 seconds; notes of pages 0 and 4 hang on its first and last call.
    seconds = {("cut", 0): 1.0, ("cut", 1): 2.0, ("cut", 3): 4.0,
               ("note", 0): 9.5, ("note", 4): 3.0}  # fmt: skip

    def of(call: Call) -> float:
        return seconds.get((call.stage, call.page_index or 0), 0.0)

    assert longest_chain(MEMORY, of) == 1.0 + 9.5
    assert longest_chain(MEMORY, lambda call: min(of(call), 4.0)) == 1.0 + 2.0 + 4.0 + 3.0
    assert longest_chain((), of) == 0.0


REQUESTS = [request(str(number)) for number in range(4)]


class Watched(Listener):
    """Answers after a turn of the event loop; keeps how it went."""

    def __init__(self) -> None:
        super().__init__(lambda request: "")
        self.events: list[str] = []

    async def generate(self, request: Request) -> Reply:
        self.events.append(f"{content(request)} in")
        await asyncio.sleep(0)
        self.events.append(f"{content(request)} out")
        return await super().generate(request)


@pytest.mark.parametrize(
    ("waits", "at_once", "events"),
    [
        (
            [(2,), (0,), (), (0, 1)],
            4,
            [f"{n} {way}" for n in (2, 0, 1, 3) for way in ("in", "out")],
        ),
        ([()] * 4, 4, [f"{n} {way}" for way in ("in", "out") for n in range(4)]),
        ([()] * 4, 1, [f"{n} {way}" for n in range(4) for way in ("in", "out")]),
    ],
)
def test_a_request_waits_for_those_it_follows_from_and_for_room(
    waits: list[tuple[int, ...]], at_once: int, events: list[str]
) -> None:
    engine = Watched()
    seconds, cpu = asyncio.run(replay(engine, Script(REQUESTS, waits), at_once))
    assert cpu > 0 and seconds > 0
    assert engine.events == events


def test_requests_are_replayed_in_the_order_they_were_sent() -> None:
    reply = Reply(text="", finish_reason="stop")
    calls = [made(NOTES, page_index=0, request_sha="g"), made(CUTS, page_index=0, request_sha="p")]
    sent = [Sent("p", REQUESTS[1], reply, begun=1.0), Sent("g", REQUESTS[0], reply, begun=2.0)]
    script = script_of(calls, sent)
    assert (script.requests, script.waits) == ([REQUESTS[1], REQUESTS[0]], [(), (0,)])


def test_what_an_engine_is_asked_is_kept_under_the_name_of_its_call(tmp_path: Path) -> None:
    pages = [PageGist(page="one page"), PageGist(page="another page")]

    async def ask() -> Sequence[Call]:
        engine = settings(decode_tokens_per_second=1e6)
        reader = await start_recorded(tmp_path, engine, family(), False)
        asking = Ask(reader, "note", "d1", Replies())
        for index, page in enumerate(pages):
            await asking(page, Subject(page_index=index))
        return asking.calls()

    expected = [(c.request_sha, p, c.reply) for c, p in zip(asyncio.run(ask()), pages, strict=True)]
    (worker,) = read_records(tmp_path)
    assert [(s.request_sha, s.request.fields, s.reply.text) for s in worker.sent] == expected
    assert worker.ready.clock <= worker.sent[0].begun <= worker.sent[1].begun
    assert 0.0 == worker.sent[0].recorder_cpu < worker.sent[1].recorder_cpu == worker.recorder_cpu


ENGINE = settings(prefill_tokens_per_second=1000.0, decode_tokens_per_second=50.0, sequences=2)

PARTS = "limit, schedule, machines, cache, peers, units, driver, rates"


def test_no_schedule_beats_work_shared_out_nor_the_longest_chain() -> None:
    """Each call is of 500 uncached words of prompt and 25 of reply: 0.5 + 0.5 seconds."""
    tokens: dict[str, Any] = {"prompt_tokens": 700, "cached_tokens": 200, "reply_tokens": 25}
    chain = [made(CUTS, page_index=page, **tokens) for page in range(3)]
    chain += [made(NOTES, page_index=page, **tokens) for page in range(3)]
    others = [made(CUTS, f"d{i}", page_index=0, **tokens) for i in range(2, 20)]

    def bound(calls: list[Made], num_workers: int) -> float:
        worker = Recorded(Moment(0.0, 0.0), (), Moment(1.0, 0.0))
        return lower_bound(Reading(ENGINE, (), [worker] * num_workers, calls), ENGINE)

    assert bound(chain, 1) == 4.0  # 6 s on 2 sequences
    assert bound([*chain, *others], 1) == 24 / 2
    assert bound([*chain, *others], 3) == 4.0
    # The same of simulated events: 32 calls among two sequences; ten pages and a gist.
    assert (shortest([10, 2, 2, 2], 2, 1), shortest([10, 2, 2, 2], 8, 8)) == (16, 11)


def test_the_longest_document_is_half_as_long_as_the_engines_need_for_all() -> None:
    pages = lengths(400, sequences=64)
    assert len(pages) == 400 and min(pages) >= 1
    calls, chain = 2 * sum(pages), max(pages) + 1  # a break point and a gist for each page
    assert chain / (calls / 64) == pytest.approx(0.5, rel=0.02)
    assert sorted(pages)[200] * 3 < max(pages)  # skewed


def test_a_reading_begins_when_its_engines_are_ready_on_average() -> None:
    """CPU seconds are those of the driver since its last moment before that, and of each worker
    since its engine is ready."""
    driver = [Moment(100.0, 7.0), Moment(101.0, 7.5), Moment(102.0, 7.75), Moment(110.0, 9.0),
              Moment(111.0, 9.25)]  # fmt: skip
    workers = [
        Recorded(Moment(101.0, 1.0), (), Moment(109.0, 4.0)),
        Recorded(Moment(102.5, 1.5), (), Moment(110.0, 2.0)),
    ]
    reading = Reading(settings(), driver, workers, ())
    assert (reading.ready, reading.seconds) == (101.75, 110.0 - 101.75)
    assert reading.cpu == pytest.approx((9.0 - 7.5) + (4.0 - 1.0) + (2.0 - 1.5))


@pytest.mark.parametrize(
    ("bar", "ok"),
    [
        (("at most", 1.1), True), (("at most", 1.05), False),
        (("at least", 1.1), True), (("at least", 1.11), False),
        (("over", 1.09), True), (("over", 1.1), False),
    ],
)  # fmt: skip
def test_the_median_meets_a_bar_or_does_not(bar: tuple[Bar, float], ok: bool) -> None:
    figure = figure_of("limit", "a ratio", [1.0, 1.1, 9.0], bar)
    assert (figure.figure, figure.ok) == (1.1, ok)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("schedule", "engine=extractive"), "engine=extractive: schedule needs engine=simulated"),
        (("machines", "engine=extractive"), "engine=extractive: machines needs engine=simulated"),
        (("schedule", "corpus=text"), "corpus=text: schedule writes its own corpus"),
        (("driver", "engine=vllm"), "engine: driver takes corpus.num_documents; leave it out"),
        (("speed",), f"speed: not a part of bench; there are {PARTS}"),
        (("limit=4",), f"name what to measure: {PARTS}"),
        (("schedule", "engine.speed=4"), "engine.speed"),
        (("peers", "corpus.path=x", "engine=simulated"), "engine=simulated: peers needs"),
        (("peers", "corpus.path=x", "engine.model=m", "engine.max_workers=2"),
         "engine.max_workers=2: peers compares one engine"),
        (("peers", "corpus.path=x", "engine.model=m", "engine.args.reasoning_parser=qwen3",
          "engine.thinking_tokens=9"), "engine.thinking_tokens=9: the peers do not split"),
        (("peers", "corpus.path=x", "engine.model=m", "cluster=ray", "cluster.address=auto"),
         "cluster.address=auto: peers counts its own processes"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(words: tuple[str, ...], says: str) -> None:
    assert refused("bench", *words).startswith(says)
