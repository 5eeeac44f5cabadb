"""Markdown of HTML: headings with their levels, lists and tables; blank lines between paragraphs.

In one pass and without recursion, so that no nesting is too deep.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser

from stages.extract.markdown_table import SpannedCells, markdown_table
from stages.text.article_text import without_marked_sections

Attributes = list[tuple[str, str | None]]
IsSkipped = Callable[[str, Mapping[str, str | None], Collection[str]], bool]
"""True for an element that is left out, by its name, its attributes, and what it is within of
<article> and <main>."""
LINK, LINK_END = "\x02", "\x03"
_HIDDEN = frozenset({"script", "style", "title", "template", "noscript", "svg"})
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_MAIN = ("article", "main")
_LISTS = ("ul", "ol", "menu")
_BLOCKS = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "div"),
        *("details", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "head"),
        *("header", "hr", "html", "main", "nav", "p", "pre", "section", "summary", *_LISTS),
    }
)
_MARKS = re.compile("[\x01-\x03]")
_INDENT = "\x01"  # of two spaces, until white space is put right
_BARE = re.compile(rf"(?:\n{_INDENT}+|\n{_INDENT}*-|(?:\A|\n)#+)(?=\n|\Z)")
_LONGEST_CELL = 1000  # characters: a table with longer ones is for the page's layout


def markdown(html: str, is_skipped: IsSkipped | None = None) -> str:
    """The text as Markdown; without the elements that are skipped, and LINK and LINK_END around
    links outside of <article> and <main>, where `is_skipped` is given. None is skipped where one
    of them has no end."""
    html = without_marked_sections(html)
    parser = _Writer(is_skipped)
    parser.feed(html)
    parser.close()
    if is_skipped and parser.is_skipping:  # to the page's end: an element that nothing ends
        parser = _Writer(lambda tag, attrs, inside: False)
        parser.feed(html)
        parser.close()
    return parser.text()


@dataclass
class _Table:
    cells: SpannedCells = field(default_factory=SpannedCells)
    cell: tuple[int, int, int] | None = None  # where it begins; the columns and rows it spans
    is_layout: bool = False  # what is in it is no table's cell

    def written(self) -> str:
        """A table of several rows and columns as one, any other's cells as paragraphs."""
        rows = [row for row in self.cells.rows if any(map(str.strip, row))]
        longest = max((len(cell) for row in rows for cell in row), default=0)
        is_table = len(rows) > 1 and max(map(len, rows)) > 1
        if self.is_layout or not is_table or longest > _LONGEST_CELL:
            return "\n\n".join(cell for row in rows for cell in row)
        return markdown_table([[cell.replace(_INDENT, " ") for cell in row] for row in rows])


class _Writer(HTMLParser):
    """Collects the text of HTML; white space becomes one space, as in a browser."""

    def __init__(self, is_skipped: IsSkipped | None) -> None:
        super().__init__(convert_charrefs=True)
        self._is_skipped = is_skipped
        self._skipping: list[str] = []  # the skipped element, and those of its name within it
        self._parts: list[str] = []
        self._tables: list[_Table] = []
        self._lists: list[int | None] = []  # of those that are open the next number, or None
        self._pre = 0
        self._inside: list[str] = []  # the open elements of _MAIN
        self._is_heading = self._is_item = False  # nothing but a marker is written of the item

    @property
    def is_skipping(self) -> bool:
        return bool(self._skipping)

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        if self._skipping:
            self._skipping += [tag] if tag == self._skipping[0] else []
        elif tag in _HIDDEN or self._is_left_out(tag, dict(attrs)):
            self._skipping = [tag]
        else:
            self._begin(tag, dict(attrs))

    def _is_left_out(self, tag: str, attrs: Mapping[str, str | None]) -> bool:
        return self._is_skipped is not None and self._is_skipped(tag, attrs, self._inside)

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        if not self._skipping and tag not in _HIDDEN:
            self._begin(tag, dict(attrs))
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._skipping:
            self._end(tag)
        elif tag == self._skipping[0]:
            self._skipping.pop()

    def handle_data(self, data: str) -> None:
        if self._skipping:
            return
        data = _MARKS.sub("", data)
        if not data.isspace():
            self._is_item = False
        keeps_lines = self._pre and not (self._is_heading or self._tables)
        self._parts.append(data if keeps_lines else re.sub(r"\s+", " ", data))

    def _begin(self, tag: str, attrs: dict[str, str | None]) -> None:
        if tag == "br":
            self._parts.append(" " if self._is_heading else "\n")
        elif tag in _HEADINGS:
            self._break()
            self._parts.append(f"{_HEADINGS[tag]} ")
            self._is_heading = True
            for table in self._tables:
                table.is_layout = True
        elif tag == "li":
            self._begin_item()
        elif tag in ("table", "tr", "td", "th"):
            self._begin_in_table(tag, attrs)
        elif tag == "a" and self._is_skipped and not self._inside:
            self._parts.append(LINK)
        elif tag in _BLOCKS:
            self._break()
            self._pre += tag == "pre"
            self._inside += [tag] if tag in _MAIN else []
            if tag in _LISTS:
                self._lists.append(_whole(attrs.get("start")) if tag == "ol" else None)

    def _end(self, tag: str) -> None:
        if tag in _HEADINGS:
            self._is_heading = False
            self._break()
        elif tag in ("td", "th", "tr") and self._tables:
            self._end_cell(self._tables[-1])
        elif tag == "table" and self._tables:
            self._end_table()
        elif tag == "a" and self._is_skipped and not self._inside:
            self._parts.append(LINK_END)
        elif tag in _BLOCKS:
            if tag in self._inside:
                self._inside.remove(tag)
            if tag in _LISTS:
                self._lists[-1:] = []
                self._is_item = False
            self._break()
            self._pre = max(0, self._pre - (tag == "pre"))

    def _break(self) -> None:
        """End a paragraph; within a list, a line."""
        if self._is_heading:
            self._parts.append(" ")
        elif not self._is_item:
            self._parts.append("\n" + _INDENT * len(self._lists) if self._lists else "\n\n")

    def _begin_item(self) -> None:
        number = self._lists[-1] if self._lists else None
        if number is not None:
            self._lists[-1] = number + 1
        marker = "-" if number is None else f"{number}."
        self._parts.append("\n" + _INDENT * (len(self._lists) - 1) + marker + " ")
        self._is_item = True

    def _begin_in_table(self, tag: str, attrs: dict[str, str | None]) -> None:
        if tag == "table":
            for table in self._tables:
                table.is_layout = True
            self._break()
            self._tables.append(_Table())
        elif self._tables:
            table = self._tables[-1]
            self._end_cell(table)
            if tag == "tr":
                table.cells.begin_row()
            else:
                spans = _whole(attrs.get("colspan")), _whole(attrs.get("rowspan"))
                table.cell = (len(self._parts), *spans)

    def _end_cell(self, table: _Table) -> None:
        if table.cell is not None:
            start, num_columns, num_rows = table.cell
            table.cells.add("".join(self._parts[start:]), num_columns, num_rows)
            del self._parts[start:]
            table.cell = None

    def _end_table(self) -> None:
        table = self._tables.pop()
        self._end_cell(table)
        self._parts += ["\n\n", table.written(), "\n\n"]

    def text(self) -> str:
        """The text collected. Inline tags add nothing, so they neither join nor split words."""
        while self._tables:
            self._end_table()
        lines = (" ".join(line.split()) for line in "".join(self._parts).split("\n"))
        text = _BARE.sub("", "\n".join(lines))
        return re.sub(r"\n{3,}", "\n\n", text).strip().replace(_INDENT, "  ")


def _whole(value: str | None) -> int:
    """A whole number of an attribute; 1 without one."""
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 6 else 1
