"""Cut a chat history into its sessions or rounds (LongMemEval section 5.2, the granularity of
values)."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar, Literal

from pipeline.asking.ask import Ask
from pipeline.core.rows import UnitRows
from stages.index.page_pieces import sections
from stages.index.paginate import Paginate, page_of
from stages.tables.pages import Page
from stages.text.words import without_header

# A turn is a paragraph: a line within one may begin so, too, where a dialogue was pasted.
_USER_TURN = re.compile(r"(?:\A\f?|(?<=\n\n))user: ")


class PaginateChat(Paginate):
    """A page is a session, or with `value: round` a turn of the user and those after it, up to the
    user's next. What stands before a session's first turn of the user belongs to its first round; a
    document without sessions is one.
    """

    kind: ClassVar[str] = "chat"
    version: ClassVar[int] = 1
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
