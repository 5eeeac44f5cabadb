"""The tables `answers`, `ratings` and `scores`, the names of built-in measures, and judges'
rubrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal

from pipeline.core.registry import Registry, first_sentence, is_ours
from pipeline.core.rows import Line, QuestionRow, RawText, Span
from pipeline.work.stage import MEASURES
from stages.tables.lookups import RANKING_MEASURES, Lookup, Visit


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(QuestionRow):
    """A method's answer to one question, and the final context it was made from.

    `detail`: more about the problem, or how many pages the context had no room for.
    `num_context_tokens` is the sum of the tokens of each gist, page or run of raw text by itself,
    as the reader's engine counts a text without its chat template.
    """

    table = "answers"
    key = ("question_id",)
    drawn = True
    reader: str  # the engine that answered
    answer: str | None  # as the model gave it; null: none
    answer_index: int | None = None  # the option chosen, in the question's own order
    # The options' indexes in the order in which they were shown; empty: the question's own. The
    # letters in `answer` are of this order.
    options_order: tuple[int, ...] = ()
    page_indexes: tuple[int, ...] = ()  # raw pages in the final context, document order
    context_spans: tuple[Span, ...] = ()  # raw text in the final context
    num_lookups: int = 0  # distinct pages used
    num_context_words: int | None = None  # words of gists and raw text in the final context
    num_context_tokens: int | None = None  # the same in the reader's tokens; null: not counted
    num_document_words: int = 0  # words of the document
    compression_rate: float | None = None  # 100 * (1 - context words / document words)
    num_answer_words: int = 0  # words of the answer
    skipped: bool = False  # the method does not apply (oracle_pages without gold evidence)
    judged: str | None = None  # the whole reply, where raters see that; null: they see the answer

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        lines: list[Line] = [
            RawText(f"<Page {page['page_index']}> ", page["text"]) for page in row["pages_read"]
        ]
        if row["skipped"]:
            return [*lines, "skipped: the method does not apply to this question"]
        if row["num_context_words"] is not None:
            words, tokens = row["num_context_words"], row["num_context_tokens"]
            size = f"{words} words" if tokens is None else f"{words} words, {tokens} tokens"
            lines.append(f"context: {size}, compression {row['compression_rate']:.1f}%")
        lines.append(f"answer: {row['answer'] or '-'}")
        if row["judged"] is not None:
            lines.append(f"raters see the whole reply: {row['judged']}")
        if row["problem"]:
            lines.append(f"problem: {row['problem']} {row['detail'] or ''}".rstrip())
        elif row["detail"]:
            lines.append(row["detail"])
        if row["answer_index"] is not None:
            lines.append("right" if row["is_right"] else "wrong")
        return lines


Rubric = Literal[
    "strict", "permissive", "generic", "temporal", "knowledge_update", "preference", "abstention"
]
Label = Literal["yes", "partially", "no"]
VALUES: Mapping[Label, float] = {"yes": 1.0, "partially": 0.5, "no": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating(QuestionRow):
    """The verdict of one rater on one answer by one rubric.

    `value` follows from the label: yes 1, partially 0.5, no 0. It is null if no label could be
    read, which leaves the answer unscored; 0 without a label if there is no answer (problem
    upstream).
    """

    table = "ratings"
    key = ("question_id", "reference_index", "rubric")
    drawn = True
    rater: str  # the engine and 4 hex of its identity
    rater_is_model: bool  # whether it is a language model: reports show no other's verdicts
    rubric: str | None = None  # null: nothing to rate
    reference_index: int | None = None  # null: the answer was rated as a whole
    label: Label | None = None  # yes, partially or no; null: none could be read
    value: float | None = None  # of the label: 1, 0.5 or 0; null: the answer is unscored
    skipped: bool = False  # multiple choice or no reference: nothing to rate

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        """A line per rater and reference."""
        lines = []
        rated = (row for row in rows if not row["skipped"])
        for (rater, index), group in groupby(rated, key=itemgetter("rater", "reference_index")):
            labels = ", ".join(f"{row['rubric']} {row['label'] or row['problem']}" for row in group)
            of = "" if index is None else f" on reference {index}"
            lines.append(f"{rater}{of}: {labels}")
        return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(QuestionRow):
    """One metric of one answer, 0-100; 0 with problem `upstream` where the answer failed; null
    where the metric does not apply to the question, was not asked for (`skipped`), or raised."""

    table = "scores"
    key = ("question_id", "metric")
    drawn = True
    metric: str  # its name in the report
    value: float | None  # 0-100; null where the metric does not apply, or raised
    skipped: bool = False  # the metric does not apply, or was not asked for

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        values = sorted((r["metric"], r["value"]) for r in rows if r["value"] is not None)
        scores = ", ".join(f"{metric} {value:.1f}" for metric, value in values)
        return [f"scores: {scores}"] if scores else []


MEASURES |= {  # and what makes them
    **dict.fromkeys(("lr_1", "lr_2", "accuracy_by_type", "accuracy_abstention"), Rating),
    "accuracy": Score,
    "scrolls_rouge": Score,
    **{f"evidence_{part}": Score for part in ("recall", "any_hit", "full", "precision")},
    **dict.fromkeys((*RANKING_MEASURES, "lookups", "queries"), Lookup),
    **dict.fromkeys(("compression_rate", "words_read", "tokens_read", "length"), Answer),
    **dict.fromkeys(("valid_actions", "stray", "recovery", "steps", "depth"), Visit),
    **dict.fromkeys(("text_read", "text_read_right"), Visit),
}
RUBRICS: Registry[Any] = Registry("judges by the rubric {!r}", "rubrics")  # their prompts


def register_rubric(name: str, judge: Any) -> None:
    """Add a rubric of a judge; a plugin's also adds the measure of its name. Raises UsageError for
    the name of another rubric or measure."""
    prompt = judge.rubrics[name]
    RUBRICS.add(name, prompt, f"{first_sentence(prompt)}; asked by {judge.label()}")
    if not is_ours(judge):
        MEASURES.add(name, judge)
