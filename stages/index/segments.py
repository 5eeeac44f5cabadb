"""Cut a document into segments of a fixed number of tokens (MemWalker section 3)."""

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import PositiveInt

from pipeline.ask import Ask
from pipeline.prompts import Prompt
from pipeline.rows import UnitRows
from stages.index.paginate import FromText, Page, page_of
from stages.prompts.summarize import SummarizeSegment

_PIECES_PER_SEGMENT = 4  # a paragraph of more words than such a part has tokens is cut into runs


class PaginateByTokens(FromText):
    """Segments of at most `segment_tokens` tokens, counted by the engine piece by piece.

    A segment takes paragraphs, and sentences of long ones, as long as they fit; a single sentence
    that is longer is a segment of its own. The engine replies nothing: it only counts.
    """

    kind: ClassVar[str] = "tokens"
    version: ClassVar[int] = 1
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (SummarizeSegment,)
    segment_tokens: PositiveInt

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Document -> Pages, in order, with chosen_by `rule`. No calls."""
        made: list[Page] = []
        most_words = max(1, self.segment_tokens // _PIECES_PER_SEGMENT)
        for parts in self.parts(rows.document.text, most_words):
            texts = [rows.document.text[part.start_char : part.end_char] for part in parts]
            first = 0
            for end in run_ends(await _num_tokens(texts, ask), self.segment_tokens):
                made.append(page_of(rows, len(made), parts[first:end], "rule"))
                first = end
        return made


async def _num_tokens(texts: Sequence[str], ask: Ask) -> list[int]:
    """The tokens of each text: of a prompt that shows it, less those of the prompt without it."""
    without = await ask.num_tokens(SummarizeSegment(segment=""))
    shown = await asyncio.gather(*(ask.num_tokens(SummarizeSegment(segment=t)) for t in texts))
    return [max(0, tokens - without) for tokens in shown]


def run_ends(sizes: Sequence[int], most: int) -> list[int]:
    """The half-open ends of runs that tile `sizes`, each with as many as add up to at most `most`;
    a larger one is alone."""
    ends: list[int] = []
    total = 0
    for place, size in enumerate(sizes):
        if place and total + size > most:
            ends.append(place)
            total = 0
        total += size
    return [*ends, len(sizes)] if sizes else []
