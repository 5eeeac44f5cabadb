"""Gists are asked for while their document is still paginated; what is committed is as if not."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.asking.ask import Ask
from pipeline.asking.slots import Slots
from pipeline.core.calls import Call
from pipeline.core.engine import Reply, Request
from pipeline.core.errors import EngineError
from pipeline.core.rows import UnitRows
from pipeline.worker.executor import Summary
from stages.index.paginate import PaginateByModel
from stages.tables.pages import Page
from tests.support.runs.small_run import SmallRun
from tests.support.texts.small_corpus import question, write

BY_MODEL = ("memory=model", "memory.min_words=20", "memory.max_words=45", "memory.tail_words=0",
            "memory.preceding_words=0")  # fmt: skip
TABLES = ("pages", "gists", "lookups", "answers")
NUM_PARAGRAPHS = 12  # of ten words: a window shows four, with labels after the second to fourth


def paragraph(number: int) -> str:
    return f"Paragraph {number} of the long book ends here at last."


class Model:
    """Ends each page at the first of its labels; with `last` those after the first page at the
    last. A gist is the first number of its page. `meanwhile` is called with each request before its
    reply."""

    name = "model"
    context_tokens = 10_000

    def __init__(
        self,
        meanwhile: Callable[[Request], Awaitable[None]] | None = None,
        last: bool = False,
    ) -> None:
        self.asked: list[str] = []
        self.gists: list[str] = []
        self._meanwhile, self._last = meanwhile, last

    async def count_tokens(self, messages: Any) -> int:
        return 1

    async def generate(self, request: Request) -> Reply:
        text = request.messages[-1]["content"]
        self.asked.append(request.prompt)
        if self._meanwhile:
            await self._meanwhile(request)
        if request.prompt == "break_point":
            labels = re.findall(r"^<(\d+)>$", text, re.MULTILINE)
            label = labels[-1 if self._last and "Paragraph 0 " not in text else 0]
            return Reply(text=f"Break point: <{label}>", finish_reason="stop")
        found = re.search(r"Paragraph (\d+)", text)
        gist = f"from {found[1]}" if found else "none"
        if request.prompt == "gist":
            self.gists.append(gist)
        return Reply(text=gist, finish_reason="stop")


@pytest.fixture
def small(tmp_path: Path) -> SmallRun:
    small = SmallRun(tmp_path, memory=BY_MODEL)
    text = "\n\n".join(paragraph(number) for number in range(NUM_PARAGRAPHS))
    write(tmp_path / "corpus", [{"document_id": "d1", "text": text}], [question(1, of=1)])
    return small


def work(small: SmallRun, model: Model, *tables: str) -> Summary:
    return asyncio.run(working(small, model, *tables))


async def working(small: SmallRun, model: Model, *tables: str, journal: bool = True) -> Summary:
    """d1 by one worker: all of it, or only these tables."""
    worker = small.worker(
        replace(small.reader, engine=model, slots=Slots(100), keeps_journal=journal)
    )
    wanted = {small.step(table).id for table in tables or TABLES}
    units = [
        replace(unit, is_done=unit.is_done or unit.step_id not in wanted)
        for unit in small.units()["d1"]
    ]
    return await asyncio.wait_for(worker.work("d1", units), 60)


def firsts(small: SmallRun) -> list[str]:
    """The gist that each committed page must have: of its first paragraph."""
    numbers = [re.findall(r"Paragraph (\d+)", page.text)[0] for page in small.rows("pages")]
    return [f"from {number}" for number in numbers]


def of_step(small: SmallRun, table: str) -> tuple[Call, ...]:
    unit = small.shard(table).name.split(".")[0]
    return small.shards.load(Call, small.step(table).id, unit)


def test_a_gist_is_asked_for_before_the_next_page_is_known(small: SmallRun) -> None:
    """The second page's end is not told before the first page's gist is asked for."""
    gist_asked = asyncio.Event()

    async def after_a_gist(request: Request) -> None:
        if request.prompt == "gist":
            gist_asked.set()
        elif request.prompt == "break_point" and model.asked.count("break_point") == 2:
            await gist_asked.wait()

    model = Model(after_a_gist)
    summary = work(small, model)
    assert [page.num_words for page in small.rows("pages")] == [20] * 6
    assert [gist.gist for gist in small.rows("gists")] == firsts(small)
    assert model.asked.count("gist") == 6
    assert summary.calls == len(model.asked), "every request counts once"
    assert [call.page_index for call in of_step(small, "gists")] == list(range(6))


def test_gists_are_made_of_the_pages_that_another_worker_committed(small: SmallRun) -> None:
    """While ours asks for its last page's end, another worker commits pages of other sizes."""
    rival = Model(last=True)

    async def lose(request: Request) -> None:
        if request.prompt == "break_point" and model.asked.count("break_point") == 4:
            await working(small, rival, "pages")

    model = Model(lose)
    # Without a journal: the other worker would take our pages from it.
    asyncio.run(working(small, model, "pages", "gists", journal=False))
    assert [page.num_words for page in small.rows("pages")] == [20, 40, 40, 20]
    assert firsts(small) == ["from 0", "from 2", "from 6", "from 10"]
    assert [gist.gist for gist in small.rows("gists")] == firsts(small)
    assert model.gists.count("from 4") == 1, "of a page that nobody committed"
    assert model.gists.count("from 0") == 1, "the page is committed, so its gist is asked for once"
    assert [call.page_index for call in of_step(small, "gists")] == [0, 1, 2, 3]


def test_what_was_asked_before_the_end_is_not_asked_again(small: SmallRun) -> None:
    """The engine dies while pages are chosen, after two gists; both are in the journal."""
    journal = small.shards.warehouse / "journal" / small.step("gists").id

    def num_written() -> int:
        lines = [line for file in journal.glob("*.jsonl") for line in file.read_text().split("\n")]
        return len([line for line in lines if line])

    async def die(request: Request) -> None:
        if request.prompt == "gist" and first.asked.count("gist") >= 3:
            await asyncio.Event().wait()
        if request.prompt == "break_point" and first.asked.count("break_point") == 5:
            while num_written() < 2:
                await asyncio.sleep(0.01)
            raise EngineError("the engine died")

    first, second = Model(die), Model()
    with pytest.raises(EngineError, match="the engine died"):
        work(small, first)
    assert not list(small.shards.warehouse.glob("tables/gists/*/*.parquet"))
    work(small, second)
    assert second.asked.count("gist") == 6 - 2
    assert second.asked.count("break_point") == 5 - 4  # the last page is the only one left: rule
    assert [gist.gist for gist in small.rows("gists")] == firsts(small)


def test_gists_of_pages_that_failed_later_are_not_kept(
    small: SmallRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stage raises after four pages: the document has one row with a problem, and no gist."""
    sound = PaginateByModel.run

    async def run(self: PaginateByModel, rows: UnitRows, ask: Ask) -> list[Page]:
        for page in (await sound(self, rows, ask))[:1]:
            rows.hand_on(page)
        await gist_asked.wait()
        raise ZeroDivisionError("no page")

    gist_asked = asyncio.Event()

    async def see(request: Request) -> None:
        if request.prompt == "gist":
            gist_asked.set()

    monkeypatch.setattr(PaginateByModel, "run", run)
    model = Model(see)
    work(small, model)
    assert "gist" in model.asked
    assert [row.problem for row in small.rows("pages")] == ["unit_failed"]
    assert [row.problem for row in small.rows("gists")] == ["upstream"]
    assert of_step(small, "gists") == ()
