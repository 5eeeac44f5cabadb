"""Which engine goes when: phases follow from what steps read and whom they ask."""

import itertools
from abc import ABC
from collections.abc import Iterator, Sequence
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.graph.phases import Phase, phases
from jobs.graph.read_run import read_run
from jobs.graph.step_graph import StepWithEngine
from pipeline.core.engine import EngineSettings
from pipeline.core.rows import Document, Question
from pipeline.work.stage import Role, Stage
from pipeline.work.units import Step
from stages.index.gist_pages import GistPages
from stages.retrieve.look_up import NoLookUp


# Stages of other roles. As base classes they are nobody's to name in a method.
class ByMemory(GistPages, ABC):
    role: ClassVar[Role] = "memory"


class ByExtractor(GistPages, ABC):
    role: ClassVar[Role] = "extractor"


class ByJudge(GistPages, ABC):
    role: ClassVar[Role] = "judge"


STAGES: dict[str | None, Stage] = {
    None: NoLookUp(),
    "reader": GistPages(page_breaks=False),
    "memory": ByMemory(page_breaks=False),
    "extractor": ByExtractor(page_breaks=False),
    "judge": ByJudge(page_breaks=False),
}
# Engines that differ by their seeds: R reads, M is the memory's, X extracts, J and K judge.
ENGINES: dict[str, EngineSettings] = {
    letter: read_run([f"engine.seed={seed}"]).config.engine for seed, letter in enumerate("RMXJK")
}
ROLES: dict[str, Role] = {"R": "reader", "M": "memory", "X": "extractor", "J": "judge",
                          "K": "judge"}  # fmt: skip
LOADING = tuple(
    Step(corpus="c", name=record.table, version=1, writes=record, settings={})
    for record in (Document, Question)
)


class Graph:
    """Steps by hand: each has a name, an engine's letter (or none), and the names it reads."""

    def __init__(self) -> None:
        self.steps: dict[str, Step] = {}
        self.steps_with_engines: list[StepWithEngine] = [(step, None) for step in LOADING]

    def add(self, name: str, letter: str | None, *reads: str, role: Role | None = None) -> None:
        stage = STAGES[role or (ROLES[letter] if letter else None)]
        step = Step(
            corpus="c",
            name=name,
            version=1,
            writes=stage.writes,
            settings={},
            upstream=(LOADING[0], *(self.steps[other] for other in reads)),
            stage=stage,
        )
        self.steps[name] = step
        self.steps_with_engines.append((step, ENGINES[letter] if letter else None))

    def phases(self) -> list[tuple[str, str, list[str]]]:
        """Of each phase its name, its section and the names of its steps."""
        return [(p.name, p.section, [step.name for step in p.steps]) for p in self.made()]

    def made(self) -> list[Phase]:
        return phases(self.steps_with_engines)


@pytest.fixture
def graph() -> Graph:
    """Pages by rule and their gists by the reader."""
    made = Graph()
    made.add("pages", None)
    made.add("gists", "R", "pages")
    return made


def test_an_engine_that_can_finish_goes_before_one_that_would_have_to_come_back() -> None:
    """The memory engine needs the pages alone: the reader is started once, after it."""
    graph = Graph()
    graph.add("pages", None)
    graph.add("gists", "R", "pages")
    graph.add("recall", "M", "pages")
    graph.add("answer", "R", "gists", "recall")
    assert graph.phases() == [
        ("building memories", "memory_engine", ["pages", "recall"]),
        ("reading", "engine", ["gists", "answer"]),
    ]


def test_judges_judge_once_at_the_end_whoever_is_judged(graph: Graph) -> None:
    """The first method's answer could be judged two phases before the second's is there."""
    graph.add("answer 1", "R", "gists")
    graph.add("rate 1", "J", "answer 1")
    graph.add("recall", "M", "gists")
    graph.add("facts", "X", "recall")
    graph.add("answer 2", "R", "facts")
    graph.add("rate 2", "J", "answer 2")
    assert graph.phases() == [
        ("reading", "engine", ["pages", "gists", "answer 1"]),
        ("building memories", "memory_engine", ["recall"]),
        ("extracting", "extractor", ["facts"]),
        ("reading (2)", "engine", ["answer 2"]),
        ("rating", "rater", ["rate 1", "rate 2"]),
    ]


def test_what_asks_nobody_goes_with_what_reads_it(graph: Graph) -> None:
    graph.add("recall", "M", "gists")
    graph.add("look up", None, "pages")  # read by the last answer: not before
    graph.add("ranked", None, "recall")
    graph.add("answer", "R", "ranked", "look up")
    graph.add("score", None, "answer")
    graph.add("nobody's", None, "pages")
    assert [names for _, _, names in graph.phases()] == [
        ["pages", "gists"], ["recall"], ["look up", "ranked", "answer"], ["score", "nobody's"],
    ]  # fmt: skip


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    made = Graph()
    for number in range(draw(st.integers(1, 14))):
        reads = draw(st.sets(st.sampled_from(sorted(made.steps)), max_size=3)) if number else ()
        letter = draw(st.sampled_from([None, "R", "R", "M", "X", "J"]))
        made.add(f"s{number}", letter, *sorted(reads))
    return made


@settings(deadline=None, max_examples=200)
@given(graphs())
def test_every_step_is_in_one_phase_after_all_that_it_reads(graph: Graph) -> None:
    found = graph.made()
    order = [step.id for phase in found for step in phase.steps]
    assert sorted(order) == sorted(step.id for step in graph.steps.values())
    place = {step_id: n for n, step_id in enumerate(order)}
    for step in graph.steps.values():
        assert all(place[up.id] < place[step.id] for up in step.upstream[1:])
    engine_of = {step.id: engine for step, engine in graph.steps_with_engines}
    for phase in found:
        assert {engine_of[step.id] for step in phase.steps} - {None} <= {phase.engine}
        assert phase.loading == LOADING
    assert len({phase.name for phase in found}) == len(found)
    for before, after in _pairs([phase.engine for phase in found]):
        assert before != after, "one phase would have done"


def _pairs(engines: Sequence[EngineSettings | None]) -> Iterator[tuple[object, object]]:
    return itertools.pairwise(engines)
