"""Run an engine alone, in its own process: no Ray, no stages, no Parquet."""

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from pipeline.core.engine import Engine, EngineSettings, Request
from pipeline.core.errors import EngineError, UsageError
from pipeline.core.registry import pickle_with_plugins, unpickle_with_plugins


@dataclass(frozen=True)
class Script:
    """Requests to replay; `waits`: for each, the positions of the requests that it depends on."""

    requests: Sequence[Request]
    waits: Sequence[Sequence[int]]

    def all_at_once(self) -> "Script":
        return Script(self.requests, [()] * len(self.requests))


async def replay(engine: Engine, script: Script, at_once: int) -> tuple[float, float]:
    """Replay `script` with at most `at_once` concurrent requests.

    Returns wall seconds until all are answered, and the CPU seconds of this process meanwhile.
    """
    slots = asyncio.Semaphore(at_once)
    tasks: list[asyncio.Task[None]] = []

    async def one(position: int) -> None:
        for earlier in script.waits[position]:
            await asyncio.shield(tasks[earlier])
        async with slots:
            await engine.generate(script.requests[position])

    start, cpu = time.perf_counter(), time.process_time()
    tasks += [asyncio.create_task(one(position)) for position in range(len(script.requests))]
    await asyncio.gather(*tasks)
    return time.perf_counter() - start, time.process_time() - cpu


def on_engine(
    settings: EngineSettings, work: Callable[..., Awaitable[Any]], *arguments: Any
) -> Any:
    """The result of `work(engine, *arguments)` in a new process, which ends with its engine.

    Raises the EngineError or UsageError of `work` or the engine; EngineError where the process
    dies.
    """
    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe(duplex=False)
    content = pickle_with_plugins((settings, work, arguments))
    process = spawn.Process(target=_in_process, args=(sender, content))
    process.start()
    sender.close()
    try:
        result = receiver.recv()
    except EOFError:
        raise EngineError(f"engine={settings.name}: the bare engine's process died") from None
    finally:
        _end(process)
    if isinstance(result, EngineError | UsageError):
        raise result
    return result


def _end(process: SpawnProcess) -> None:
    """Kill the process and its children; vLLM's do not exit by themselves."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.kill()  # it may not have called setpgrp yet
    process.join()


def _in_process(sender: Connection, content: bytes) -> None:
    os.setpgrp()
    with Path(os.devnull).open("w") as nowhere:  # vLLM's log: a failed start is raised as an error
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)

    async def start_and_work() -> None:
        try:
            settings, work, arguments = unpickle_with_plugins(content)
            result = await work(await settings.start(), *arguments)
        except (EngineError, UsageError) as error:
            result = error
        sender.send(result)

    asyncio.run(start_and_work())
