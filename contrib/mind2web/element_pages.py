"""Paginate a web page by its elements (ReadAgent appendix D.1)."""

from html.parser import HTMLParser
from itertools import accumulate, pairwise

from pydantic import PositiveInt

from gistmill.plugin import Ask, Page, Paginate, UnitRows, page_of

_VOID = {  # elements without content or end tag
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source"),
    *("track", "wbr"),
}


class PaginateElements(Paginate):
    """A page is an element `depth` levels below the root, with all that is in it; tags above that
    level belong to the page before them, the first ones to the first page. A text with no element
    at that level is one page. The paper takes the best of depths 5 to 7.
    """

    kind = "elements"
    version = 1
    depth: PositiveInt

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Document -> Pages, in order, with chosen_by `rule`. No calls."""
        text = rows.document.text
        found = _Starts(text, self.depth).found
        ends = [0, *found[1:], len(text)]
        return [page_of(rows, n, span, "rule") for n, span in enumerate(pairwise(ends))]


class _Starts(HTMLParser):
    """`found`: positions in the text where elements at the depth begin."""

    def __init__(self, text: str, depth: int) -> None:
        super().__init__(convert_charrefs=False)
        lines = (len(line) for line in text.split("\n"))
        self._line_starts = [0, *accumulate(length + 1 for length in lines)]
        self._depth, self._open = depth, list[str]()
        self.found: list[int] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._begin()
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self._begin()

    def handle_endtag(self, tag: str) -> None:
        # As in browsers: a tag that was never opened closes nothing, others close all inside, too.
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """Skip `<![...>` of any kind; the base class raises on kinds that it does not know."""
        return end + 1 if (end := self.rawdata.find(">", i)) >= 0 else -1

    def _begin(self) -> None:
        if len(self._open) == self._depth:
            line, column = self.getpos()
            self.found.append(self._line_starts[line - 1] + column)
