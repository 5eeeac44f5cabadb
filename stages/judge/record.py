"""The table `ratings`: a row per verdict on an answer, and the views that make numbers of verdicts.

`lr` combines ReadAgent's strict and permissive verdicts (section 4.1); `judged` has the verdicts of
rubrics that are asked once per answer (LongMemEval appendix A.4).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, Literal, get_args

from pipeline.rows import QuestionRow
from pipeline.trace_lines import Line

Rubric = Literal[
    "strict", "permissive", "generic", "temporal", "knowledge_update", "preference", "abstention"
]
Label = Literal["yes", "partially", "no"]
VALUES: Mapping[Label, float] = {"yes": 1.0, "partially": 0.5, "no": 0.0}
_RUBRICS: tuple[Rubric | None, ...] = (None, *get_args(Rubric))

# Rows of a failed unit have an empty name: that of their step's rater is filled in, which another
# step may have to say where all units of theirs failed.
_NAMED = """named as (
  select r.* replace (max(rater) over mine as rater,
    bool_or(rater_is_model) over mine as rater_is_model)
  from {prefix}ratings r left join raw_steps s using (step_id)
  where not skipped window mine as (partition by coalesce(s.engine, step_id)))"""
_ANSWER = "{run}corpus, step_id, method, repeat, document_id, question_id, rater, rater_is_model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating(QuestionRow):
    """What one rater says of one answer by one rubric.

    `value` is that of the label: yes 1, partially 0.5, no 0. Null where no label could be read, so
    that the answer is unscored; 0 without a label where there is no answer (problem upstream).
    """

    table: ClassVar[str] = "ratings"
    key: ClassVar[tuple[str, ...]] = ("question_id", "reference_index", "rubric")
    drawn: ClassVar[bool] = True
    views: ClassVar[tuple[str, ...]] = (
        """create view {prefix}raters as
        -- A row per rater that is a language model, and step of its ratings.
        -- rater: the engine and 4 hex of its identity
        select distinct {run}step_id, rater from {prefix}ratings where rater_is_model""",
        # Over references exact wins, else any unscored makes it unscored, else partial wins
        # (ReadAgent section 4.1). An answer with a problem is `none`.
        f"""create view {{prefix}}lr as
        -- A row per answer and rater: the verdict of ReadAgent's LLM ratings, LR.
        -- rater: the engine and 4 hex of its identity
        -- rater_is_model: whether it is a language model
        -- lr: exact, partial, none or unscored
        with {_NAMED},
        pairs as (
          select {_ANSWER}, reference_index, max(label) filter (rubric = 'strict') as strict,
            max(label) filter (rubric = 'permissive') as permissive,
            bool_or(problem = 'upstream') as is_missing
          from named where rubric in ('strict', 'permissive') group by all),
        verdicts as (
          select *, case
            when strict = 'yes' or permissive = 'yes' then 'exact'
            when strict = 'no' and permissive = 'partially' then 'partial'
            when strict = 'no' and permissive = 'no' then 'none'
            when is_missing then 'none'
            else 'unscored' end as verdict
          from pairs)
        select {_ANSWER}, case when bool_or(verdict = 'exact') then 'exact'
            when bool_or(verdict = 'unscored') then 'unscored'
            when bool_or(verdict = 'partial') then 'partial'
            else 'none' end as lr
        from verdicts group by all""",
        f"""create view {{prefix}}judged as
        -- A row per answer and rater that judged it by a rubric of LongMemEval.
        -- rater: the engine and 4 hex of its identity
        -- rater_is_model: whether it is a language model
        -- rubric: what the question's type is judged by
        -- label: yes or no; null: none could be read
        -- value: of the label, 1 or 0; null: the answer is unscored
        with {_NAMED}
        select {_ANSWER}, rubric, label, value
        from named where rubric not in ('strict', 'permissive')""",
        f"""create view {{prefix}}verdicts as
        -- A row per answer, rater and rubric: of several references the best label counts, as in
        -- `lr`, which is a rubric here. Answers with a problem have none.
        -- rater: the engine that judged
        -- rater_is_model: whether it is a language model
        -- rubric: the rule that it judged by
        -- label: yes, partially or no; null: the answer is unscored
        -- has_partially: whether the rubric knows `partially`
        with {_NAMED},
        by_rubric as (
          select {{run}}method, repeat, document_id, question_id, rater, rater_is_model, rubric,
            case when bool_or(label = 'yes') then 'yes' when bool_or(label is null) then null
              when bool_or(label = 'partially') then 'partially' else 'no' end as label
          from named where problem is distinct from 'upstream' group by all)
        select *, rubric = 'permissive' as has_partially from by_rubric
        union all by name
        select l.* exclude (lr, corpus, step_id), 'lr' as rubric,
          case lr when 'exact' then 'yes' when 'partial' then 'partially' when 'none' then 'no' end
            as label, true as has_partially
        from {{prefix}}lr l semi join by_rubric
          using ({{run}}method, repeat, document_id, question_id, rater)""",
    )
    measures: ClassVar[str | None] = """
        select method, repeat, document_id, question_id, rater,
          a.problem, m.measure, (100 * list_contains(m.verdicts, lr)::int)::double as value
        from lr join answers a using (method, repeat, document_id, question_id)
        cross join (values ('lr_1', ['exact']), ('lr_2', ['exact', 'partial']))
          m(measure, verdicts)
        where rater_is_model and lr <> 'unscored'
        union all
        select method, repeat, document_id, question_id, rater, a.problem, m.measure, 100 * j.value
        from judged j join answers a using (method, repeat, document_id, question_id)
        cross join (values ('accuracy', null), ('accuracy_abstention', 'abstention'))
          m(measure, rubric)
        where rater_is_model and j.value is not null and coalesce(m.rubric, j.rubric) = j.rubric"""
    counts: ClassVar[str | None] = """
        select method, document_id, question_id, rater, 'unscored' as counted,
          bool_or(is_unscored)::int as value
        from (select *, lr = 'unscored' as is_unscored from lr
          union all by name select *, value is null as is_unscored from judged)
        where rater_is_model group by method, repeat, document_id, question_id, rater"""
    rater: str  # the engine and 4 hex of its identity
    rater_is_model: bool  # whether it is a language model: reports show no other's verdicts
    rubric: Rubric | None = None  # null: nothing to rate
    reference_index: int | None = None  # null: the answer was rated as a whole
    label: Label | None = None  # yes, partially or no; null: none could be read
    value: float | None = None  # of the label: 1, 0.5 or 0; null: the answer is unscored
    skipped: bool = False  # multiple choice or no reference: nothing to rate

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        """A line per rater and reference."""
        rated = sorted((row for row in rows if not row["skipped"]), key=_place)
        return [
            f"{rater}{'' if index < 0 else f' on reference {index}'}: {_verdicts(list(of))}"
            for (rater, index), of in groupby(rated, key=lambda row: _place(row)[:2])
        ]


def _place(row: Mapping[str, Any]) -> tuple[str, int, int]:
    index = -1 if row["reference_index"] is None else row["reference_index"]
    return row["rater"], index, _RUBRICS.index(row["rubric"])


def _verdicts(rows: Sequence[Mapping[str, Any]]) -> str:
    labels = ", ".join(f"{row['rubric']} {row['label'] or '-'}" for row in rows)
    problems = ", ".join(dict.fromkeys(row["problem"] for row in rows if row["problem"]))
    return f"{labels} ({problems})" if problems else labels
