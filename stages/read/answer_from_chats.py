"""Answer each question from the sessions or rounds found for it, in order of date: in one call, or
from a note on each, made by a call of its own (LongMemEval section 5.5; Chain-of-Note, con-separate
in the authors' code)."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.prompts import Asked, Prompt
from pipeline.core.rows import Question, Record, Span, UnitRows
from pipeline.work.stage import Stage
from stages.index.context import Context
from stages.prompts.answer import Passage
from stages.prompts.longmemeval import NOTHING, AnswerFromChats, AnswerWithNotes, NoteOnChat
from stages.read.answer_from_context import AnswerFromContext
from stages.retrieve.look_up import used_pages
from stages.tables.answers import Answer
from stages.tables.keys import Expansion
from stages.tables.lookups import Lookup, Note
from stages.tables.pages import Page
from stages.text.chat_text import session_dates, turns_of
from stages.text.words import num_words, without_header

History = Literal["json", "text"]


def chat_context(
    pages: Sequence[Page], used: Collection[int], shown: Callable[[Page], str]
) -> Context:
    """The pages `used`, each with its number and date and the text that `shown` returns, in
    document order, which is the order of dates where all can be read."""
    dates, used = session_dates([page.text or "" for page in pages]), set(used)
    chosen = [(page, dates[page.page_index]) for page in pages if page.page_index in used]
    return Context(
        passages=tuple(
            Passage("text", None, item(number, date, shown(page)))
            for number, (page, date) in enumerate(chosen, 1)
        ),
        spans=tuple(Span(page.start_char, page.end_char) for page, _ in chosen),
        page_indexes=tuple(page.page_index for page, _ in chosen),
        num_words=sum(page.num_words for page, _ in chosen),
        counted=tuple(without_header(page.text or "") for page, _ in chosen),
    )


def item(number: int, date: str, text: str) -> str:
    return f"### Session {number}\nDate: {date or 'not known'}\n{text}"


def chat(page: Page, history: History) -> str:
    """The turns of a page, without its header; `json`: a list of objects with role and content."""
    if history == "text":
        return without_header(page.text or "").strip()
    return json_line(_turns(page))


def _turns(page: Page) -> list[dict[str, str]]:
    return [{"role": turn.role, "content": turn.content} for turn in turns_of(page.text or "")]


def json_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


class AnswerFromChat(AnswerFromContext):
    """From the items by date. `reading`: direct, or con, Chain-of-Note in the same call: what each
    item says first, then the answer. `judged`: what a rater sees, the answer, or the whole_reply,
    as the authors' does; every reply is then an answer to a free-form question. Items without room
    are left out, the last found first.
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
        return chat_context(rows[Page], used, lambda page: chat(page, self.history))

    def prompt(self, question: Question, context: Context) -> Prompt[int | str]:
        prompt = AnswerFromChats if self.reading == "direct" else AnswerWithNotes
        return prompt(
            passages=context.passages,
            question=question.question,
            options=question.options,
            answer_words=self.answer_words,
            asked_at=question.asked_at or "",
        )

    def answered(self, answer: Answer, question: Question, asked: Asked[int | str]) -> Answer:
        made = super().answered(answer, question, asked)
        if self.judged == "answer" or question.options:
            return made
        reply = asked.raw.strip()
        is_read = made.problem != "unparseable" or not reply
        return replace(
            made,
            problem=made.problem if is_read else None,
            judged=reply if reply != made.answer else None,
        )


class AnswerFromExpandedChat(AnswerFromChat):
    """As `chats`, of each page `shown`: its value; the items that were extracted from it, facts or
    a summary as the value (section 5.2); or both, the items before the value (the authors'
    run_generation.py, merge_key_expansion_into_value). A page without items is shown as it is.
    """

    kind = "expanded_chats"
    version = 2
    reads = (Page, Lookup, Expansion)
    shown: Literal["value", "items", "both"]

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        found: defaultdict[int, list[str]] = defaultdict(list)
        for row in rows[Expansion]:
            found[row.page_index] += [row.text] if row.text and self.shown != "value" else []
        whole = chat_context(rows[Page], used, lambda page: self._text(page, found))
        raw = [
            page
            for page in rows[Page]
            if page.page_index in whole.page_indexes
            and (self.shown != "items" or not found[page.page_index])
        ]
        items = [text for n in whole.page_indexes for text in found[n]]
        return replace(
            whole,
            spans=tuple(Span(page.start_char, page.end_char) for page in raw),
            page_indexes=tuple(page.page_index for page in raw),
            num_words=sum(page.num_words for page in raw) + sum(map(num_words, items)),
            counted=(*(without_header(page.text or "") for page in raw), *items),
        )

    def _text(self, page: Page, found: Mapping[int, Sequence[str]]) -> str:
        items = found[page.page_index]
        if not items:
            return chat(page, self.history)
        if self.history == "json":
            return json_line(
                items if self.shown == "items" else {"noted": items, "chat": _turns(page)}
            )
        noted = "\n".join(items)
        return noted if self.shown == "items" else f"Noted: {noted}\n\n{chat(page, 'text')}"


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
