"""engine=openai against a real `vllm serve` on loopback, with a tiny random model."""

import asyncio
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.compose import compose
from pipeline.core.engine import Reply, Request
from pipeline.core.prompts import Constraint, Message
from pipeline.engines.openai import OpenAIEngine, OpenAISettings
from stages.prompts.readagent_memory import PageGist
from tests.support.engines.tiny_model import make_tiny_model

pytestmark = pytest.mark.vllm

KEY = "sk-loopback-0123456789abcdef"
CONTEXT = 2048


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    make_tiny_model(folder)
    return folder


@pytest.fixture(scope="module")
def url(model: Path) -> Iterator[str]:
    """A server's address; it requires a key and has a context of 2,048 tokens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    server = subprocess.Popen(
        [
            sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1",
            "--port", str(port), "--model", str(model), "--served-model-name", "tiny",
            "--max-model-len", str(CONTEXT), "--dtype", "float32", "--enforce-eager",
            "--enable-prompt-tokens-details",
        ],
        env={**os.environ, "VLLM_API_KEY": KEY, "VLLM_CPU_KVCACHE_SPACE": "2"},
        stdout=subprocess.DEVNULL,
        stderr=(model / "server.log").open("wb"),
    )  # fmt: skip
    try:
        _wait(f"http://127.0.0.1:{port}/health", server, model / "server.log")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(60)


def _wait(health: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 300
    while time.monotonic() < until:
        assert server.poll() is None, log.read_text()[-3000:]
        try:
            urllib.request.urlopen(health, timeout=5).close()
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise AssertionError(log.read_text()[-3000:])


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def with_engine(url: str, use: Callable[[OpenAIEngine], Awaitable[Any]], **changes: Any) -> Any:
    async def start_and_use() -> Any:
        words = ["engine=openai", f"engine.base_url={url}", "engine.model=tiny"]
        section = {**compose(words)["engine"], "structured_outputs": "vllm", **changes}
        return await use(await OpenAISettings.model_validate(section).start())

    return asyncio.run(start_and_use())


def request(content: str, max_reply_tokens: int = 20, **changes: Any) -> Request:
    return Request(
        prompt="gist",
        fields=PageGist(page=content),
        messages=({"role": "user", "content": content},),
        max_reply_tokens=max_reply_tokens,
        **changes,
    )


def tokens_of(model: Path, messages: tuple[Message, ...]) -> int:
    """Counted apart from the server, by transformers."""
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(model)
    chat = [dict(message) for message in messages]
    text: str = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])


def test_tokens_are_counted_as_the_models_tokenizer_does(url: str, model: Path) -> None:
    async def count_and_ask(engine: OpenAIEngine) -> None:
        assert engine.context_tokens == CONTEXT
        for content in ("", "The keeper climbed the tower.", "naïve 日本 " * 30, "word " * 3000):
            messages = request(content).messages
            assert await engine.count_tokens(messages) == tokens_of(model, messages)
        one = request("The keeper climbed the tower.", 7)
        reply = await engine.generate(one)
        assert reply.prompt_tokens == tokens_of(model, one.messages)
        assert (reply.reply_tokens, reply.finish_reason) == (7, "length")
        long = request("all the words of a long prompt " * 40, 5)
        await engine.generate(long)
        assert (await engine.generate(long)).cached_tokens > 100

    with_engine(url, count_and_ask)


def test_a_prompt_beyond_the_context_is_refused(url: str) -> None:
    async def ask(engine: OpenAIEngine) -> Reply:
        return await engine.generate(request("word " * CONTEXT))

    refused: Reply = with_engine(url, ask)
    assert refused.problem == "context_overflow"
    assert refused.text.startswith("400: This model's maximum context length is"), "its own words"


def test_replies_keep_to_constraints(url: str) -> None:
    choices = ("Pages: none", "Page 12, and no other", "STOP")
    regex = r"Pages: (0|1|17)(, (0|1|17)){0,3}"

    async def ask(engine: OpenAIEngine) -> None:
        for word in ("tower", "mill", "river", "gist"):
            chosen = await engine.generate(
                request(word, 30, constraint=Constraint(choices=choices))
            )
            assert (chosen.text in choices, chosen.finish_reason) == (True, "stop")
            matched = await engine.generate(request(word, 30, constraint=Constraint(regex=regex)))
            assert re.fullmatch(regex, matched.text)
            assert matched.finish_reason == "stop"

    with_engine(url, ask)
