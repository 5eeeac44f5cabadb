"""Show sessions or rounds of a chat to a reader, by date (LongMemEval section 5.5)."""

import json
from collections.abc import Collection, Sequence
from typing import Literal

from pipeline.core.rows import Span
from stages.index.context import Context
from stages.prompts.parsing.passages import Passage
from stages.tables.pages import Page
from stages.text.chat_text import session_dates, turns_of
from stages.text.words import without_header

History = Literal["json", "text"]


def chat_context(pages: Sequence[Page], used: Collection[int], history: History) -> Context:
    """The pages `used` in document order, which is that of their dates where all can be read, each
    with its number and date; `json`: turns as a JSON list of objects with role and content."""
    dates, used = session_dates([page.text or "" for page in pages]), set(used)
    shown = [(page, dates[page.page_index]) for page in pages if page.page_index in used]
    return Context(
        passages=tuple(
            Passage("text", None, item(number, date, chat(page, history)))
            for number, (page, date) in enumerate(shown, 1)
        ),
        spans=tuple(Span(page.start_char, page.end_char) for page, _ in shown),
        page_indexes=tuple(page.page_index for page, _ in shown),
        num_words=sum(page.num_words for page, _ in shown),
    )


def item(number: int, date: str, text: str) -> str:
    """An item of the history under its heading."""
    return f"### Session {number}\nDate: {date or 'not known'}\n{text}"


def chat(page: Page, history: History) -> str:
    """The turns of a page, without its header."""
    text = page.text or ""
    if history == "text":
        return without_header(text).strip()
    turns = [{"role": turn.role, "content": turn.content} for turn in turns_of(text)]
    return json.dumps(turns, ensure_ascii=False)
