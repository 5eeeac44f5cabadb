"""What a prefix cache can hold, counted by hand and by comparing every two prompts."""

import asyncio

import pytest

from benchmarks.cache import CacheTokens, cache_tokens
from benchmarks.simulated.simulated_engine import SimulatedEngine
from pipeline.core.errors import UsageError
from pipeline.core.prompts import Message
from pipeline.engines.extractive import ExtractiveEngine
from tests.support.engines.simulated import in_order, request, settings


def messages(*letters: str) -> list[list[Message]]:
    """A prompt of each text, in which every letter is a word and so a token."""
    return [[{"role": "user", "content": " ".join(text)}] for text in letters]


def counted(*workers: list[list[Message]], texts: tuple[str, ...] = ()) -> CacheTokens:
    engine = SimulatedEngine(settings(block_tokens=2))
    return asyncio.run(cache_tokens(engine, workers, texts))


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
    assert counted(messages(*prompts)) == CacheTokens(ideal, uncached, corpus=0)


def test_every_engine_has_a_cache_of_its_own() -> None:
    one, other = messages("abcdef", "abcdxy")
    assert counted([one, other]) == CacheTokens(4, 8, 0)
    assert counted([one], [other]) == CacheTokens(0, 12, 0)


def test_the_simulated_engine_reaches_the_ideal_where_it_has_room() -> None:
    texts = ["a b c d e f", "a b x x x x", "a b c d x x", "a b x x x y", "a b c d e f"]
    engine = SimulatedEngine(settings(block_tokens=2, reply_tokens=1))
    requests = [request(text) for text in texts]
    cached = sum(reply.cached_tokens for reply in in_order(engine, *requests))
    sent = [one.messages for one in requests]
    assert cached == asyncio.run(cache_tokens(engine, [sent], ())).ideal == 2 + 4 + 4 + 4


def test_an_engine_without_a_prefix_cache_is_refused() -> None:
    with pytest.raises(UsageError, match="engine=extractive"):
        asyncio.run(cache_tokens(ExtractiveEngine(), [], ()))
