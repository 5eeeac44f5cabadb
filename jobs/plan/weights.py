"""What each document weighs in a phase, from a stored plan: for a run's progress."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jobs.plan.costs import MEASURES
from jobs.plan.rates import REPLY_COSTS
from jobs.plan.rehearsal import Sampled
from jobs.plan.scale import Knot, between
from pipeline.engine import EngineSettings
from pipeline.steps import DocumentKey, Step

_LIKELY = len(MEASURES)  # where the likely numbers begin
_UNCACHED = _LIKELY + MEASURES.index("uncached_tokens")
_REPLY = _LIKELY + MEASURES.index("reply_tokens")


def curves(
    knots: Mapping[str, Sequence[Knot]],
    asking: Sequence[tuple[Step, EngineSettings]],
    sampled: Sequence[Sampled],
    phases: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """By phase and sampled length: tokens a word of the memory, a question, and a document.

    They are tokens of prompts, those of replies counted as many times as they take longer.
    """
    if not sampled:
        return {}
    words = sorted({one.todo.num_words for one in sampled})
    phase_of = dict(zip((repr(e) for e in _engines(asking)), phases, strict=True))
    found: dict[str, Any] = {}
    for step, engine in asking:
        if not knots.get(step.id):
            continue
        phase = phase_of[repr(engine)]
        own = found.setdefault(
            phase["phase"],
            {"words": words, **{k: np.zeros(len(words)) for k in ("word", "question", "document")}},
        )
        factor = reply_costs(phase)
        each, once = (
            numbers[:, _UNCACHED] + factor * numbers[:, _REPLY]
            for numbers in between(knots[step.id], np.array(words, dtype=np.float64))
        )
        times = _times_a_question(sampled, step) if step.per_question else 1.0
        own["question" if step.per_question else "word"] += each * times
        own["document"] += once
    return {
        phase: {k: [float(n) for n in v] for k, v in own.items()} for phase, own in found.items()
    }


def _engines(asking: Sequence[tuple[Step, EngineSettings]]) -> list[EngineSettings]:
    return list({repr(engine): engine for _, engine in asking}.values())


def reply_costs(phase: Mapping[str, Any]) -> float:
    """How many tokens of a prompt take as long as one of a reply."""
    prefill, decode = phase["prefill_tokens_per_second"], phase["decode_tokens_per_second"]
    return prefill / decode if prefill and decode else REPLY_COSTS


def _times_a_question(sampled: Sequence[Sampled], step: Step) -> float:
    """References, where the step rates."""
    asked = sum(one.todo.num_questions for one in sampled) or 1
    return sum(one.todo.times.get(step.id, 0) for one in sampled) / asked


def weights(plan: Mapping[str, Any], keys: Sequence[DocumentKey]) -> dict[str, dict[str, float]]:
    """Phase -> document -> its tokens, by the plan's JSON; documents that cannot be read weigh 0.

    As if nothing of them stood. Cheap: a line between the plan's samples.
    """
    words = np.array([key.num_words for key in keys], dtype=np.float64)
    asked = np.array([sum(not q.is_bad for q in key.questions) for key in keys], dtype=np.float64)
    readable = np.array([not key.is_bad for key in keys], dtype=np.float64)
    found = {}
    for phase, own in plan["curves"].items():
        word, question, document = (
            np.interp(words, own["words"], own[name]) for name in ("word", "question", "document")
        )
        tokens = readable * (word * words + question * asked + document * (asked > 0))
        named = zip((key.document_id for key in keys), tokens, strict=True)
        found[phase] = {document_id: float(n) for document_id, n in named}
    return found
