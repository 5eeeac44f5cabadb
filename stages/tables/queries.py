"""The table `queries`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.rows import QuestionRow
from pipeline.core.trace_lines import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(QuestionRow):
    """A text that is searched for on behalf of a question; `kind`: what it is.

    `dropped`, why it is not searched for: short (fewer words than the setting), duplicate (of an
    earlier query), over_maximum. `part_index`: the part of the memory that it comes from.
    """

    table: ClassVar[str] = "queries"
    key: ClassVar[tuple[str, ...]] = ("question_id", "query_index")
    drawn: ClassVar[bool] = True
    has_pages: ClassVar[bool] = False
    query_index: int  # of the question's queries, from 0
    # what it is: question, span, surrogate, draft, point, hypothetical, sub_question or time_range.
    kind: str
    text: str | None  # null: no reply, or none that can be read
    dropped: str | None = None  # why it is not searched for: short, duplicate, over_maximum
    part_index: int | None = None  # the part of the memory that it comes from
    start_date: str | None = None  # YYYY/MM/DD; of a time range
    end_date: str | None = None  # YYYY/MM/DD; of a time range

    def why_unusable(self) -> str | None:
        """Only where there was no reply: after one that cannot be read other queries remain."""
        is_reply = self.problem in (None, "truncated", "unparseable")
        return None if is_reply else f"queries: {self.problem}"

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        facts = [row["kind"], row["dropped"], row["problem"]]
        return [f"query {row['query_index']} ({', '.join(filter(None, facts))}): "
                f"{row['text'] or '-'}"]  # fmt: skip
