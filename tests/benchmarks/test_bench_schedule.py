"""Figures are medians with bars; readings and dealings of `bench`, and the work and the lower bound
of `bench schedule`, by hand."""

from typing import Any

import pytest

from benchmarks.dealing import shortest
from benchmarks.dependencies import Made
from benchmarks.figures import Bar, figure_of
from benchmarks.reading import Reading
from benchmarks.recorder import Moment, Recorded
from benchmarks.schedule import lengths, lower_bound
from tests.benchmarks.test_bench_dependencies import CUTS, NOTES, made
from tests.support.command import refused
from tests.support.engines.simulated import settings

ENGINE = settings(prefill_tokens_per_second=1000.0, decode_tokens_per_second=50.0, sequences=2)

PARTS = "limit, schedule, machines, cache, peers, units, driver, rates"


def test_no_schedule_beats_work_shared_out_nor_the_longest_chain() -> None:
    """Each call is of 500 uncached words of prompt and 25 of reply: 0.5 + 0.5 seconds."""
    tokens: dict[str, Any] = {"prompt_tokens": 700, "cached_tokens": 200, "reply_tokens": 25}
    chain = [made(CUTS, page_index=page, **tokens) for page in range(3)]
    chain += [made(NOTES, page_index=page, **tokens) for page in range(3)]
    others = [made(CUTS, f"d{i}", page_index=0, **tokens) for i in range(2, 20)]

    def bound(calls: list[Made], num_workers: int) -> float:
        worker = Recorded(Moment(0.0, 0.0), (), Moment(1.0, 0.0))
        return lower_bound(Reading(ENGINE, (), [worker] * num_workers, calls), ENGINE)

    assert bound(chain, 1) == 4.0  # 6 s on 2 sequences
    assert bound([*chain, *others], 1) == 24 / 2
    assert bound([*chain, *others], 3) == 4.0
    # The same of simulated events: 32 calls among two sequences; ten pages and a gist.
    assert (shortest([10, 2, 2, 2], 2, 1), shortest([10, 2, 2, 2], 8, 8)) == (16, 11)


def test_the_longest_document_is_half_as_long_as_the_engines_need_for_all() -> None:
    pages = lengths(400, sequences=64)
    assert len(pages) == 400 and min(pages) >= 1
    calls, chain = 2 * sum(pages), max(pages) + 1  # a break point and a gist for each page
    assert chain / (calls / 64) == pytest.approx(0.5, rel=0.02)
    assert sorted(pages)[200] * 3 < max(pages)  # skewed


def test_a_reading_begins_when_its_engines_are_ready_on_average() -> None:
    """CPU seconds are those of the driver since its last moment before that, and of each worker
    since its engine is ready."""
    driver = [Moment(100.0, 7.0), Moment(101.0, 7.5), Moment(102.0, 7.75), Moment(110.0, 9.0),
              Moment(111.0, 9.25)]  # fmt: skip
    workers = [
        Recorded(Moment(101.0, 1.0), (), Moment(109.0, 4.0)),
        Recorded(Moment(102.5, 1.5), (), Moment(110.0, 2.0)),
    ]
    reading = Reading(settings(), driver, workers, ())
    assert (reading.ready, reading.seconds) == (101.75, 110.0 - 101.75)
    assert reading.cpu == pytest.approx((9.0 - 7.5) + (4.0 - 1.0) + (2.0 - 1.5))


@pytest.mark.parametrize(
    ("bar", "ok"),
    [
        (("at most", 1.1), True), (("at most", 1.05), False),
        (("at least", 1.1), True), (("at least", 1.11), False),
        (("over", 1.09), True), (("over", 1.1), False),
    ],
)  # fmt: skip
def test_the_median_meets_a_bar_or_does_not(bar: tuple[Bar, float], ok: bool) -> None:
    figure = figure_of("limit", "a ratio", [1.0, 1.1, 9.0], bar)
    assert (figure.figure, figure.ok) == (1.1, ok)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("schedule", "engine=extractive"), "engine=extractive: schedule needs engine=simulated"),
        (("machines", "engine=extractive"), "engine=extractive: machines needs engine=simulated"),
        (("schedule", "corpus=text"), "corpus=text: schedule writes its own corpus"),
        (("driver", "engine=vllm"), "engine: driver takes corpus.num_documents; leave it out"),
        (("speed",), f"speed: not a part of bench; there are {PARTS}"),
        (("limit=4",), f"name what to measure: {PARTS}"),
        (("schedule", "engine.speed=4"), "engine.speed"),
        (("peers", "corpus.path=x", "engine=simulated"), "engine=simulated: peers needs"),
        (("peers", "corpus.path=x", "engine.model=m", "engine.max_workers=2"),
         "engine.max_workers=2: peers compares one engine"),
        (("peers", "corpus.path=x", "engine.model=m", "engine.args.reasoning_parser=qwen3",
          "engine.thinking_tokens=9"), "engine.thinking_tokens=9: the peers do not split"),
        (("peers", "corpus.path=x", "engine.model=m", "cluster=ray", "cluster.address=auto"),
         "cluster.address=auto: peers counts its own processes"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(words: tuple[str, ...], says: str) -> None:
    assert refused("bench", *words).startswith(says)
