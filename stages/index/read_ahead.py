"""Choose the ends of later pages while those before them are chosen, as long as the engine idles.

Where a page ends depends only on where it starts. So chains of choices from guessed starts further
on are valid from the first start that the chain from the document's beginning also reaches; most
meet within a few pages, as pages end at natural pauses. What is asked in vain is bounded.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence

_IN_VAIN = (
    0.25  # of a section's pages: the most choices from starts that are not known to be pages'
)
_CHAINS = 4  # at once, at most
_SHORTEST = 12  # choices of a chain: chains meet after some five
_APART = 0.75  # of a chain's length: a chain may go on into the next until they meet
_FIRST_PAGES = 4  # from which the number of pages is estimated


class ReadAhead:
    """The chains of one section. `choose(start)` asks for the page from the piece `start` and
    returns its end, where the next begins. `totals`: the words before each piece, then of all."""

    def __init__(
        self,
        choose: Callable[[int], Awaitable[int]],
        totals: Sequence[int],
        may_ask: Callable[[], bool],
    ) -> None:
        self._choose = choose
        self._totals = totals
        self._may_ask = may_ask
        self._starts: set[int] = set()  # of all choices, a page's or not
        self._unused: set[int] = set()  # those that are not known to be a page's
        self._promised = 0  # choices that chains have yet to ask for
        self._next = 0.0  # words before the start of the latest chain
        self._chains: list[asyncio.Task[None]] = []

    def reached(self, start: int, num_pages: int) -> None:
        """The document's page number `num_pages` begins at the piece `start`."""
        self._starts.add(start)
        self._unused.discard(start)
        if num_pages < _FIRST_PAGES:
            return
        before = self._totals[start] - self._totals[0]
        words_a_page = before / num_pages
        most = _IN_VAIN * self._totals[-1] / words_a_page
        length = max(int(most / _CHAINS), _SHORTEST)
        while len(self._unused) + self._promised + length <= most and self._may_ask():
            self._next = max(self._next, before) + _APART * length * words_a_page
            begin = bisect_left(self._totals, self._next)
            if begin >= len(self._totals) - 1:
                return
            self._promised += length
            self._chains.append(asyncio.create_task(self._chain(begin, length)))

    async def _chain(self, start: int, length: int) -> None:
        """Ask for pages from `start` on, until another chain has asked for the next."""
        left, end = length, len(self._totals) - 1
        try:
            while left and start < end and start not in self._starts and self._may_ask():
                self._starts.add(start)
                self._unused.add(start)
                left -= 1
                self._promised -= 1
                start = await self._choose(start)
        finally:
            self._promised -= left

    async def stop(self) -> None:
        """Ask for nothing more. Errors of the engine are those of the document's own next call."""
        for chain in self._chains:
            chain.cancel()
        await asyncio.gather(*self._chains, return_exceptions=True)
