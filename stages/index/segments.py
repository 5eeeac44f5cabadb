"""Cut a document into segments of a fixed number of tokens (MemWalker section 3)."""

from typing import Any, ClassVar

from pydantic import PositiveInt

from pipeline.ask import Ask
from pipeline.prompts import Prompt
from pipeline.rows import UnitRows
from stages.index.paginate import Page, Paginate, page_of
from stages.index.pieces import sections
from stages.index.token_segments import segments
from stages.prompts.summarize import SummarizeSegment


class PaginateByTokens(Paginate):
    """Segments of at most `segment_tokens` of the engine's tokens, cut by `token_segments`; with
    `page_breaks` none crosses a form feed. The engine only counts.
    """

    kind: ClassVar[str] = "tokens"
    version: ClassVar[int] = 1
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (SummarizeSegment,)
    page_breaks: bool
    segment_tokens: PositiveInt

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
