"""Gists as follow-ups: a page is shortened in the conversation that has found its end and so shown
it, which an engine with a prefix cache has in memory."""

from collections.abc import Iterator, Sequence

from pipeline.asking.ask import Ask
from pipeline.core.errors import UsageError
from pipeline.core.prompts import Prompt
from pipeline.core.rows import UnitRows
from pipeline.work.stage import Stage
from stages.index.gist_pages import FollowUp, GistPages
from stages.index.page_pieces import shown_text
from stages.index.paginate import PaginateInConversations
from stages.index.windows import InConversations, Windows
from stages.prompts.readagent.gist import ShortenPage
from stages.prompts.readagent.gist_follow_up import ShortenShownPage
from stages.tables.pages import Page

_ASKED = ("model", "fallback")  # `chosen_by` of pages whose ends a model was asked for


class FollowUpGists(InConversations, GistPages):
    """Needs pages of the stage `paginate` (kind conversation) with the same settings. A page whose
    end nobody was asked for, and one whose conversation has no room for another reply, is shortened
    by itself."""

    kind = "follow_up"
    version = 1
    prompts = (ShortenShownPage, ShortenPage)

    def refuse_upstream(self, place: str, upstream: Sequence[Stage]) -> None:
        """Raise UsageError where the pages are of other conversations."""
        settings = sorted(InConversations.model_fields)
        for stage in upstream:
            if not isinstance(stage, PaginateInConversations):
                raise UsageError(
                    f"{place}: follows conversations, which {stage.label()} has none of; use "
                    f"{PaginateInConversations.label()} before it"
                )
            for name in settings:
                if (own := getattr(self, name)) != (other := getattr(stage, name)):
                    raise UsageError(
                        f"{place}: {name} is {own}, and {other} of {stage.label()}; give both one"
                    )

    def follow_ups(self, rows: UnitRows, ask: Ask) -> FollowUp:
        text = rows.document.text
        sections = self._sections(text)
        windows: Windows | None = None

        async def follow_up(page: Page) -> Prompt[str] | None:
            nonlocal windows
            if windows is None or windows.first >= len(windows.parts):
                windows = next(sections)
            return await _follow_up(page, windows, ask)

        return follow_up

    def _sections(self, text: str) -> Iterator[Windows]:
        for parts in self.parts(text, self.max_words):
            yield self.windows(text, parts)


async def _follow_up(page: Page, windows: Windows, ask: Ask) -> Prompt[str] | None:
    """The prompt about the page, whose window is the next; None if it is shortened by itself."""
    is_asked = page.chosen_by in _ASKED and page.problem is None
    after = await windows.ask_with(ask) if is_asked else None
    windows.ended(page.end_char)
    if after is None:
        return None
    text = shown_text(windows.text, page.start_char, page.end_char)
    prompt = ShortenShownPage(after, windows.first, text)
    has_room = await ask.fits(prompt, ask.max_reply_tokens(ShortenShownPage))
    return prompt if has_room else None
