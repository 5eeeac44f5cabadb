"""Engines that stay started between the runs of one command, and tell replies while they come."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from pipeline.asking.reader import Reader
from pipeline.asking.readers import ReplyFormat, reader_of, started
from pipeline.core.engine import Closable, Engine, EngineSettings, OnText, Reply, Request
from pipeline.core.errors import EngineError
from pipeline.core.prompts import Message
from pipeline.families.family import Family


class KeptEngines:
    """Started engines by their settings, all used from one event loop until `close`. Only one may
    hold GPUs: another that needs some ends it. `on_text` is called with the text so far of a reply
    to the prompts `streamed`, by engines that make it bit by bit."""

    def __init__(self, streamed: Collection[str] = (), on_text: OnText | None = None) -> None:
        self._started: dict[str, tuple[EngineSettings, Engine]] = {}
        self._streamed, self._on_text = streamed, on_text

    async def start_reader(
        self, settings: EngineSettings, family: Family, reply_format: ReplyFormat
    ) -> Reader:
        """As the function of that name, with an engine that is started once. Raises StartError."""
        key = repr(settings)
        if key not in self._started:
            if settings.gpus:
                for other, (known, _) in list(self._started.items()):
                    if known.gpus:
                        await self._end(other)
            self._started[key] = settings, await started(settings)
        engine = self._started[key][1]
        reader = reader_of(engine, settings, family, reply_format)
        return replace(reader, engine=_Kept(engine, lambda: self._started.pop(key, None), self))

    def told(self, request: Request) -> Request:
        """The request, with whom to tell the reply's text."""
        is_streamed = request.prompt in self._streamed
        return replace(request, on_text=self._on_text) if is_streamed else request

    async def close(self) -> None:
        """End all engines."""
        for key in list(self._started):
            await self._end(key)

    async def _end(self, key: str) -> None:
        _, engine = self._started.pop(key)
        if isinstance(engine, Closable):
            await engine.close()


class _Kept:
    """An engine that the worker which uses it does not close. A dead one is started anew by the
    next worker."""

    def __init__(self, engine: Engine, forget: Callable[[], object], kept: KeptEngines) -> None:
        self._engine, self._forget, self._kept = engine, forget, kept
        self.name, self.context_tokens = engine.name, engine.context_tokens

    async def generate(self, request: Request) -> Reply:
        try:
            return await self._engine.generate(self._kept.told(request))
        except EngineError:
            self._forget()
            raise

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return await self._engine.count_tokens(messages)
