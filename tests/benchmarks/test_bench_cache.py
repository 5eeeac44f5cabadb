"""The ideal of a prefix cache, counted by hand."""

import asyncio

import pytest

from benchmarks.cache import ideal, ideal_tokens
from pipeline.core.errors import UsageError
from pipeline.engines.extractive import ExtractiveEngine
from pipeline.engines.simulated import SimulatedEngine
from tests.pipeline.engines.test_simulated_engine import in_order, request, settings


@pytest.mark.parametrize(
    ("prompts", "tokens"),
    [
        ([], 0),
        (["abcdef"], 0),
        (["abcdef", "abcdxy"], 4),  # two blocks of two
        (["abcdef", "abcxyz"], 2),  # the second block is another one
        (["abcdef", "xxcdef"], 0),  # the same words elsewhere are no beginning
        (["abcdef", "abcdef"], 4),  # the last token is computed in any case, and so its block
        (["abcdef", "abcdefg"], 6),
        (["abcdef", "abxxxx", "abcdxx", "abxxxy"], 2 + 4 + 4),  # the longest of all earlier ones
        (["abxxxx", "abcdef", "a"], 2),
    ],
)
def test_the_ideal_is_the_longest_earlier_beginning_in_whole_blocks(
    prompts: list[str], tokens: int
) -> None:
    assert ideal(prompts, block_tokens=2) == tokens


def test_every_engine_has_a_cache_of_its_own() -> None:
    prompts = [request(" ".join(text)).messages for text in ("abcdef", "abcdxy")]
    engine = SimulatedEngine(settings(block_tokens=2))
    assert asyncio.run(ideal_tokens(engine, [prompts])) == 4
    assert asyncio.run(ideal_tokens(engine, [[prompt] for prompt in prompts])) == 0


def test_the_simulated_engine_reaches_the_ideal_where_it_has_room() -> None:
    texts = ["a b c d e f", "a b x x x x", "a b c d x x", "a b x x x y", "a b c d e f"]
    engine = SimulatedEngine(settings(block_tokens=2, reply_tokens=1))
    requests = [request(text) for text in texts]
    cached = sum(reply.cached_tokens for reply in in_order(engine, *requests))
    messages = [one.messages for one in requests]
    assert cached == asyncio.run(ideal_tokens(engine, [messages])) == 2 + 4 + 4 + 4


def test_an_engine_without_a_prefix_cache_is_refused() -> None:
    with pytest.raises(UsageError, match="engine=extractive"):
        asyncio.run(ideal_tokens(ExtractiveEngine(), []))
