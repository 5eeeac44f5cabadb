"""The prompt tokens found in the engine's prefix cache, against the ideal.

The ideal counts, for every prompt, the longest prefix it shares with any earlier prompt at the same
engine, in whole blocks. A prompt's last token is always computed.
"""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Protocol

from benchmarks.figures import Figure, figure_with_bar, figure_without_bar
from benchmarks.peers.bare import on_engine
from benchmarks.reading import read
from jobs.config.run_config import RunConfig
from pipeline.core.engine import Engine
from pipeline.core.errors import UsageError
from pipeline.core.prompts import Message

_AT_LEAST = 0.90


class BlockEngine(Protocol):
    """An engine with a prefix cache: the size of its blocks, and its tokenizer."""

    block_tokens: int

    async def tokens(self, messages: Sequence[Message]) -> Sequence[Hashable]:
        """The tokens of the whole prompt, rendered as `generate` renders it."""
        ...


def cache(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Cached tokens over ideal tokens, and over all prompt tokens.

    Raises UsageError if no prompts share a prefix or the engine has no prefix cache.
    """
    of_ideal, of_all = [], []
    for pair in range(pairs):
        workers = read(config, folder / f"cache-{pair}").workers
        prompts = [[one.request.messages for one in worker.sent] for worker in workers]
        best = on_engine(config.engine, ideal_tokens, prompts)
        if not best:
            raise UsageError("no prompt shares a prefix with an earlier one; read more documents")
        replies = [one.reply for worker in workers for one in worker.sent]
        cached = sum(reply.cached_tokens for reply in replies)
        of_ideal.append(cached / best)
        of_all.append(cached / sum(reply.prompt_tokens for reply in replies))
    return [
        figure_with_bar("cache", "cached tokens / ideal", of_ideal, ("at least", _AT_LEAST)),
        figure_without_bar("cache", "cached tokens / prompt tokens", of_all),
    ]


async def ideal_tokens(engine: Engine, workers: Sequence[Sequence[Sequence[Message]]]) -> int:
    """The ideal number of cached tokens, summed over workers; `workers`: the prompts of each.

    Raises UsageError if the engine has no prefix cache.
    """
    if not hasattr(engine, "block_tokens"):
        raise UsageError(f"engine={engine.name}: cache needs an engine with a prefix cache")
    cached: BlockEngine = engine  # type: ignore[assignment]  # checked above
    total = 0
    for prompts in workers:
        tokens = [await cached.tokens(messages) for messages in prompts]
        total += ideal(tokens, cached.block_tokens)
    return total


def ideal(prompts: Sequence[Sequence[Hashable]], block_tokens: int) -> int:
    """The tokens of `prompts`, sent in this order, that a prefix cache of any size could hold."""
    known: set[tuple[int, Hashable]] = set()
    total = 0
    for prompt in prompts:
        before, is_known, own = 0, True, []
        for end in range(block_tokens, len(prompt) + 1, block_tokens):
            block = (before, tuple(prompt[end - block_tokens : end]))
            is_known = is_known and block in known
            total += block_tokens if is_known and end < len(prompt) else 0
            own.append(block)
            before = hash(block)
        known.update(own)
    return total
