"""The simulated engine, and what a prefix cache can hold, by hand. Times are bounded from below, or
compared with others of the same run: a busy machine may be slow."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.cache import CacheTokens, cache_tokens
from benchmarks.simulated.simulated_engine import SimulatedEngine
from pipeline.core.engine import Reply, Request
from pipeline.core.errors import UsageError
from pipeline.core.prompts import Constraint, Prompt
from pipeline.engines.extractive import ExtractiveEngine
from stages.prompts.answer import Passage
from stages.prompts.readagent_look_up import ParallelLookUp, SequentialLookUp
from tests.support.command import refused
from tests.support.engines.simulated import SIMULATED, in_order, request, settings

INSTANT = 1e9  # tokens a second


def words(num: int, word: str = "w") -> str:
    return " ".join(f"{word}{i}" for i in range(num))


def at_once(engine: SimulatedEngine, *requests: Request) -> tuple[float, list[Reply]]:
    """The seconds until all are answered."""

    async def ask() -> tuple[float, list[Reply]]:
        start = time.perf_counter()
        replies = await asyncio.gather(*(engine.generate(one) for one in requests))
        return time.perf_counter() - start, replies

    return asyncio.run(ask())


def decoding(**changed: Any) -> SimulatedEngine:
    """Ten words a reply, 0.1 s a reply; prompts cost nothing."""
    rates = {"prefill_tokens_per_second": INSTANT, "decode_tokens_per_second": 100.0}
    return SimulatedEngine(settings(reply_tokens=10, **{**rates, **changed}))


def test_sequences_work_at_once_and_no_more_than_there_are() -> None:
    prompts = [request(f"prompt {i}") for i in range(5)]
    seconds, _ = at_once(decoding(sequences=2), *prompts)
    assert seconds >= 0.3  # 5 requests on 2 sequences are 3 rounds of 0.1 s
    seconds, replies = at_once(decoding(sequences=5), *prompts)
    assert seconds < sum(reply.seconds for reply in replies) / 2  # one round for all of them


def test_requests_wait_for_kv_space() -> None:
    # 20 + 10 words are 8 blocks of 4; 20 blocks hold two such requests, 24 hold three.
    prompts = [request(words(20, f"p{i}")) for i in range(4)]
    room = {"sequences": 4, "block_tokens": 4, "context_tokens": 60}
    narrow, _ = at_once(decoding(kv_tokens=80, **room), *prompts)
    assert narrow >= 0.2
    wide, replies = at_once(decoding(kv_tokens=128, **room), *prompts)
    assert wide < sum(reply.seconds for reply in replies) / 2


def test_prompts_are_prefilled_one_after_the_other_but_for_whole_cached_blocks() -> None:
    rates = {"prefill_tokens_per_second": 1000.0, "decode_tokens_per_second": INSTANT}
    seconds, _ = at_once(decoding(**rates), *(request(words(100, f"p{i}")) for i in range(3)))
    assert seconds >= 0.3
    first, second = in_order(decoding(**rates), request(words(200)), request(f"{words(200)} more"))
    assert second.cached_tokens == 192  # 12 blocks of 16
    assert first.seconds >= 0.2
    assert second.seconds < first.seconds / 2


def test_what_never_fits_is_a_context_overflow_or_refused() -> None:
    (reply,) = in_order(decoding(kv_tokens=32, context_tokens=32), request(words(30)))
    assert (reply.problem, reply.finish_reason, reply.text) == ("context_overflow", "abort", "")
    said = refused("run", *SIMULATED, "engine.kv_tokens=1000")
    assert said.startswith("engine.kv_tokens=1000: ") and "context_tokens=32000" in said


def test_replies_follow_from_the_request_and_are_as_long_as_set() -> None:
    prompts = [request("x"), request("x", prompt="answer"), request("x", max_reply_tokens=4)]
    gist, answer, short = in_order(decoding(openings={"answer": "Answer: (A)"}), *prompts)
    assert [len(r.text.split()) for r in (gist, answer, short)] == [10, 10, 4]
    assert [r.reply_tokens for r in (gist, answer, short)] == [10, 10, 4]
    assert answer.text.startswith("Answer: (A) ")
    again, other = in_order(decoding(), request("x"), request("y"))
    assert gist.text == again.text != other.text


def test_what_changes_replies_is_hashed_and_rates_are_not() -> None:
    plain = settings().identity()
    assert settings(kv_tokens=10**6, sequences=3, decode_tokens_per_second=1.0).identity() == plain
    assert plain not in (settings(reply_tokens=7).identity(), settings(openings={}).identity())
    assert settings(sequences=3, decode_tokens_per_second=7.0).token_rates() == (20_000.0, 21.0)


def counted(*workers: Sequence[str]) -> CacheTokens:
    """Of prompts whose every letter is a word and so a token, in blocks of two."""
    prompts = [[request(" ".join(text)).messages for text in worker] for worker in workers]
    return asyncio.run(cache_tokens(SimulatedEngine(settings(block_tokens=2)), prompts, ()))


@pytest.mark.parametrize(
    ("prompts", "ideal", "uncached"),
    [
        ([], 0, 0),
        (["abcdef"], 0, 6),
        (["abcdef", "abcdxy"], 4, 6 + 2),  # two blocks of two
        (["abcdef", "abcxyz"], 2, 6 + 3),  # the second block is another one
        (["abcdef", "xxcdef"], 0, 6 + 6),  # the same words elsewhere are no beginning
        (["abcdef", "abcdef"], 4, 6 + 1),  # the last token is computed in any case
        (["abcdef", "abc", "abcdefg"], 2 + 6, 6 + 1 + 1),  # one that another begins with
        (["abcdef", "abxxxx", "abcdxx", "abxxxy"], 2 + 4 + 4, 6 + 4 + 2 + 1),  # the longest of all
    ],
)
def test_tokens_are_cached_where_an_earlier_prompt_begins_so(
    prompts: list[str], ideal: int, uncached: int
) -> None:
    """Every engine has a cache of its own; the simulated one reaches the ideal if it has room."""
    assert counted(prompts) == CacheTokens(ideal, uncached, corpus=0)
    assert counted(*([text] for text in prompts)).ideal == 0
    engine = SimulatedEngine(settings(block_tokens=2, reply_tokens=1))
    replies = in_order(engine, *(request(" ".join(text)) for text in prompts))
    assert sum(reply.cached_tokens for reply in replies) == ideal


def test_an_engine_without_a_prefix_cache_is_refused() -> None:
    with pytest.raises(UsageError, match="engine=extractive"):
        asyncio.run(cache_tokens(ExtractiveEngine(), [], ()))


def test_a_constrained_reply_is_legal() -> None:
    def looked_up(prompt: Prompt[Any], constraint: Constraint | None = None) -> Any:
        """What is read in the engine's reply to a look-up."""
        engine = SimulatedEngine(settings(decode_tokens_per_second=INSTANT))
        asked = replace(request("x"), prompt=prompt.name, fields=prompt, constraint=constraint)
        (reply,) = in_order(engine, asked)
        return prompt.read(reply.text, False)

    choice = replace(request("x"), constraint=Constraint(choices=("Label: <4>", "Label: <5>")))
    (reply,) = in_order(decoding(), choice)
    assert (reply.text, reply.reply_tokens) == ("Label: <4>", 2)
    pages = tuple(Passage("gist", number, f"page {number}") for number in range(1, 101))
    several = ParallelLookUp(pages, "Who rang the bell at 0?", (), 6)
    one = SequentialLookUp(pages, "Who rang the bell at 0?", (), (), ())
    assert len(looked_up(several)) in (3, 4)
    assert looked_up(several, several.legal("I want to look up Page [{}]")) == looked_up(several)
    # Another form than the drawn one.
    assert looked_up(one, one.legal("I want to look up Page {}")) == looked_up(one) != 1
