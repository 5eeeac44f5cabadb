"""Check that a document's gist memory fits the reader's context (ReadAgent appendix H)."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from pipeline.asking.ask import Ask
from stages.index.context import gist_memory
from stages.prompts.readagent.answer import AnswerQuestion
from stages.prompts.readagent.look_up_p import ParallelLookUp
from stages.tables.gists import Gist
from stages.tables.pages import Page
from stages.text.words import num_words, word_spans


async def free_tokens(
    ask: Ask,
    pages: Sequence[Page],
    gists: Sequence[Gist],
    raw: Collection[int],
    question_tokens: int,
) -> int:
    """The tokens left beside the gist memory with the pages `raw` in it, a question of
    `question_tokens` and the replies of a look-up and an answer; below 0: so many are too much."""
    passages = gist_memory(pages, gists, raw, first_page=0).passages
    prompt = ParallelLookUp(passages=passages, question="", options=(), max_pages=1)
    replies = ask.max_reply_tokens(ParallelLookUp) + ask.max_reply_tokens(AnswerQuestion)
    return ask.context_tokens - await ask.num_tokens(prompt) - replies - question_tokens


async def longest_readable(ask: Ask, pages: Sequence[Page], question_tokens: int) -> list[int]:
    """The index of the longest page that fits the context by itself; empty where none does."""
    for page in sorted(pages, key=lambda page: -page.num_words):
        raw = [page.page_index]
        if await free_tokens(ask, [page], [], raw, question_tokens) >= 0:
            return raw
    return []


def cut_gist(gist: Gist, most_words: int, header: str | None = None) -> Gist:
    """The gist with its first `most_words` words, truncated; itself where it has no more. A
    session's header stays before it and does not count."""
    if gist.num_words <= most_words:
        return gist
    text = (gist.gist or "").removeprefix(header or "").strip()
    end = word_spans(text)[most_words - 1][1] if most_words else 0
    return replace(with_text(gist, text[:end], header), problem="truncated")


def with_text(gist: Gist, text: str, header: str | None) -> Gist:
    """The gist with another text after its session's header."""
    whole = f"{header} {text}" if header else text
    return replace(gist, gist=whole, num_words=num_words(text), problem=None)
