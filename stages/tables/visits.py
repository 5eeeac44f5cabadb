"""The table `visits`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.rows import QuestionRow
from pipeline.core.trace_lines import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit(QuestionRow):
    """A visit to a node, and the action taken there. The last one has no `to_node` unless the
    navigation was stopped at its maximum of steps.

    Its measures, per question (tables 3 and 4, figure 4): valid_actions, the share of replies with
    a legal action; stray, whether it ever reverted; recovery, whether a multiple-choice question on
    which it did was answered right; text_read, the words of segments and summaries shown, each
    once, over those of the document; text_read_right, the same of multiple-choice questions that
    were answered right; steps, the visits; depth, the deepest level below the root. All are null
    where the model never replied, and shares are 0-100.
    """

    table: ClassVar[str] = "visits"
    key: ClassVar[tuple[str, ...]] = ("question_id", "turn")
    drawn: ClassVar[bool] = True
    turn: int  # of the question's visits, from 0
    node_index: int | None = None  # null: the navigation could not begin
    depth: int = 0  # levels below the root
    page_index: int | None = None  # of a leaf
    action: str | None = None  # enter, revert, answer; null: no reply with a legal one
    to_node: int | None = None  # the node that is visited next
    chosen_by: str | None = None  # model; rule: the only legal action, without a call
    reason: str | None = None  # what the reply says before its action
    num_replies: int = 0  # of the model, at this visit
    num_invalid: int = 0  # replies without a legal action
    rejected: tuple[int, ...] = ()  # children that could not be chosen again, by node index
    num_memory_words: int = 0  # of the working memory shown
    is_memory_cut: bool = False  # whether all of it would not have fitted the context
    num_new_words: int = 0  # shown here for the first time, without working memory
    answer: str | None = None  # as the model gave it; null: none
    answer_index: int | None = None  # the option chosen
    reader: str = ""  # the engine that replied

    def why_unusable(self) -> str | None:
        """Only where there was no reply; one that cannot be read means no answer."""
        is_reply = self.problem in (None, "truncated", "unparseable", "out_of_range")
        return None if is_reply else f"navigate: {self.problem}"

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        """Indented by depth."""
        of = "" if row["page_index"] is None else f" (segment {row['page_index']})"
        how = [
            {"enter": f"to node {row['to_node']}", None: "no action"}.get(
                row["action"], row["action"]
            ),
            "by rule" if row["chosen_by"] == "rule" else "",
            _carried(row),
            f"{row['num_invalid']} invalid replies" if row["num_invalid"] else "",
            f"problem {row['problem']}" if row["problem"] else "",
        ]
        lead = f"{'  ' * row['depth']}step {row['turn']}: node {row['node_index']}{of}: "
        reason = f"; {' '.join(row['reason'].split())}" if row["reason"] else ""
        return [lead + ", ".join(filter(None, how)) + reason]


def _carried(row: Mapping[str, Any]) -> str:
    """The working memory shown: the summaries of the nodes visited before, or what fits of them."""
    words = f"{row['num_memory_words']} words of working memory"
    return f"{words}, cut" if row["is_memory_cut"] else words if row["num_memory_words"] else ""
