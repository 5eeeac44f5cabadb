"""Take a note on each session or round that was found, in a call of its own, and answer from the
notes (LongMemEval section 5.5; Chain-of-Note, con-separate in the authors' code)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.rows import Question, UnitRows
from pipeline.work.stage import Stage
from stages.index.context import Context
from stages.prompts.chat_reading import NOTHING, NoteOnChat
from stages.read.answer_from_chats import AnswerFromChat, History, chat, chat_context, json_line
from stages.retrieve.look_up import used_pages
from stages.tables.lookups import Lookup, Note
from stages.tables.pages import Page
from stages.text.chat_text import session_dates
from stages.text.words import num_words


class AnswerFromNotes(AnswerFromChat):
    """From the notes on the items, by date, in the authors' code con-separate. `keep_empty`: items
    of which nothing was noted are shown with that word, as theirs are, or left out."""

    kind = "notes"
    version = 3
    reads = (Page, Lookup, Note)
    keep_empty: bool

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        read = {*used}
        notes = {
            n.page_index: n.note or NOTHING
            for n in rows.of(Note, question)
            if n.page_index in read and n.note is not None and (n.note or self.keep_empty)
        }
        whole = chat_context(rows[Page], notes, lambda page: self._text(notes[page.page_index]))
        words = sum(map(num_words, notes.values()))
        read_pages = tuple(sorted(read))
        counted = tuple(notes.values())
        return replace(whole, spans=(), page_indexes=read_pages, num_words=words, counted=counted)

    def _text(self, note: str) -> str:
        return json_line({"note": note}) if self.history == "json" else note


class TakeNotes(Stage):
    """A call for each page that was looked up, in document order."""

    name = "notes"
    version = 1
    reads = (Page, Lookup)
    writes = Note
    prompts = (NoteOnChat,)
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
