"""Count the tokens of texts by themselves, as an engine counts whole prompts."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from pipeline.core.prompts import Message


class TextTokens:
    """The tokens of texts without those of the chat template around them; `count`: those of whole
    prompts. Parts of contexts are counted once each."""

    def __init__(self, count: Callable[[Sequence[Message]], Awaitable[int]]) -> None:
        self._count = count
        self._around: int | None = None
        self._counted: dict[str, int] = {}
        self._one_at_a_time = asyncio.Lock()

    async def of(self, text: str) -> int:
        """The tokens of one text."""
        around = await self._of_template()
        return await self._count((Message(role="user", content=text),)) - around

    async def of_parts(self, parts: Iterable[str]) -> int:
        """The sum over all parts, each without the white space around it."""
        return sum([await self._of_part(text) for part in parts if (text := part.strip())])

    async def _of_part(self, text: str) -> int:
        async with self._one_at_a_time:  # or questions that are asked at once would each count it
            if text not in self._counted:
                self._counted[text] = await self.of(text)
        return self._counted[text]

    async def _of_template(self) -> int:
        if self._around is None:
            self._around = await self._count((Message(role="user", content=""),))
        return self._around
