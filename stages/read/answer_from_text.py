"""Answer each question from the document's text, or from its beginning or end."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.rows import Question, Record, UnitRows
from stages.index.context import Context, TruncateBy, raw_text, text_span
from stages.read.answer_from_context import AnswerFromContext, room_tokens
from stages.tables.answers import Answer
from stages.tables.lookups import Lookup
from stages.text.fit_to_limit import Keep, largest_part


class AnswerFromText(AnswerFromContext):
    """From the document's text, or its first or last `num_words` words (section 4.2), counted as
    `truncate_by` says: `words`, or `spaces` for what stands between single spaces."""

    kind: ClassVar[str] = "text"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Lookup,)
    keep: Keep | None  # null: all of it
    num_words: PositiveInt | None
    truncate_by: TruncateBy

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        return raw_text(rows, self.keep, self.num_words, self.truncate_by)


class AnswerFromTruncatedText(AnswerFromContext):
    """From the first or last words of the text that fit the engine's context, in its tokens, with
    the question and the reply (MemWalker section 4: full context, `first` its keep left, `last` its
    keep right). A text that fits is shown whole.
    """

    kind: ClassVar[str] = "truncated_text"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Lookup,)
    keep: Keep

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        return self._kept(rows, len(rows.document.text))

    def _kept(self, rows: UnitRows, num_chars: int) -> Context:
        """The first or last characters of the text."""
        text = rows.document.text
        start = 0 if self.keep == "first" else len(text) - num_chars
        return text_span(text, start, start + num_chars)

    async def answer_with_room(
        self, empty: Answer, rows: UnitRows, question: Question, ask: Ask
    ) -> Answer:
        """Cuts the text; a question that does not fit without it is a context_overflow."""

        async def size(num_chars: int) -> int:
            return await ask.num_tokens(self.prompt(question, self._kept(rows, num_chars)))

        text = rows.document.text
        num_chars = await largest_part(text, self.keep, room_tokens(ask), size)
        return await self.answer(empty, question, self._kept(rows, num_chars), ask)
