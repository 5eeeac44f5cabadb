"""The pilot's counts scaled to the corpus: what is expected of every step, and what at most."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jobs.phases import Phase
from jobs.plan.counting import Copies, costs, execute, file_sizes, loaded
from jobs.plan.former import Former
from jobs.plan.pilot import Pilot
from jobs.plan.scaling import MEASURES, Numbers, Point, scaled
from jobs.preparation import Prepared
from pipeline.counting_engine import CountingEngine, Scenario
from pipeline.prompts import PROMPTS, Prompt
from pipeline.rows import Document
from pipeline.simulated_engine import SimulatedSettings
from pipeline.steps import Step
from pipeline.token_counts import TokenCounts, token_counts

PILOT_MARGIN = 0.1  # by which `at most` is raised where it is scaled
_TRIED_TEXTS = 12  # by a tokenizer
Points = Mapping[str, Sequence[Point]]
Warn = Callable[[str], None]


@dataclass
class Estimate:
    """What the pilot was counted to, and by step what all documents come to, once it `count`s.

    `measured`: by step what documents of a real pilot came to; the expected follows from it.
    """

    prepared: Prepared
    pilot: Pilot
    like: Former | None
    measured: Points
    expected: dict[str, Numbers] = field(default_factory=dict)
    at_most: dict[str, Numbers] = field(default_factory=dict)
    disk: dict[str, int] = field(default_factory=dict)  # bytes by table
    counts: dict[str, TokenCounts] = field(default_factory=dict)  # by phase

    @property
    def steps(self) -> dict[str, Step]:
        return {step.id: step for step in self.prepared.steps}

    @property
    def prompts(self) -> list[type[Prompt[Any]]]:
        """All that may be asked, each once."""
        pending = {step_id for work in self.pilot.works for step_id in work.kind}
        asking = [step.stage for step in self.prepared.steps if step.stage and step.id in pending]
        return list({prompt.name: prompt for stage in asking for prompt in stage.asked()}.values())

    def count(self) -> None:
        """The pilot in each scenario."""
        copies = loaded(self.prepared, self.pilot)
        texts = self._texts(copies)
        for phase in self.prepared.phases:
            if phase.engine is not None:
                self.counts[phase.name] = token_counts(phase.engine, texts)
        self._count("expected", copies)
        self._count("at_most", copies)
        if any(prompt.fewest is not Prompt.fewest for prompt in self.prompts):
            self._count("fewest", copies)

    def _texts(self, copies: Copies) -> list[str]:
        first = self.prepared.steps[0].id
        units = [u for own in self.pilot.units.values() for u in own if u.step_id == first]
        rows = [copies.load(Document, first, unit.unit) for unit in units[:_TRIED_TEXTS]]
        return [document.text for (document,) in rows]

    def _count(self, scenario: Scenario, loaded_rows: Copies) -> None:
        copies = loaded_rows.another()
        execute(self.prepared, self.pilot, copies, lambda phase: self._engine(phase, scenario))
        with_shared = scenario != "expected" and not self.pilot.is_whole
        for step_id, points in costs(self.pilot, copies, with_shared).items():
            if scenario == "expected":
                own = self.measured.get(step_id) or points
                self.expected[step_id] = self._all(step_id, own)
            else:
                most = self._all(step_id, points) * self._margin(step_id)
                before = self.at_most.get(step_id, self.expected[step_id])
                self.at_most[step_id] = np.maximum(before, most)
        if scenario == "expected":
            for (step_id, table), sizes in file_sizes(self.pilot, copies).items():
                num_bytes = round(float(self._all(step_id, sizes).sum()))
                self.disk[table] = self.disk.get(table, 0) + num_bytes

    def _all(self, step_id: str, points: Sequence[Point]) -> Numbers:
        step = self.steps[step_id]
        return scaled(points, [w.size(step) for w in self.pilot.works if w.times.get(step_id)])

    def _margin(self, step_id: str) -> Numbers:
        """What `at most` is multiplied by, measure by measure."""
        (off,) = (self.counts[phase.name].may_be_off for phase in self.prepared.phases
                  if step_id in {step.id for step in phase.steps})  # fmt: skip
        scaled_by = 1.0 if self.pilot.is_whole else 1 + PILOT_MARGIN
        return np.array([1.0, *[1 + off] * (len(MEASURES) - 1)]) * scaled_by

    def _engine(self, phase: Phase, scenario: Scenario) -> CountingEngine:
        assert phase.engine is not None
        usual = self.like.usual_of(phase.engine) if self.like else {}
        if isinstance(phase.engine, SimulatedSettings):
            usual = dict.fromkeys(PROMPTS, float(phase.engine.reply_tokens))
        return CountingEngine(scenario, phase.engine, self.counts[phase.name], usual)
