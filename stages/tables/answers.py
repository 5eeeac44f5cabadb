"""The table `answers`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.rows import QuestionRow, Span
from pipeline.core.trace_lines import Line, RawText


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(QuestionRow):
    """A method's answer to one question, and the final context it was made from.

    `detail`: more about the problem, or how many pages the context had no room for.
    """

    table: ClassVar[str] = "answers"
    key: ClassVar[tuple[str, ...]] = ("question_id",)
    drawn: ClassVar[bool] = True
    reader: str  # the engine that answered
    answer: str | None  # as the model gave it; null: none
    answer_index: int | None = None  # the option chosen
    page_indexes: tuple[int, ...] = ()  # raw pages in the final context, document order
    context_spans: tuple[Span, ...] = ()  # raw text in the final context
    num_lookups: int = 0  # distinct pages used
    num_context_words: int | None = None  # words of gists and raw text in the final context
    num_document_words: int = 0  # words of the document
    compression_rate: float | None = None  # 100 * (1 - context words / document words)
    num_answer_words: int = 0  # words of the answer
    skipped: bool = False  # the method does not apply (oracle_pages without gold evidence)

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        pages = [RawText(f"<Page {page['page_index']}> ", page["text"])
                 for page in row["pages_read"]]  # fmt: skip
        if row["skipped"]:
            return [*pages, "skipped: the method does not apply to this question"]
        lines = [f"answer: {row['answer'] or '-'}"]
        if (words := row["num_context_words"]) is not None:
            rate = row["compression_rate"]
            lines.insert(0, f"context: {words} words, compression {rate:.1f}%")
        if row["problem"]:
            lines.append(f"problem: {row['problem']} {row['detail'] or ''}".rstrip())
        elif row["detail"]:
            lines.append(row["detail"])
        if row["answer_index"] is not None:
            lines.append("right" if row["is_right"] else "wrong")
        return [*pages, *lines]
