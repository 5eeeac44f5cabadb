"""`Ask`: the budget to the token, deadlines from admission, calls kept and replayed. `Capacity`: so
many at once, the lowest rank next, none lost when a waiter gives up."""

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from typing import Any

import pytest

from pipeline.asking.ask import Ask, Capacity, Reader
from pipeline.asking.replies import Replies, Wanted
from pipeline.core.calls import Call, Subject
from pipeline.core.engine import Reply, Request
from pipeline.core.errors import StorageError
from pipeline.core.prompts import Asked, Message
from pipeline.core.rows import utc_now
from stages.prompts.readagent_memory import PageGist
from tests.support.reading import Listener, family, never, reader_of

PAGE = PageGist(page="The mill stands at the river.")
SUBJECT = Subject(page_index=0)
REPLY_TOKENS = 50
PROMPT_CHARS = sum(len(message["content"]) for message in family().render(PAGE))


def last_word(request: Request) -> str:
    assert isinstance(request.fields, PageGist)
    return request.fields.page.split()[-1]


@dataclass
class Echo(Listener):
    """Replies with the last word of a page, after `seconds[word]`; keeps what it has counted. A
    character is a token, and so are `template` more of a chat template."""

    reply: Callable[[Request], str] = last_word
    context_tokens: int = 10_000
    seconds: Mapping[str, float] = field(default_factory=dict)
    template: int = 0
    counted: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def generate(self, request: Request) -> Reply:
        reply = await super().generate(request)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.seconds.get(reply.text, 0.0))
        finally:
            self.at_once -= 1
        return reply

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        self.counted.append(messages[0]["content"])
        await asyncio.sleep(0)
        return self.template + sum(len(message["content"]) for message in messages)


def reader(
    engine: Listener, slots: int = 8, reply_tokens: int = REPLY_TOKENS, **changes: Any
) -> Reader:
    changes["identity"] = f"echo at {changes.get('temperature', 0.0)}"
    budgets = family("generic", {"gist": reply_tokens})
    return reader_of(engine, family=budgets, slots=Capacity(slots), **changes)


def ask(of: Reader, recorded: Sequence[Call] = (), repeat: int = 0) -> Ask:
    return Ask(of, "gist", "d1", Replies(calls=recorded), repeat)


def one_reply(asking: Ask, subject: Subject = SUBJECT, page: PageGist = PAGE) -> Asked[str]:
    return asyncio.run(asking(page, subject))


async def at_once(asking: Ask, words: Sequence[str]) -> list[Asked[str]]:
    """Ask about every word, as stages do; the page's index is the word's."""
    pages = [asking(PageGist(word), Subject(page_index=i)) for i, word in enumerate(words)]
    return await asyncio.gather(*pages)


def many(asking: Ask, words: Sequence[str]) -> list[Asked[str]]:
    return asyncio.run(at_once(asking, words))


async def turns() -> None:
    """Let every coroutine go on until it waits."""
    for _ in range(100):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("spare", "is_sent"), [(-1, False), (0, True), (1, True)])
def test_the_budget_is_kept_to_the_token(spare: int, is_sent: bool) -> None:
    engine = Echo(context_tokens=PROMPT_CHARS + REPLY_TOKENS + spare)
    asking = ask(reader(engine))
    reply = one_reply(asking)
    assert asyncio.run(asking.fits(PAGE, REPLY_TOKENS)) is is_sent
    assert len(asking.sent_calls) == len(engine.requests) == len(asking.calls()) == int(is_sent)
    expected = ("river.", "river.", None) if is_sent else (None, "", "context_overflow")
    assert (reply.value, reply.raw, reply.problem) == expected
    assert reply.has_reply is is_sent


def test_parts_are_counted_once_each_without_a_chat_template_and_add_up() -> None:
    """Six characters and twelve; the white space around a part does not count. Questions that are
    asked at once count their parts once."""
    engine = Echo(template=7)
    asking = ask(reader(engine))

    async def three() -> list[int]:
        parts = ["a mill\n", " by the river", "", " \n", "a mill"]
        return await asyncio.gather(*(asking.part_tokens(parts) for _ in range(3)))

    assert asyncio.run(three()) == [24] * 3
    assert sorted(engine.counted) == ["", "a mill", "by the river"]
    for text in ("", " ", "a b"):
        assert asyncio.run(asking.text_tokens(text)) == len(text)


def test_a_stage_that_asks_without_an_engine_is_named() -> None:
    with pytest.raises(RuntimeError, match="score asks a model"):
        one_reply(Ask(None, "score", "d1", Replies()))


def test_no_reply_in_time_is_a_timeout_and_a_call() -> None:
    asking = ask(reader(Echo(seconds={"slow": 60}), deadline_seconds=0.05, slots=1))
    slow, quick = many(asking, ["slow", "quick"])
    assert (slow.problem, slow.value, slow.raw, slow.has_reply) == ("timeout", None, "", False)
    assert (quick.problem, quick.value) == (None, "quick"), "its slot is free again"
    calls = asking.calls()
    assert [(c.problem, c.finish_reason) for c in calls] == [("timeout", "abort"), (None, "stop")]


def test_slots_are_shared_by_all_documents_and_waiting_for_one_is_no_timeout() -> None:
    """Twenty requests of 0.1 s through two slots: the last waits 0.9 s, with a deadline of 0.7."""
    engine = Echo(seconds=dict.fromkeys("abcdefghij", 0.1))
    shared = reader(engine, deadline_seconds=0.7, slots=2)

    async def talk() -> list[list[Asked[str]]]:
        asking = [Ask(shared, "gist", document, Replies()) for document in ("d1", "d2")]
        return await asyncio.gather(*(at_once(of_document, "abcdefghij") for of_document in asking))

    problems = [reply.problem for replies in asyncio.run(talk()) for reply in replies]
    assert problems == [None] * 20
    assert engine.most_at_once == 2


def test_a_prompt_waits_unrendered_and_uncounted() -> None:
    """Of six prompts and two slots, two are counted; replies that the unit has need no slot."""
    engine = Echo(seconds=dict.fromkeys("abcdef", 60))
    asking = ask(reader(Echo()))
    one_reply(asking)

    async def talk() -> None:
        later = ask(reader(engine, slots=2), asking.calls())
        waiting = asyncio.create_task(at_once(later, "abcdef"))
        await turns()
        assert len(engine.counted) == len(engine.requests) == 2
        assert (await later(PAGE, SUBJECT)).value == "river."
        assert len(engine.counted) == 2
        waiting.cancel()

    asyncio.run(talk())


def test_a_call_holds_its_slot_until_it_is_kept() -> None:
    """A process that dies repeats no more calls than it has slots, however slow its disk is."""
    engine, may_write, num_sent = Echo(), asyncio.Semaphore(0), []

    class Slow(Replies):
        async def keep(self, call: Call, wanted: Wanted) -> Call:
            await may_write.acquire()
            return call

    async def talk() -> None:
        asking = Ask(reader(engine, slots=2), "gist", "d1", Slow())
        whole = asyncio.create_task(at_once(asking, "abcdef"))
        for _ in range(6):
            await turns()
            num_sent.append(len(engine.requests))
            may_write.release()
        await whole

    asyncio.run(talk())
    assert num_sent == [2, 3, 4, 5, 6, 6]


def test_recorded_calls_are_replayed_and_only_others_are_sent() -> None:
    words = ["one", "two", "three"]
    first = ask(reader(Echo(finish_reason="length")))
    replies = many(first, words)
    again = ask(reader(never()), first.calls())
    assert many(again, words) == replies
    assert (again.sent_calls, again.calls()) == ([], first.calls())
    engine = Echo(finish_reason="length")
    rest = ask(reader(engine), first.calls()[:2])
    assert many(rest, words) == replies
    assert [request.fields for request in engine.requests] == [PageGist("three")]
    timeless = [[replace(c, started_at=None) for c in a.calls()] for a in (rest, first)]
    assert timeless[0] == timeless[1]


def test_two_pages_of_the_same_text_keep_their_own_replies() -> None:
    """They send the same request, but after a crash each gets back what it got."""
    first = ask(reader(Echo()))
    many(first, ["same", "same"])
    failed, replied = first.calls()
    assert failed.request_sha == replied.request_sha
    again = ask(reader(never()), (replace(failed, problem="engine_failed"), replied))
    assert [reply.problem for reply in many(again, ["same", "same"])] == ["engine_failed", None]


def test_a_call_says_when_it_was_sent_and_by_which_worker() -> None:
    """Of two requests and one slot the second is sent when the first has its reply."""
    before = utc_now()
    engine = Echo(seconds={"one": 0.05, "two": 0.05})
    asking = ask(replace(reader(engine, slots=1), worker="node-7"))
    many(asking, ["one", "two"])
    one, two = sorted(call.started_at for call in asking.calls() if call.started_at)
    assert before <= one < one + timedelta(seconds=0.04) < two <= utc_now()
    assert [call.worker for call in asking.calls()] == ["node-7", "node-7"]


def test_calls_are_ordered_by_question_page_turn_reference_attempt() -> None:
    subjects = [
        Subject(), Subject(page_index=0), Subject(page_index=1),
        Subject(question_id="q1", turn=0), Subject(question_id="q1", turn=0, attempt=2),
        Subject(question_id="q1", turn=1), Subject(question_id="q2", reference_index=0),
        Subject(question_id="q2", reference_index=1),
    ]  # fmt: skip
    asking = ask(reader(Echo()))

    async def talk() -> None:
        for subject in reversed(subjects):
            await asking(PAGE, subject)

    asyncio.run(talk())
    calls = asking.calls()
    names = [of.name for of in fields(Subject)]
    assert [Subject(**{name: getattr(call, name) for name in names}) for call in calls] == subjects
    assert [call.call_index for call in calls] == [*range(len(subjects))]


def sha_of(sender: Reader, subject: Subject = SUBJECT, letters: int = 3) -> str:
    asking = ask(sender)
    one_reply(asking, subject, PageGist("w" * letters))
    return asking.calls()[0].request_sha


def test_a_request_is_named_by_what_is_sent() -> None:
    cold = reader(Echo())
    same = sha_of(cold)
    assert sha_of(cold) == same
    assert sha_of(cold, Subject(page_index=5, question_id="q")) == same, "not by what it is about"
    assert sha_of(reader(Echo(), deadline_seconds=9, slots=1)) == same
    different = [
        sha_of(cold, Subject(page_index=0, attempt=2)),
        sha_of(reader(Echo(), reply_tokens=REPLY_TOKENS + 1)),
        sha_of(cold, letters=4),
        sha_of(reader(Echo(), temperature=0.5)),
        sha_of(reader(Echo(), temperature=0.5, seed=1)),
    ]
    assert len({same, *different}) == len(different) + 1


@pytest.mark.parametrize(("temperature", "num_seeds"), [(0.7, 6), (0.0, 1)])
def test_with_sampling_repeats_and_attempts_draw_with_other_seeds(
    temperature: float, num_seeds: int
) -> None:
    """From the same seed an engine would say the same again."""
    engine = Echo()
    sampling = reader(engine, temperature=temperature, seed=5)
    for repeat, attempt in itertools.product((0, 1, 2), (1, 2)):
        one_reply(ask(sampling, repeat=repeat), Subject(page_index=0, attempt=attempt))
    seeds = [request.seed for request in engine.requests]
    assert seeds[0] == 5
    assert len(set(seeds)) == num_seeds


# Capacity.


@pytest.mark.parametrize(
    ("size", "asked", "order", "most"),  # asked: the weight and rank of each
    [
        (1, [(1, 5), (1, 3), (1, 9), (1, 1), (1, 3)], [0, 3, 1, 4, 2], 1),
        # However light a later one is; and a heavier one than all is let in alone.
        (10, [(weight, 0) for weight in (4, 4, 4, 9, 1, 1, 10, 2)], [*range(8)], 10),
        (10, [(3, 0), (25, 0), (3, 0)], [0, 1, 2], 25),
    ],
)
def test_the_lowest_rank_goes_first_and_then_the_first_to_come(
    size: int, asked: list[tuple[int, int]], order: list[int], most: int
) -> None:
    inside, heaviest, entered, capacity = 0, 0, list[int](), Capacity(size)

    async def hold(number: int, weight: int, rank: int) -> None:
        nonlocal inside, heaviest
        async with capacity.held(weight, rank):
            entered.append(number)
            inside += weight
            heaviest = max(heaviest, inside)
            await asyncio.sleep(0.001)
            inside -= weight

    async def talk() -> None:
        await asyncio.gather(*(hold(number, *each) for number, each in enumerate(asked)))

    asyncio.run(asyncio.wait_for(talk(), 10))
    assert (entered, heaviest) == (order, most)


def test_after_a_refusal_of_storage_none_is_admitted() -> None:
    """Requests that wait, or come later, get no slot; those in flight end."""

    async def talk() -> list[BaseException | None]:
        slots, refusal = Capacity(2), StorageError("full")

        async def request(number: int) -> None:
            async with slots.held(rank=number):
                await asyncio.sleep(0.001 if number == 0 else 0.002)
                if number == 0:
                    raise refusal

        early = await asyncio.gather(*map(request, range(5)), return_exceptions=True)
        return [*early, *await asyncio.gather(request(9), return_exceptions=True)]

    assert [str(error) for error in asyncio.run(talk())] == ["full", "None", *["full"] * 4]


@pytest.mark.parametrize("is_handed_over", [False, True])
def test_who_gives_up_waiting_costs_no_slot(is_handed_over: bool) -> None:
    """Cancelled while waiting, or just as its turn comes: the next one gets in either way."""

    async def talk() -> None:
        slots = Capacity(1)
        async with slots.held():
            waiting = asyncio.create_task(slots.held().__aenter__())
            await asyncio.sleep(0)
            if not is_handed_over:
                waiting.cancel()
                await asyncio.wait([waiting])
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        async with slots.held():
            pass

    asyncio.run(asyncio.wait_for(talk(), 10))


def test_a_heavy_one_that_gives_up_lets_a_light_one_in() -> None:
    async def talk() -> None:
        capacity = Capacity(10)
        async with capacity.held(5):
            heavy = asyncio.create_task(capacity.held(9).__aenter__())
            light = asyncio.create_task(capacity.held(2).__aenter__())
            await asyncio.sleep(0)
            heavy.cancel()
            await light

    asyncio.run(asyncio.wait_for(talk(), 10))
