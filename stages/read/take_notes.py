"""Take notes on each item that was found, before the answer (LongMemEval section 5.5, Chain-of-Note
with a call per item)."""

import asyncio
from typing import Any, ClassVar

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Question, Record, UnitRows
from pipeline.work.stage import Stage
from stages.prompts.longmemeval.note import NoteOnChat
from stages.read.chat_context import History, chat
from stages.retrieve.look_up import used_pages
from stages.tables.lookups import Lookup
from stages.tables.notes import Note
from stages.tables.pages import Page
from stages.text.chat_text import session_dates


class TakeNotes(Stage):
    """A call for each page that was looked up, in document order."""

    name: ClassVar[str] = "notes"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Page, Lookup)
    writes: ClassVar[type[Record]] = Note
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (NoteOnChat,)
    history: History

    async def run(self, rows: UnitRows, ask: Ask) -> list[Note]:
        """Questions and the pages looked up -> their Notes, in question order, then page order.
        Problems: truncated (the text is kept), unparseable; context_overflow, timeout,
        engine_failed, upstream (a look-up without a reply)."""
        made = await asyncio.gather(*(self._notes(rows, q, ask) for q in rows.questions))
        return [note for notes in made for note in notes]

    async def _notes(self, rows: UnitRows, question: Question, ask: Ask) -> list[Note]:
        if lacks := [lack for row in rows.of(Lookup, question) if (lack := row.why_unusable())]:
            return [Note.about(question, problem="upstream", detail=", ".join(lacks))]
        dates = session_dates([page.text or "" for page in rows[Page]])
        used = sorted(used_pages(rows, question))
        asked = (self._note(question, rows[Page][n], dates[n], ask) for n in used)
        return list(await asyncio.gather(*asked)) or [Note.about(question)]

    async def _note(self, question: Question, page: Page, date: str, ask: Ask) -> Note:
        prompt = NoteOnChat(
            chat=chat(page, self.history),
            said_at=date,
            question=question.question,
            asked_at=question.asked_at or "",
        )
        subject = Subject(question_id=question.question_id, page_index=page.page_index)
        asked = await ask(prompt, subject)
        said = {"note": asked.value, "problem": asked.problem}
        return Note.about(question, page_index=page.page_index, **said)
