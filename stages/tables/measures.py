"""The names of our own measures, and of the rubrics of judges."""

from typing import Any

from pipeline.core.registry import Registry, first_sentence, is_ours
from pipeline.work.measure_names import MEASURES, register_measure
from stages.tables.answers import Answer, Rating, Score
from stages.tables.lookups import RANKING_MEASURES, Lookup, Visit

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
    """Add a rubric of a judge; a plugin's makes the measure of its name, ours make those above.
    Raises UsageError for the name of another rubric or measure."""
    prompt = judge.rubrics[name]
    RUBRICS.add(name, prompt, f"{first_sentence(prompt)}; asked by {judge.label()}")
    if not is_ours(judge):
        register_measure(name, judge)
