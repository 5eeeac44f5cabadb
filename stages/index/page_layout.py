"""Where the raw pages of a gist memory stand: each in place of its gist, as ReadAgent has it, or
appended, after the whole memory, which then begins every prompt about the document alike."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from pipeline.core.rows import UnitRows
from stages.index.budget import Budgeted
from stages.index.context import Context, memory, memory_with_appended

Layout = Literal["in_place", "appended"]
Pages = frozenset[int]


class ShowsGistMemory(Budgeted):
    """Base class of stages whose prompts show the gist memory with raw pages.

    `layout` None is in_place. Appended pages stand under `appended_heading`.
    """

    first_page: int = Field(ge=0, le=1)
    layout: Layout | None = None
    appended_heading: str | None = None

    def hashed(self) -> dict[str, Any]:
        """Its kind and settings; those of the layout only where it is another one: other steps keep
        their ids."""
        own = super().hashed()
        if self.layout == "appended":
            return own
        return {key: own[key] for key in own if key not in ("layout", "appended_heading")}

    def memory(self, rows: UnitRows, used: Sequence[int]) -> Context:
        """The gist memory with the raw pages `used`, which if appended stand in that order."""
        if self.layout == "appended":
            return memory_with_appended(rows, used, self.first_page, self.appended_heading)
        return memory(rows, used, self.first_page)


def orders_alike(chosen: Collection[Pages], words: Mapping[int, int]) -> dict[Pages, list[int]]:
    """The order of each set of pages, such that orders begin alike and long: pages at equal places
    after equal pages are computed once by an engine with a prefix cache. `words`: of each page.

    Greedy: of all sets that begin with the same pages so far, next is the page that saves most
    words, which are its own times the sets that have it, but for the first; of pages that save as
    much the first.
    """
    found: dict[Pages, list[int]] = {}
    groups: list[tuple[list[int], list[Pages]]] = [([], list(chosen))]
    while groups:
        before, sets = groups.pop()
        found |= {pages: before for pages in sets if len(pages) == len(before)}
        sets = [pages for pages in sets if len(pages) > len(before)]
        number = Counter(page for pages in sets for page in pages if page not in before)
        if number:
            saved = {page: (times - 1) * words[page] for page, times in number.items()}
            best = min(saved, key=lambda page: (-saved[page], page))
            groups.append((before, [pages for pages in sets if best not in pages]))
            groups.append(([*before, best], [pages for pages in sets if best in pages]))
    return found
