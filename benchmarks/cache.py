"""The prompt tokens found in the engine's prefix cache, against the ideal; and the prompt tokens
that no cache could hold, per token of the corpus.

A prefix cache of unlimited size holds the longest prefix that a prompt shares with an earlier one
of the same engine. Engines keep whole blocks. A prompt's last token is always computed.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from benchmarks.figures import Figure, figure_of
from benchmarks.peers.bare import on_engine
from benchmarks.reading import read
from jobs.config.run_config import RunConfig
from jobs.graph.preparation import chosen_documents
from pipeline.core.engine import Engine
from pipeline.core.errors import UsageError
from pipeline.core.prompts import Message

_AT_LEAST = 0.90
_AT_MOST = 2.50  # uncached prompt tokens per token of the corpus

WORDS = ("memory=read_once", "methods=readagent_p(max_pages=3,layout=appended)")


class BlockEngine(Protocol):
    """An engine with a prefix cache."""

    block_tokens: int

    async def tokens(self, messages: Sequence[Message]) -> Sequence[Hashable]:
        """The tokens of the whole prompt, rendered as `generate` renders it."""
        ...


class CacheTokens(NamedTuple):
    """Numbers of tokens. `ideal`: prompt tokens that a cache of whole blocks could hold;
    `uncached`: prompt tokens that no cache could; `corpus`: tokens of the documents' texts."""

    ideal: int
    uncached: int
    corpus: int


def cache(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Cached tokens over ideal tokens, and over all prompt tokens; uncached tokens per corpus
    token.

    Raises UsageError if no prompts share a prefix or the engine has no prefix cache.
    """
    of_ideal, of_all, per_corpus = [], [], []
    texts = [loaded.document.text for loaded in chosen_documents(config)]
    for pair in range(pairs):
        workers = read(config, folder / f"cache-{pair}").workers
        prompts = [[one.request.messages for one in worker.sent] for worker in workers]
        tokens = on_engine(config.engine, cache_tokens, prompts, texts)
        if not tokens.ideal:
            raise UsageError("no prompt shares a prefix with an earlier one; read more documents")
        replies = [one.reply for worker in workers for one in worker.sent]
        cached = sum(reply.cached_tokens for reply in replies)
        of_ideal.append(cached / tokens.ideal)
        of_all.append(cached / sum(reply.prompt_tokens for reply in replies))
        per_corpus.append(tokens.uncached / tokens.corpus)
    return [
        figure_of("cache", "cached tokens / ideal", of_ideal, ("at least", _AT_LEAST)),
        figure_of("cache", "cached tokens / prompt tokens", of_all),
        figure_of(
            "cache", "uncached prompt tokens / corpus tokens", per_corpus, ("at most", _AT_MOST)
        ),
    ]


async def cache_tokens(
    engine: Engine, workers: Sequence[Sequence[Sequence[Message]]], texts: Sequence[str]
) -> CacheTokens:
    """Tokens as the engine counts them. `workers`: each worker's prompts in the order in which they
    were sent; each has its own cache.

    Raises UsageError if the engine has no prefix cache.
    """
    if not hasattr(engine, "block_tokens"):
        raise UsageError(f"engine={engine.name}: cache needs an engine with a prefix cache")
    cached: BlockEngine = engine  # type: ignore[assignment]  # checked above
    ideal = uncached = 0
    for prompts in workers:
        known = PrefixTrie()
        for messages in prompts:
            prompt = await cached.tokens(messages)
            shared = min(known.add(prompt), len(prompt) - 1)
            ideal += shared // cached.block_tokens * cached.block_tokens
            uncached += len(prompt) - shared
    sizes = [len(await cached.tokens([{"role": "user", "content": text}])) for text in texts]
    return CacheTokens(ideal, uncached, sum(sizes))


@dataclass
class _Node:
    """Tokens that follow those of the parent node; `below`: child nodes by their first token."""

    tokens: Sequence[Hashable] = ()
    below: dict[Hashable, "_Node"] = field(default_factory=dict)


class PrefixTrie:
    """Prompts as token sequences; shared prefixes are kept once."""

    def __init__(self) -> None:
        self._root = _Node()

    def add(self, prompt: Sequence[Hashable]) -> int:
        """Keep a prompt; return the length of the longest prefix that an earlier one shares."""
        node, shared = self._root, 0
        while shared < len(prompt) and (below := node.below.get(prompt[shared])):
            alike = _num_alike(below.tokens, prompt[shared : shared + len(below.tokens)])
            shared += alike
            if alike < len(below.tokens):  # they diverge here: the rest becomes its own node
                rest = _Node(below.tokens[alike:], below.below)
                below.tokens, below.below = below.tokens[:alike], {rest.tokens[0]: rest}
            node = below
        if shared < len(prompt):
            node.below[prompt[shared]] = _Node(prompt[shared:])
        return shared


def _num_alike(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """The length of the common prefix."""
    if one == other:
        return len(one)
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))
