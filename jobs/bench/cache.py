"""Prompt tokens that the engine had in its prefix cache, against those it could have had at best.

At best: of every prompt the longest beginning it shares with any earlier prompt at the same
engine, in whole blocks. A prompt's last token is computed in any case.
"""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Protocol

from jobs.bench.bare import on_engine
from jobs.bench.figures import Figure, barred, plain
from jobs.bench.reading import read
from jobs.config import RunConfig
from pipeline.engine import Engine
from pipeline.errors import UsageError
from pipeline.prompts import Message

_BAR = 0.90


class BlockEngine(Protocol):
    """What an engine with a prefix cache tells of it."""

    block_tokens: int

    async def tokens(self, messages: Sequence[Message]) -> Sequence[Hashable]:
        """The tokens of the whole prompt as `generate` would send it."""
        ...


def cache(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Cached over ideal tokens, and cached tokens over all.

    Raises UsageError where there is nothing to cache, or nothing to cache it.
    """
    of_ideal, of_all = [], []
    for pair in range(pairs):
        workers = read(config, folder / f"cache-{pair}").workers
        prompts = [[one.request.messages for one in worker.sent] for worker in workers]
        best = on_engine(config.engine, ideal_tokens, prompts)
        if not best:
            raise UsageError("no prompt begins as an earlier one does; read more documents")
        replies = [one.reply for worker in workers for one in worker.sent]
        cached = sum(reply.cached_tokens for reply in replies)
        of_ideal.append(cached / best)
        of_all.append(cached / sum(reply.prompt_tokens for reply in replies))
    return [
        barred("cache", "cached tokens / ideal", of_ideal, ("at least", _BAR)),
        plain("cache", "cached tokens / prompt tokens", of_all),
    ]


async def ideal_tokens(engine: Engine, workers: Sequence[Sequence[Sequence[Message]]]) -> int:
    """The ideal number of cached tokens of each worker's prompts, all added up.

    Raises UsageError where the engine has no prefix cache to tell of.
    """
    if not hasattr(engine, "block_tokens"):
        raise UsageError(f"engine={engine.name}: cache needs an engine with a prefix cache")
    told: BlockEngine = engine  # type: ignore[assignment]  # as it has blocks
    total = 0
    for prompts in workers:
        tokens = [await told.tokens(messages) for messages in prompts]
        total += ideal(tokens, told.block_tokens)
    return total


def ideal(prompts: Sequence[Sequence[Hashable]], block_tokens: int) -> int:
    """Tokens of `prompts`, in this order, that were at the beginning of an earlier one."""
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
