-- `lr` combines ReadAgent's strict and permissive verdicts (section 4.1): over references exact wins,
-- else any unscored makes it unscored, else partial wins. `judged` has the verdicts of rubrics that
-- are asked once per answer (LongMemEval appendix A.4).

-- name: rating_rows
create view {prefix}rating_rows as
-- Rows of a failed unit have an empty name of the rater. The name that their step has elsewhere is
-- filled in; if all units of the step failed, the name by another step of the same engine.
select r.* replace (max(rater) over mine as rater,
  bool_or(rater_is_model) over mine as rater_is_model)
from {prefix}ratings r left join raw_steps s using (step_id)
where not skipped window mine as (partition by coalesce(s.engine, step_id));

-- name: raters
create view {prefix}raters as
-- A row per rater that is a language model, and step of its ratings.
-- rater: the engine and 4 hex of its identity
select distinct {run}step_id, rater from {prefix}ratings where rater_is_model;

-- name: lr
create view {prefix}lr as
-- A row per answer and rater: the verdict of ReadAgent's LLM ratings, LR.
-- rater: the engine and 4 hex of its identity
-- rater_is_model: whether it is a language model
-- lr: exact, partial, none or unscored
with pairs as (
  select {run}corpus, step_id, method, repeat, document_id, question_id, rater, rater_is_model,
    reference_index, max(label) filter (rubric = 'strict') as strict,
    max(label) filter (rubric = 'permissive') as permissive,
    bool_or(problem = 'upstream') as is_missing
  from {prefix}rating_rows where rubric in ('strict', 'permissive') group by all),
verdicts as (
  select *, case
    when strict = 'yes' or permissive = 'yes' then 'exact'
    when strict = 'no' and permissive = 'partially' then 'partial'
    when strict = 'no' and permissive = 'no' then 'none'
    when is_missing then 'none'  -- an answer with a problem
    else 'unscored' end as verdict
  from pairs)
select {run}corpus, step_id, method, repeat, document_id, question_id, rater, rater_is_model,
  case when bool_or(verdict = 'exact') then 'exact'
    when bool_or(verdict = 'unscored') then 'unscored'
    when bool_or(verdict = 'partial') then 'partial'
    else 'none' end as lr
from verdicts group by all;

-- name: judged
create view {prefix}judged as
-- A row per answer and rater that judged it by another rubric than ReadAgent's two.
-- rater: the engine and 4 hex of its identity
-- rater_is_model: whether it is a language model
-- rubric: the rule that it judged by: LongMemEval's, that of the question's type; or a plugin's own
-- label: yes or no; null: none could be read
-- value: of the label, 1 or 0; null: the answer is unscored
select {run}corpus, step_id, method, repeat, document_id, question_id, rater, rater_is_model,
  rubric, label, value
from {prefix}rating_rows where rubric not in ('strict', 'permissive');

-- name: verdicts
create view {prefix}verdicts as
-- A row per answer, rater and rubric: of several references the best label counts, as in
-- `lr`, which is a rubric here. Answers with a problem have none.
-- rater: the engine that judged
-- rater_is_model: whether it is a language model
-- rubric: the rule that it judged by
-- label: yes, partially or no; null: the answer is unscored
-- has_partially: whether the rubric knows `partially`
with by_rubric as (
  select {run}method, repeat, document_id, question_id, rater, rater_is_model, rubric,
    case when bool_or(label = 'yes') then 'yes' when bool_or(label is null) then null
      when bool_or(label = 'partially') then 'partially' else 'no' end as label
  from {prefix}rating_rows where problem is distinct from 'upstream' group by all)
select *, rubric = 'permissive' as has_partially from by_rubric
union all by name
select l.* exclude (lr, corpus, step_id), 'lr' as rubric,
  case lr when 'exact' then 'yes' when 'partial' then 'partially' when 'none' then 'no' end
    as label, true as has_partially
from {prefix}lr l semi join by_rubric
  using ({run}method, repeat, document_id, question_id, rater);

-- name: measures
select method, repeat, document_id, question_id, rater,
  a.problem, m.measure, (100 * list_contains(m.verdicts, lr)::int)::double as value
from lr join answers a using (method, repeat, document_id, question_id)
cross join (values ('lr_1', ['exact']), ('lr_2', ['exact', 'partial']))
  m(measure, verdicts)
where rater_is_model and lr <> 'unscored'
union all
-- A rubric makes a measure of its own name; LongMemEval's make one together.
select method, repeat, document_id, question_id, rater, a.problem,
  coalesce(m.measure, j.rubric) as measure, 100 * j.value
from judged j join answers a using (method, repeat, document_id, question_id)
left join (values ('accuracy', 'generic'), ('accuracy', 'temporal'),
    ('accuracy', 'knowledge_update'), ('accuracy', 'preference'), ('accuracy', 'abstention'),
    ('accuracy_abstention', 'abstention')) m(measure, rubric) using (rubric)
where rater_is_model and j.value is not null;

-- name: counts
select method, document_id, question_id, rater, 'unscored' as counted,
  bool_or(is_unscored)::int as value
from (select *, lr = 'unscored' as is_unscored from lr
  union all by name select *, value is null as is_unscored from judged)
where rater_is_model group by method, repeat, document_id, question_id, rater;
