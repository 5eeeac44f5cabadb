"""engine=openai against a real `vllm serve` on loopback, with a tiny random model."""

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.engine import Reply
from pipeline.core.prompts import Constraint, Message
from pipeline.engines.openai import OpenAIEngine
from tests.pipeline.engines.test_openai_engine import KEY, settings
from tests.pipeline.engines.test_openai_engine import with_engine as use_engine
from tests.support.clusters.ray_head import free_ports
from tests.support.engines.tiny_model import make_tiny_model
from tests.support.reading import request

pytestmark = pytest.mark.vllm

CONTEXT = 2048


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    make_tiny_model(folder)
    return folder


@pytest.fixture(scope="module")
def url(model: Path) -> Iterator[str]:
    """A server's address; it requires a key and has a context of 2,048 tokens."""
    (port,) = free_ports(1)
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
    until, is_ready = time.monotonic() + 300, False
    try:
        while not is_ready:
            is_late = server.poll() is not None or time.monotonic() > until
            assert not is_late, (model / "server.log").read_text()[-3000:]
            time.sleep(0.5)
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                is_ready = True
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(60)


def with_engine(url: str, use: Callable[[OpenAIEngine], Awaitable[Any]]) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        return use_engine(settings(url, model="tiny", structured_outputs="vllm"), use)


def tokens_of(model: Path, messages: tuple[Message, ...]) -> int:
    """Counted apart from the server, by transformers."""
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(model)
    chat = [dict(message) for message in messages]
    return len(tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False))


def test_tokens_are_counted_as_the_models_tokenizer_does(url: str, model: Path) -> None:
    async def count_and_ask(engine: OpenAIEngine) -> None:
        assert engine.context_tokens == CONTEXT
        for content in ("", "The keeper climbed the tower.", "naïve 日本 " * 30, "word " * 3000):
            messages = request(content).messages
            assert await engine.count_tokens(messages) == tokens_of(model, messages)
        one = request("The keeper climbed the tower.", max_reply_tokens=7)
        reply = await engine.generate(one)
        assert reply.prompt_tokens == tokens_of(model, one.messages)
        assert (reply.reply_tokens, reply.finish_reason) == (7, "length")
        long = request("all the words of a long prompt " * 40, max_reply_tokens=5)
        await engine.generate(long)
        assert (await engine.generate(long)).cached_tokens > 100

    with_engine(url, count_and_ask)


def test_a_prompt_beyond_the_context_is_refused(url: str) -> None:
    long = request("word " * CONTEXT, max_reply_tokens=20)
    refused: Reply = with_engine(url, lambda engine: engine.generate(long))
    assert refused.problem == "context_overflow"
    assert refused.text.startswith("400: This model's maximum context length is"), "its own words"


def test_replies_keep_to_constraints(url: str) -> None:
    choices = Constraint(choices=("Pages: none", "Page 12, and no other", "STOP"))
    listed = Constraint(regex=r"Pages: (0|1|17)(, (0|1|17)){0,3}")

    async def ask(engine: OpenAIEngine) -> None:
        for word in ("tower", "mill", "river", "gist"):
            asked = (request(word, 30, constraint=legal) for legal in (choices, listed))
            chosen, pages = [await engine.generate(each) for each in asked]
            assert chosen.finish_reason == pages.finish_reason == "stop"
            assert chosen.text in choices.choices
            assert re.fullmatch(listed.regex, pages.text)

    with_engine(url, ask)
