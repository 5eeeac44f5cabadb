"""Pages whose ends are chosen ahead are those of a reading in turn, sooner, and few calls more."""

import asyncio
import gc
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pipeline.core.calls import Call
from pipeline.core.engine import Reply, Request
from pipeline.core.errors import EngineError
from pipeline.core.rows import UnitRows
from stages.index.paginate import PaginateByModel
from stages.tables.pages import Page
from tests.support.reading import document, run

Choose = Callable[[Sequence[str], str], str]


def first(labels: Sequence[str], text: str) -> str:
    return labels[0]


def last(labels: Sequence[str], text: str) -> str:
    return labels[-1]


def noisy(labels: Sequence[str], text: str) -> str:
    """Any label, another for each window; the same if the window is shown again."""
    return random.Random(text).choice(labels)


def at_a_pause(labels: Sequence[str], text: str) -> str:
    """The paragraph of the window that is most of a pause, as a good reader would."""
    return max(labels, key=lambda label: random.Random(_before(label, text)).random())


def _before(label: str, text: str) -> str:
    """The paragraph that the label follows."""
    return text[: text.index(f"<{label}>")].strip().splitlines()[-1]


class InRounds:
    """Replies to all that is asked at the same time; `rounds`: how often."""

    name = "rounds"
    context_tokens = 100_000

    def __init__(self, choose: Choose) -> None:
        self.rounds = self.num_asked = 0
        self._choose = choose
        self._next: asyncio.Task[None] | None = None

    async def count_tokens(self, messages: Any) -> int:
        return 1

    async def generate(self, request: Request) -> Reply:
        self.num_asked += 1
        if self._next is None:
            self._next = asyncio.create_task(self._round())
        await asyncio.shield(self._next)
        text = request.messages[-1]["content"]
        labels = re.findall(r"^<(\d+)>$", text, re.MULTILINE)
        reply = f"Break point: <{self._choose(labels, text)}>"
        return Reply(text=reply, finish_reason="stop", prompt_tokens=10)

    async def _round(self) -> None:
        for _ in range(50):  # until nobody else asks
            await asyncio.sleep(0)
        self.rounds += 1
        self._next = None


def paginate(preceding_words: int | None = 20) -> PaginateByModel:
    return PaginateByModel(
        page_breaks=False, paragraphs="lines", min_words=100, max_words=250, tail_words=50,
        preceding_words=preceding_words, following="nothing", label_rule="within_limits",
    )  # fmt: skip


def long_text(seed: int = 0, num_paragraphs: int = 2000) -> UnitRows:
    draw = random.Random(seed)
    sizes = [
        min(max(round(30 * draw.lognormvariate(0, 0.7)), 4), 200) for _ in range(num_paragraphs)
    ]
    lines = [" ".join([f"part{n}", *["word"] * (size - 1)]) for n, size in enumerate(sizes)]
    return UnitRows(document=document("\n".join(lines)))


def read(
    choose: Choose, rows: UnitRows, reads_ahead: bool = True, **how: Any
) -> tuple[InRounds, list[Page], tuple[Call, ...]]:
    engine = InRounds(choose)
    how = {"stage": paginate(), "slots": 80, **how}
    pages, calls = run(rows=rows, engine=engine, reads_ahead=reads_ahead, **how)
    return engine, pages, calls


def in_vain(calls: Sequence[Call]) -> list[Call]:
    return [call for call in calls if call.page_index is None]


def timeless(call: Call) -> Call:
    return replace(call, started_at=None, call_index=0)


@pytest.mark.parametrize("choose", [first, last, noisy, at_a_pause])
@pytest.mark.parametrize("seed", range(4))
def test_pages_are_those_of_a_reading_in_turn(choose: Choose, seed: int) -> None:
    rows = long_text(seed)
    in_turn, expected, calls_in_turn = read(choose, rows, reads_ahead=False)
    engine, pages, calls = read(choose, rows)
    assert pages == expected
    asked = [(call.page_index, call.request_sha) for call in calls if call.page_index is not None]
    assert asked == [(call.page_index, call.request_sha) for call in calls_in_turn]
    assert in_turn.rounds == len(calls_in_turn)
    assert 0 < len(in_vain(calls)) < 0.27 * len(pages)  # their number is estimated
    assert len({call.request_sha for call in calls}) == len(calls) <= engine.num_asked
    if choose is at_a_pause:  # chains meet
        assert engine.rounds < in_turn.rounds / 2.5
        assert len(in_vain(calls)) < 0.15 * len(pages)


def test_an_engine_that_is_busy_is_asked_for_nothing_in_vain() -> None:
    """The document's own request takes half of the slots."""
    rows = long_text()
    engine, pages, calls = read(first, rows, slots=2)
    assert engine.rounds == engine.num_asked == len(calls) <= len(pages)


def test_windows_that_show_the_page_before_are_chosen_in_turn() -> None:
    rows = long_text(num_paragraphs=500)
    engine, _, calls = read(first, rows, stage=paginate(preceding_words=None))
    assert engine.rounds == engine.num_asked == len(calls)


def test_a_unit_that_was_begun_takes_its_replies_and_is_read_in_turn() -> None:
    """Also those that a killed process had sent ahead: the journal has them about no page."""
    rows = long_text(num_paragraphs=800)
    _, expected, calls = read(first, rows, reads_ahead=False)
    half = len(calls) // 2
    sent_ahead = [replace(call, page_index=None) for call in calls[half : half + 20]]
    vain = replace(calls[0], page_index=None, request_sha="0" * 16)
    engine, pages, again = read(first, rows, recorded=[*calls[:half], *sent_ahead, vain])
    assert pages == expected
    assert in_vain(again) == [vain], "it was paid for"
    assert [timeless(call) for call in again[1:]] == [timeless(call) for call in calls]
    assert engine.rounds == engine.num_asked == len(calls) - half - 20


def test_an_engine_that_dies_meanwhile_ends_the_unit_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Dying(InRounds):
        async def generate(self, request: Request) -> Reply:
            if self.num_asked == 60:
                raise EngineError("dead")
            return await super().generate(request)

    with pytest.raises(EngineError, match="dead"):
        run(paginate(), long_text(), Dying(first), reads_ahead=True, slots=80)
    gc.collect()
    assert not caplog.records, "asyncio reports errors that nobody has asked for"
