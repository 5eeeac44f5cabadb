"""Answer each question from the sessions or rounds that were found (LongMemEval section 5.5)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pipeline.core.prompts import Prompt
from pipeline.core.rows import Question, Record, UnitRows
from stages.index.context import Context
from stages.prompts.longmemeval.answer_chats import AnswerFromChats
from stages.prompts.longmemeval.answer_chats_con import AnswerWithNotes
from stages.prompts.parsing.passages import Passage
from stages.read.answer_from_context import AnswerFromContext
from stages.read.chat_context import History, chat_context, item
from stages.tables.lookups import Lookup
from stages.tables.notes import Note
from stages.tables.pages import Page
from stages.text.chat_text import session_dates
from stages.text.words import num_words


class AnswerFromChat(AnswerFromContext):
    """From the items by date. `reading`: direct, or con, Chain-of-Note in the same call: what each
    item says first, then the answer. Items without room are left out, the last found first.
    """

    kind: ClassVar[str] = "chats"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Page, Lookup)
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (AnswerFromChats, AnswerWithNotes)
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

    kind: ClassVar[str] = "notes"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Page, Lookup, Note)

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
