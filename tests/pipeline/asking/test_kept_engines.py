"""Engines that stay started between the runs of one command."""

import asyncio
from typing import Any

import pytest

from pipeline.asking.kept_engines import KeptEngines
from pipeline.core.compose import compose
from pipeline.core.engine import Engine, Reply, Request
from pipeline.core.errors import EngineError
from pipeline.engines.extractive import ExtractiveSettings
from tests.support.reading import family

REQUEST: dict[str, Any] = {"fields": None, "messages": (), "max_reply_tokens": 1}


class Fake:
    """An engine that counts what it is asked, tells its text, and dies when it is told to."""

    name, context_tokens = "fake", 100

    def __init__(self) -> None:
        self.is_closed = self.is_dead = False

    async def generate(self, request: Request) -> Reply:
        if self.is_dead:
            raise EngineError("dead")
        if request.on_text:
            request.on_text("text")
        return Reply(text="text", finish_reason="stop")

    async def count_tokens(self, messages: Any) -> int:
        return 7

    async def close(self) -> None:
        self.is_closed = True


started: list[Fake] = []


@pytest.fixture(autouse=True)
def _starts_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings start a `Fake`; those with a context under 100 tokens hold a GPU."""

    async def start(self: ExtractiveSettings) -> Engine:
        started.append(Fake())
        return started[-1]

    started.clear()
    monkeypatch.setattr(ExtractiveSettings, "start", start)
    gpus = property(lambda self: float(self.context_tokens < 100))
    monkeypatch.setattr(ExtractiveSettings, "gpus", gpus)


def settings(**changes: Any) -> ExtractiveSettings:
    section = compose(["engine=extractive"])["engine"]
    return ExtractiveSettings.model_validate({**section, **changes})


async def engine(kept: KeptEngines, own: ExtractiveSettings) -> Engine:
    return (await kept.start_reader(own, family(), "free")).engine


def test_an_engine_is_started_once_until_all_are_closed() -> None:
    async def use() -> None:
        kept = KeptEngines()
        one, again = [await engine(kept, settings()) for _ in range(2)]
        assert (await one.generate(Request(prompt="p", **REQUEST))).text == "text"
        assert await again.count_tokens([]) == 7
        assert not hasattr(one, "close")  # a worker closes engines that have it
        await engine(kept, settings(context_tokens=999))
        assert [fake.is_closed for fake in started] == [False, False]
        await kept.close()
        assert [fake.is_closed for fake in started] == [True, True]

    asyncio.run(use())


def test_a_dead_engine_is_started_anew() -> None:
    async def use() -> None:
        kept = KeptEngines()
        first = await engine(kept, settings())
        started[0].is_dead = True
        with pytest.raises(EngineError):
            await first.generate(Request(prompt="p", **REQUEST))
        await engine(kept, settings())
        assert len(started) == 2

    asyncio.run(use())


def test_one_engine_holds_gpus_at_a_time() -> None:
    async def use() -> None:
        kept = KeptEngines()
        await engine(kept, settings(context_tokens=99))
        await engine(kept, settings())
        await engine(kept, settings(context_tokens=88))
        assert [fake.is_closed for fake in started] == [True, False, False]

    asyncio.run(use())


def test_only_the_prompts_that_are_named_tell_their_text() -> None:
    told: list[str] = []

    async def use() -> None:
        one = await engine(KeptEngines({"p"}, told.append), settings())
        await one.generate(Request(prompt="q", **REQUEST))
        assert told == []
        await one.generate(Request(prompt="p", **REQUEST))
        assert told == ["text"]

    asyncio.run(use())
