"""One row per visit to a node of the tree, and the measures of navigation (MemWalker section 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.rows import QuestionRow
from pipeline.stage import Column
from pipeline.trace_lines import Line

COLUMNS = (
    Column("valid_actions", "valid %", 22, has_interval=False),
    Column("stray", "stray %", 23, has_interval=False),
    Column("recovery", "recovery %", 24, has_interval=False),
    Column("text_read", "text read %", 25, has_interval=False),
    Column("text_read_right", "text read % if right", 26, has_interval=False),
    Column("steps", "steps", 27, has_interval=False),
    Column("depth", "depth", 28, has_interval=False),
)


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
    measures: ClassVar[str | None] = """
        with walks as (
          select method, repeat, document_id, question_id, max(problem) as problem,
            100.0 * (sum(num_replies) - sum(num_invalid)) / sum(num_replies) as valid_actions,
            100.0 * max((action is not distinct from 'revert')::int) as stray,
            sum(num_new_words) as words, count(*)::double as steps, max(depth)::double as depth
          from visits group by all having sum(num_replies) > 0)
        select method, repeat, document_id, question_id, null::varchar as rater, problem,
          measure, value
        from (select w.method, w.repeat, w.document_id, w.question_id,
            coalesce(w.problem, a.problem) as problem, valid_actions, stray, steps, depth,
            case when q.answer_index is not null and a.reader is not null then (a.problem is null
              and a.answer_index is not distinct from q.answer_index) end as is_right,
            case when stray > 0 then 100.0 * is_right::int end as recovery,
            100.0 * words / nullif(d.num_words, 0) as text_read,
            case when is_right then text_read end as text_read_right
          from walks w join documents d using (document_id)
            join questions q using (document_id, question_id)
            left join answers a using (method, repeat, document_id, question_id))
        unpivot (value for measure in (valid_actions, stray, recovery, text_read, text_read_right,
          steps, depth))"""
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

    def lack(self) -> str | None:
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
