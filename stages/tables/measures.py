"""Measures by name: each is made by one metric, one rubric of a judge, or a table's SQL."""

import re
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.core.registry import first_sentence, is_ours, list_as, register
from pipeline.work.class_checks import file_of
from pipeline.work.stage import ORIGINAL
from stages.tables.answers import Answer, Rating, Score
from stages.tables.lookups import RANKING_MEASURES, Lookup, Visit

_MEASURES: dict[str, Any] = {  # and what makes it
    **dict.fromkeys(("lr_1", "lr_2", "accuracy_by_type", "accuracy_abstention"), Rating),
    "accuracy": Score,
    **dict.fromkeys(("scrolls_rouge", "mind2web_episode"), Score),
    **{f"evidence_{part}": Score for part in ("recall", "any_hit", "full", "precision")},
    **dict.fromkeys((*RANKING_MEASURES, "lookups", "queries"), Lookup),
    **dict.fromkeys(("compression_rate", "words_read", "tokens_read", "length"), Answer),
    **dict.fromkeys(("valid_actions", "stray", "recovery", "steps", "depth"), Visit),
    **dict.fromkeys(("text_read", "text_read_right"), Visit),
}
_RUBRICS: dict[str, Any] = {}  # and the judge's class, which asks for verdicts by it
_NAME = re.compile(r"[a-z]\w*", re.ASCII)


def register_measure(name: str, maker: Any) -> None:
    """Add a metric's function or a judge's class. Raises UsageError, naming its file, for a name
    that another measure has or that no column can have."""
    if not _NAME.fullmatch(name) or name.endswith(ORIGINAL):
        what = f"a small letter, then letters, digits and _, not ending in {ORIGINAL}"
        raise UsageError(f"{file_of(maker)}: {maker.__name__}: the measure {name!r}: write {what}")
    register(_MEASURES, name, maker, f"makes the measure {name!r}")


def register_rubric(name: str, judge: Any) -> None:
    """Add a rubric of a judge; a plugin's makes the measure of its name, ours make those above.
    Raises UsageError for the name of another rubric or measure."""
    register(_RUBRICS, name, judge, f"judges by the rubric {name!r}")
    if not is_ours(judge):
        register_measure(name, judge)
    prompt = judge.rubrics[name]
    list_as("rubrics", name, prompt, f"{first_sentence(prompt)}; asked by {judge.label()}")
