"""A budget: the most of the reader's tokens that the final context of an answer may have, so that
methods are compared at the same number of tokens."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.errors import UsageError
from pipeline.work.stage import Stage
from stages.index.context import Context
from stages.index.paginate import Paginate
from stages.text.fit_to_limit import largest_number


class Budgeted(Stage):
    """Base class of stages that keep a budget; None: as much as fits the engine's context. Tokens
    are counted as `Answer.num_context_tokens` is."""

    budget: PositiveInt | None = None

    def hashed(self) -> dict[str, Any]:
        """Its kind and settings; a budget only where there is one: other steps keep their ids."""
        own = super().hashed()
        return own if self.budget else {key: own[key] for key in own if key != "budget"}

    def refuse_upstream(self, place: str, upstream: Sequence[Stage]) -> None:
        """Raise UsageError, naming `place`, where the pages that the stages make are larger than
        the budget, as far as settings say so: a word has a token or more."""
        for stage in upstream if self.budget else ():
            size = stage.page_size() if isinstance(stage, Paginate) else None
            if self.budget and size and size[1] > self.budget:
                name, least = size
                raise UsageError(
                    f"{place}: budget={self.budget} is smaller than a page, as {name}={least}; "
                    f"raise the budget to {least} or more, or make shorter pages"
                )


async def pages_within(
    budget: int, num_pages: int, context: Callable[[int], Context], ask: Ask
) -> tuple[int, str | None]:
    """The number of pages that the budget has room for, up to the first that would pass it; and why
    nothing can be answered within it, None where something can. `context`: the one with the first
    so many of the `num_pages` pages."""

    async def size(number: int) -> int:
        return await ask.part_tokens(context(number).parts)

    fitting = await largest_number(budget, size, num_pages)
    tokens = await size(fitting)
    if tokens > budget:
        return 0, f"budget={budget}: the context has {tokens} tokens without any page; raise it"
    if num_pages and not fitting and not tokens:
        first = await size(1)
        advice = "raise it or make shorter pages"
        return 0, f"budget={budget}: the first page has {first} tokens; {advice}"
    return fitting, None
