"""Scores: metrics against rouge_score itself, accuracy, and evidence by sets of characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.rows import Question, Span
from stages.score.metrics import METRICS, PARTS
from stages.score.score import ScoreAnswers
from stages.tables.answers import Answer, Score
from tests.stages.judge.test_rate import answer, rows
from tests.support.reading import never, question, run

STAGE = ScoreAnswers(metrics=("rouge1_stem", "rougeL_stem", "squad_em"))
EVIDENCE = ("evidence_recall", "evidence_any_hit", "evidence_full", "evidence_precision")
REFERENCES = ("The wind rang the bells.", "It was a gust of wind")
Pairs = list[tuple[int, int]]
pairs = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 25)).map(lambda p: (p[0], p[0] + p[1])),
    max_size=6,
)


def spans(*pairs: tuple[int, int]) -> tuple[Span, ...]:
    return tuple(Span(*pair) for pair in pairs)


def scored(asked: Question, said: Answer, stage: ScoreAnswers = STAGE) -> list[Score]:
    made, calls = run(stage, rows([asked], [said]), never())
    assert calls == ()
    return made


def values(asked: Question, said: Answer, stage: ScoreAnswers = STAGE) -> dict[str, float | None]:
    return {score.metric: score.value for score in scored(asked, said, stage)}


def test_every_metric_there_is_can_be_asked_for() -> None:
    """Null where it does not apply: Chinese ones to English texts, LongBench's without a task."""
    others = [*METRICS]
    stage = ScoreAnswers(metrics=(*others, *PARTS))
    made = scored(question(references=REFERENCES), answer(REFERENCES[1]), stage)
    found = {s.metric: s.value for s in made[:-1]}
    assert list(found) == others
    not_here = {"longbench_f1_zh", "longbench_rouge_zh", "longbench"}
    assert {metric for metric, value in found.items() if value is None} == not_here
    assert [found[m] for m in found if m not in not_here] == pytest.approx([100] * (len(found) - 3))
    nothing = values(question(references=REFERENCES), answer(None, problem="timeout"), stage)
    assert {metric for metric in others if nothing[metric] is None} == not_here


def test_scrolls_rouge_is_scored_part_by_part() -> None:
    stage = ScoreAnswers(metrics=("scrolls_rouge", "squad_em"))
    found = values(question(references=REFERENCES), answer(), stage)
    parts = ["scrolls_rouge1", "scrolls_rouge2", "scrolls_rougeL"]
    assert list(found) == [*parts, "squad_em", "evidence_recall"]
    columns = stage.columns()["free"]
    assert [c.measure for c in columns] == ["scrolls_rouge", "squad_em"]
    assert [list(c.geometric_mean_of) for c in columns] == [parts, []]


@pytest.mark.parametrize(
    ("asked", "said", "expected"),
    [
        # Multiple choice has accuracy; an answer with a problem scores 0 and says so.
        *((question(options=("a", "b"), references=("b",), answer_index=1),
           answer("(B)", answer_index=chosen, problem=problem),
           {"accuracy": (value, lack), "evidence_recall": (None, None)})
          for chosen, problem, value, lack in (
              (1, None, 100.0, None), (0, None, 0.0, None), (None, "out_of_range", 0.0, "upstream"),
              (1, "truncated", 0.0, "upstream"))),
        *((question(references=REFERENCES), answer(REFERENCES[0], problem=problem),
           dict.fromkeys(STAGE.metrics, (0.0, "upstream")) | {"evidence_recall": (None, None)})
          for problem in ("truncated", "unparseable", "timeout", "upstream")),
        (question(references=REFERENCES), answer(""),
         dict.fromkeys(STAGE.metrics, (0.0, None)) | {"evidence_recall": (None, None)}),
        # Without a key there is evidence recall alone.
        (question(), answer(), {"evidence_recall": (None, None)}),
        (question(options=("a", "b")), answer(), {"evidence_recall": (None, None)}),
        (question(evidence=spans((0, 10))),
         answer(None, num_context_words=None, problem="context_overflow"),
         dict.fromkeys(EVIDENCE, (0, "upstream")) | {"evidence_precision": (None, "upstream")}),
        # Of what only a rater can judge, LongMemEval's rubrics and refusals, evidence is scored.
        *((question(references=REFERENCES, evidence=spans((0, 4)), only_judged=True), said,
           dict.fromkeys(EVIDENCE, (0, None)) | {"evidence_precision": (None, None)})
          for said in (answer(), answer(None, problem="timeout"))),
        (question(references=REFERENCES), answer(None, num_context_words=None, skipped=True),
         {"evidence_recall": (None, None)}),
    ],
)  # fmt: skip
def test_what_is_scored_and_with_which_problem(
    asked: Question, said: Answer, expected: dict[str, tuple[float | None, str | None]]
) -> None:
    made = scored(asked, said)
    assert {score.metric: (score.value, score.problem) for score in made} == expected
    assert {score.skipped for score in made} == {said.skipped}


@given(pairs.filter(bool), pairs)
def test_evidence_by_sets_of_characters(gold: Pairs, read: Pairs) -> None:
    wanted = {char for pair in gold for char in range(*pair)}
    shown = {char for pair in read for char in range(*pair)}
    found = values(question(evidence=spans(*gold)), answer(context_spans=spans(*read)))
    hit = len(wanted & shown)
    assert found["evidence_recall"] == pytest.approx(100 * hit / len(wanted))
    assert found["evidence_any_hit"] == (100 if hit else 0)
    assert found["evidence_full"] == (100 if wanted <= shown else 0)
    precision = found["evidence_precision"]
    assert precision == (pytest.approx(100 * hit / len(shown)) if shown else None)


def test_a_failed_unit_has_the_scores_of_every_question() -> None:
    asked = [question("a", references=("x",)), question("b", options=("x", "y"), answer_index=0)]
    both = rows(asked, [answer(question_id="a"), answer(question_id="b")])
    made = STAGE.failed(both, "unit_failed", "a line of ours")
    STAGE.check(both, made)
    assert [(s.question_id, s.metric, s.value, s.problem) for s in made] == [
        *(("a", metric, 0.0, "unit_failed") for metric in STAGE.metrics),
        ("a", "evidence_recall", None, "unit_failed"),
        ("b", "accuracy", 0.0, "unit_failed"),
        ("b", "evidence_recall", None, "unit_failed"),
    ]
