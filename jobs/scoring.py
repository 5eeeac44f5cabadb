"""Whose workers score: those of the last engine, where they are there anyway and hold no GPU.

A worker takes more than a second of CPU to start, which a small run would pay twice. No GPU is kept
for scores: where the engine holds one they have a phase of their own, on CPUs.
"""

from collections.abc import Sequence
from dataclasses import replace

from jobs.phases import Phase, PlannedUnits


def with_scoring(phases: Sequence[Phase], units: PlannedUnits) -> list[Phase]:
    """`phases`, scoring done in the one before where that holds no GPU and has something to do for
    every document that is to be scored: no engine starts for documents that ask it nothing."""
    if len(phases) < 2 or phases[-1].engine is not None:
        return list(phases)
    *others, asking, scoring = phases
    holds_gpu = asking.engine is not None and asking.engine.gpus > 0
    if holds_gpu or not scoring.documents(units) <= asking.documents(units):
        return list(phases)
    return [*others, replace(asking, steps=(*asking.steps, *scoring.steps))]
