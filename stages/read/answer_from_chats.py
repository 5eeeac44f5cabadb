"""Answer each question from the sessions or rounds found for it, in order of date: in one call, or
from a note on each (LongMemEval section 5.5; Chain-of-Note, con-separate in the authors' code)."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.prompts import Asked, Prompt
from pipeline.core.rows import Question, Record, Span, UnitRows
from pipeline.work.stage import Stage
from stages.index.context import Context, fields_of
from stages.prompts.answer import Passage
from stages.prompts.longmemeval import NOTHING, AnswerFromChats, AnswerWithNotes, NoteOnChat
from stages.read.answer_from_context import AnswerFromContext
from stages.retrieve.look_up import used_pages, why_upstream
from stages.tables.answers import Answer
from stages.tables.lookups import Lookup, Note
from stages.tables.pages import Expansion, Page
from stages.text.chat_text import session_dates, turns_of
from stages.text.words import num_words, without_header

History = Literal["json", "text"]
_json = partial(json.dumps, ensure_ascii=False)


def _chat_context(
    pages: Sequence[Page], shown: Mapping[int, str], raw: Iterable[int], noted: Sequence[str] = ()
) -> Context:
    """The texts `shown` of pages, by page index, each with its number and date, in document order,
    which is the order of dates if all dates can be read. The spans, page indexes and words are of
    the `raw` pages; the words of `noted` count, too."""
    dates, raw = session_dates([page.text or "" for page in pages]), {*raw}
    items = [
        f"### Session {number}\nDate: {dates[index] or 'not known'}\n{shown[index]}"
        for number, index in enumerate(sorted(shown), 1)
    ]
    counted = [page for page in pages if page.page_index in raw]
    return Context(
        passages=tuple(Passage("text", None, item) for item in items),
        spans=tuple(Span(page.start_char, page.end_char) for page in counted),
        page_indexes=tuple(page.page_index for page in counted),
        num_words=sum(page.num_words for page in counted) + sum(map(num_words, noted)),
        counted=(*(without_header(page.text or "") for page in counted), *noted),
    )


def _chat(page: Page, history: History) -> str:
    """The turns of a page, without its header; `json`: a list of objects with role and content."""
    text = page.text or ""
    if history == "text":
        return without_header(text).strip()
    return _json([{"role": turn.role, "content": turn.content} for turn in turns_of(text)])


class AnswerFromChat(AnswerFromContext):
    """From the items by date. `reading`: direct, or con, Chain-of-Note in the same call: first what
    each item says, then the answer. `judged`: raters see the answer, or the whole_reply, as in
    the authors' code; every reply is then an answer to a free-form question.
    """

    kind = "chats"
    version = 3
    reads: ClassVar[tuple[type[Record], ...]] = (Page, Lookup)
    prompts = (AnswerFromChats, AnswerWithNotes)
    history: History
    reading: Literal["direct", "con"]
    judged: Literal["answer", "whole_reply"]

    def prompts_used(self) -> tuple[type[Prompt[Any]], ...]:
        return (AnswerFromChats,) if self.reading == "direct" else (AnswerWithNotes,)

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        pages = [page for page in rows[Page] if page.page_index in used]
        shown = {page.page_index: _chat(page, self.history) for page in pages}
        return _chat_context(rows[Page], shown, used)

    def prompt(self, question: Question, context: Context) -> Prompt[int | str]:
        prompt = AnswerFromChats if self.reading == "direct" else AnswerWithNotes
        return prompt(
            passages=context.passages, **fields_of(question), answer_words=self.answer_words
        )

    def answered(self, answer: Answer, question: Question, asked: Asked[int | str]) -> Answer:
        answer = super().answered(answer, question, asked)
        if self.judged == "answer" or question.options:
            return answer
        reply = asked.raw.strip()
        problem = None if answer.problem == "unparseable" and reply else answer.problem
        return replace(answer, problem=problem, judged=reply if reply != answer.answer else None)


class AnswerFromExpandedChat(AnswerFromChat):
    """As `chats`, of each page `shown`: its value; the items that were extracted from it, facts or
    a summary as the value (section 5.2); or both, the items before the value (the authors'
    run_generation.py, merge_key_expansion_into_value). A page without items is shown unchanged.
    """

    kind = "expanded_chats"
    version = 2
    reads = (Page, Lookup, Expansion)
    shown: Literal["value", "items", "both"]

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        items: defaultdict[int, list[str]] = defaultdict(list)
        for row in rows[Expansion]:
            if row.text and self.shown != "value":
                items[row.page_index].append(row.text)

        def text(page: Page) -> str:
            noted, chat = items[page.page_index], _chat(page, self.history)
            if not noted:
                return chat
            if self.history == "json":
                listed = _json(noted)
                both = f'{{"noted": {listed}, "chat": {chat}}}'
            else:
                listed = "\n".join(noted)
                both = f"Noted: {listed}\n\n{chat}"
            return listed if self.shown == "items" else both

        shown = {page.page_index: text(page) for page in rows[Page] if page.page_index in used}
        raw = (index for index in shown if self.shown != "items" or not items[index])
        return _chat_context(rows[Page], shown, raw, [t for index in shown for t in items[index]])


class AnswerFromNotes(AnswerFromChat):
    """From the notes on the items, by date, in the authors' code con-separate. `keep_empty`: items
    of which nothing was noted are shown with the word for that, as in their code, or left out."""

    kind = "notes"
    version = 3
    reads = (Page, Lookup, Note)
    keep_empty: bool

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        pages = {*used}
        notes = {
            row.page_index: row.note or NOTHING
            for row in rows.of(Note, question)
            if row.page_index in pages and row.note is not None and (row.note or self.keep_empty)
        }
        shown = notes
        if self.history == "json":
            shown = {index: _json({"note": note}) for index, note in notes.items()}
        context = _chat_context(rows[Page], shown, (), list(notes.values()))
        return replace(context, page_indexes=tuple(sorted(pages)))


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
        of_questions = await asyncio.gather(*(self._notes(rows, q, ask) for q in rows.questions))
        return [note for notes in of_questions for note in notes]

    async def _notes(self, rows: UnitRows, question: Question, ask: Ask) -> list[Note]:
        if detail := why_upstream(rows.of(Lookup, question)):
            return [Note.about(question, problem="upstream", detail=detail)]
        dates = session_dates([page.text or "" for page in rows[Page]])

        async def note(index: int) -> Note:
            chat, asked_at = _chat(rows[Page][index], self.history), question.asked_at or ""
            prompt = NoteOnChat(chat, dates[index], question.question, asked_at)
            reply = await ask(prompt, Subject(question_id=question.question_id, page_index=index))
            return Note.about(question, page_index=index, note=reply.value, problem=reply.problem)

        used = sorted(used_pages(rows, question))
        return list(await asyncio.gather(*map(note, used))) or [Note.about(question)]
