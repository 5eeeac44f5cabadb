"""Gists as follow-ups: a page is shortened in the conversation that has found its end and so shown
it, which an engine with a prefix cache has in memory."""

from bisect import bisect_left
from collections.abc import Sequence

from pipeline.asking.ask import Ask
from pipeline.core.errors import UsageError
from pipeline.core.prompts import Prompt
from pipeline.core.rows import UnitRows
from pipeline.work.stage import Stage
from stages.index.gist_pages import GistPages
from stages.index.page_pieces import Piece, shown_text
from stages.index.paginate import PaginateInConversations, is_asked
from stages.index.windows import InConversations, word_totals
from stages.prompts.pages_and_gists import ShortenPage, ShortenShownPage
from stages.tables.pages import Page


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

    async def follow_ups(self, rows: UnitRows, ask: Ask) -> list[Prompt[str] | None]:
        text = rows.document.text
        sections = (_Section(self, text, parts) for parts in self.parts(text, self.max_words))
        section: _Section | None = None
        found: list[Prompt[str] | None] = []
        for page in rows[Page]:
            if section is None or section.first >= len(section.parts):
                section = next(sections)
            found.append(await section.follow_up(page, ask))
        return found


class _Section:
    """The pages of one section of the text, in order."""

    def __init__(self, by: InConversations, text: str, parts: Sequence[Piece]) -> None:
        self.by, self.text, self.parts = by, text, parts
        self.totals, self.ends = word_totals(parts), [part.end_char for part in parts]
        self.conversation = by.conversation(text)
        self.previous = self.first = 0

    async def follow_up(self, page: Page, ask: Ask) -> Prompt[str] | None:
        """The prompt about the next page; None if it is shortened by itself."""
        window = self.by.window(self.parts, self.totals, self.first, self.previous)
        after = await self.conversation.prompt(window, ask) if is_asked(page) else None
        end = bisect_left(self.ends, page.end_char) + 1
        self.conversation.ended(window, end, is_asked(page))
        self.previous, self.first = self.first, end
        if after is None:
            return None
        shown = shown_text(self.text, page.start_char, page.end_char)
        prompt = ShortenShownPage(after, end, shown)
        has_room = await ask.fits(prompt, ask.max_reply_tokens(ShortenShownPage))
        return prompt if has_room else None
