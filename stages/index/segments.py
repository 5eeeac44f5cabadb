"""Cut a document into segments of a fixed number of tokens (MemWalker section 3), or a chat history
into its sessions or rounds (LongMemEval section 5.2, the granularity of values)."""

import re
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from typing import Literal

from pydantic import PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.rows import UnitRows
from stages.index.paginate import Paginate, page_of
from stages.index.windows import sections
from stages.prompts.memwalker import SummarizeSegment
from stages.tables.pages import Page
from stages.text.fit_to_limit import fit_to_limit, stretch_over
from stages.text.words import num_words, sentence_spans, without_header, word_spans


class PaginateByTokens(Paginate):
    """Segments of at most `segment_tokens` of the engine's tokens, cut by `segments`; with
    `page_breaks` none crosses a form feed. The engine only counts.
    """

    kind = "tokens"
    version = 1
    prompts = (SummarizeSegment,)
    page_breaks: bool
    segment_tokens: PositiveInt

    def page_size(self) -> tuple[str, int]:
        return "segment_tokens", self.segment_tokens

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Document -> Pages, in order, with chosen_by `rule`. No calls."""
        text = rows.document.text
        made: list[Page] = []
        for first, last in sections(text) if self.page_breaks else [(0, len(text))]:
            for start, end in await segments(
                text[first:last], self.segment_tokens, ask.text_tokens
            ):
                made.append(page_of(rows, len(made), (first + start, first + end), "rule"))
        return made


Count = Callable[[str], Awaitable[int]]
"""The tokens of a text by itself, as an engine counts them."""


async def segments(text: str, max_tokens: int, count: Count) -> list[tuple[int, int]]:
    """Half-open spans that tile `text`, in order, of at most `max_tokens` tokens each.

    Each takes in as many whole sentences as fit; the white space around them does not count. A
    sentence that is too long by itself is cut between words, such a word between characters; only
    a single character may have more tokens. Where the text has words so has every segment.
    """
    found: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        end = await _end(text, start, max_tokens, count)
        found.append((start, end))
        start = end
    return found


async def first_segment(text: str, max_tokens: int, count: Count) -> str:
    """The text, or its first sentences that so many tokens have room for."""
    _, end = (await segments(text, max_tokens, count))[0]
    return text[:end].strip()


async def _end(text: str, start: int, max_tokens: int, count: Count) -> int:
    """The end of the segment that begins at `start`."""

    async def size(num_chars: int) -> int:
        return await count(text[start : start + num_chars].strip())

    num_chars, tokens = await stretch_over(max_tokens, size, len(text) - start)
    if tokens <= max_tokens:
        return len(text)
    for ends in (_sentence_ends, _word_ends, _char_ends):
        stretch = text[start : start + num_chars]
        blank = len(stretch) - len(stretch.lstrip())  # what has no word is no segment
        lengths = [0, *(end for end in ends(stretch) if end > blank)]
        most = await fit_to_limit(max_tokens, size, lengths, 0, tokens)
        if most:
            return start + most
        num_chars = lengths[1]  # too long by itself: cut it at ends of a finer kind
        tokens = await size(num_chars)
    return start + num_chars


def _sentence_ends(text: str) -> list[int]:
    """The ends of the sentences, and of the text; a session's header is none, but joins the next
    sentence."""
    spans = [
        (first + start, first + end)
        for first, last in sections(text)
        for start, end in sentence_spans(text[first:last])
    ]
    ends = [end for start, end in spans if end < len(text) and num_words(text[start:end])]
    return [*ends, len(text)]


def _word_ends(text: str) -> list[int]:
    """Where the next word starts, and the end of the text."""
    return [*(start for start, _ in word_spans(text)[1:]), len(text)]


def _char_ends(text: str) -> list[int]:
    return list(range(1, len(text) + 1))


# A turn is a paragraph: a line within one may begin so, too, where a dialogue was pasted.
_USER_TURN = re.compile(r"(?:\A\f?|(?<=\n\n))user: ")


class PaginateChat(Paginate):
    """A page is a session, or with `value: round` a turn of the user and those after it, up to the
    user's next. What stands before a session's first turn of the user belongs to its first round; a
    document without sessions is one.
    """

    kind = "chat"
    version = 1
    value: Literal["session", "round"]

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Document -> Pages, in order, with chosen_by `rule`. No calls."""
        text = rows.document.text
        spans = [span for part in sections(text) for span in self._values(text, *part)]
        return [page_of(rows, index, span, "rule") for index, span in enumerate(spans)]

    def _values(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        turns_text = without_header(text[start:end])
        first = end - len(turns_text)
        turns = [first + found.start() for found in _USER_TURN.finditer(turns_text)]
        cuts = turns[1:] if self.value == "round" else []
        yield from pairwise([start, *cuts, end])
