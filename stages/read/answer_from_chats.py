"""Answer each question from the sessions or rounds that were found, shown by date, with or without
notes (LongMemEval section 5.5; Chain-of-Note)."""

import asyncio
import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Question, Record, Span, UnitRows
from pipeline.work.stage import Stage
from stages.index.context import Context
from stages.prompts.longmemeval.answer_chats import AnswerFromChats
from stages.prompts.longmemeval.answer_chats_con import AnswerWithNotes
from stages.prompts.longmemeval.note import NoteOnChat
from stages.prompts.parsing.passages import Passage
from stages.read.answer_from_context import AnswerFromContext
from stages.retrieve.look_up import used_pages
from stages.tables.lookups import Lookup, Note
from stages.tables.pages import Page
from stages.text.chat_text import session_dates, turns_of
from stages.text.words import num_words, without_header

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


class AnswerFromChat(AnswerFromContext):
    """From the items by date. `reading`: direct, or con, Chain-of-Note in the same call: what each
    item says first, then the answer. Items without room are left out, the last found first.
    """

    kind = "chats"
    version = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Page, Lookup)
    prompts = (AnswerFromChats, AnswerWithNotes)
    history: History
    reading: Literal["direct", "con"]

    def prompts_used(self) -> tuple[type[Prompt[Any]], ...]:
        return (AnswerFromChats,) if self.reading == "direct" else (AnswerWithNotes,)

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        return chat_context(rows[Page], used, self.history)

    def prompt(self, question: Question, context: Context) -> Prompt[int | str]:
        prompt = AnswerFromChats if self.reading == "direct" else AnswerWithNotes
        return prompt(
            passages=context.passages,
            question=question.question,
            options=question.options,
            answer_words=self.answer_words,
            asked_at=question.asked_at or "",
        )


class AnswerFromNotes(AnswerFromChat):
    """From the notes on the items, by date; items of which nothing was noted are left out."""

    kind = "notes"
    version = 1
    reads = (Page, Lookup, Note)

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        dates = session_dates([page.text or "" for page in rows[Page]])
        read = set(used)
        notes = [n for n in rows.of(Note, question) if n.note and n.page_index in read]
        shown = [(dates[note.page_index or 0], note.note or "") for note in notes]
        whole = chat_context(rows[Page], used, self.history)
        return replace(
            whole,
            passages=tuple(
                Passage("text", None, item(number, date, text))
                for number, (date, text) in enumerate(shown, 1)
            ),
            spans=(),
            num_words=sum(num_words(text) for _, text in shown),
        )


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
