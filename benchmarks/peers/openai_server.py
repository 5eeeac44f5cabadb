"""vLLM's OpenAI server on loopback, and an asyncio client."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from openai import AsyncOpenAI

from benchmarks.peers.replayed import Job, Replayed, command


def replay(job: Job) -> Replayed:
    """Sends the requests, with as many in flight as gistmill has."""
    with _server(job) as url:
        return asyncio.run(_ask_all(job, url))


async def _ask_all(job: Job, url: str) -> Replayed:
    client = AsyncOpenAI(base_url=url, api_key="none", timeout=None, max_retries=0)
    slots, model = asyncio.Semaphore(job.at_once), job.arguments["model"]

    async def ask(one: Mapping[str, Any]) -> Any:
        own = dict(one["sampling"])
        extra = {key: own.pop(key) for key in ("structured_outputs",) if key in own}
        extra["chat_template_kwargs"] = job.chat_template_kwargs
        async with slots:
            reply = await client.chat.completions.create(
                model=model, messages=one["messages"], extra_body=extra, **own
            )
        return reply.usage

    first = time.time()
    usages = await asyncio.gather(*(ask(one) for one in job.requests))
    return Replayed(
        first=first,
        last=time.time(),
        num_requests=len(usages),
        prompt_tokens=sum(usage.prompt_tokens for usage in usages),
        reply_tokens=sum(usage.completion_tokens for usage in usages),
    )


@contextmanager
def _server(job: Job) -> Iterator[str]:
    """Start a server; yields its base URL when it is up."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    module = ("-m", "vllm.entrypoints.openai.api_server")
    own = {"host": "127.0.0.1", "port": port, "disable_uvicorn_access_log": True}
    chat_template = {"chat_template": job.chat_template}
    server = subprocess.Popen(
        [sys.executable, *module, *flags({**own, **chat_template, **job.arguments})]
    )
    try:
        _wait(f"http://127.0.0.1:{port}/health", server)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(60)


def flags(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Engine arguments as flags of the server's command line; None is left out."""
    for key, argument in arguments.items():
        name = key.replace("_", "-")
        if isinstance(argument, bool):
            yield f"--{name}" if argument else f"--no-{name}"
        elif argument is not None:
            yield f"--{name}"
            yield json.dumps(argument) if isinstance(argument, dict | list) else str(argument)


def _wait(health: str, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers. Its process may take as long as `bench peers` allows."""
    while server.poll() is None:
        try:
            urllib.request.urlopen(health, timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    sys.exit("the server has ended")


if __name__ == "__main__":
    os.environ["NO_PROXY"] = "127.0.0.1"
    command(replay)
