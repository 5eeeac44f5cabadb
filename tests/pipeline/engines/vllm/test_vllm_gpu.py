"""engine=vllm on a GPU, with the arguments a user leaves alone; `make test-gpu`."""

import asyncio
from pathlib import Path

import pytest

from pipeline.core.compose import compose
from pipeline.core.engine import Reply
from pipeline.core.prompts import Constraint
from pipeline.engines.vllm import VllmSettings
from tests.support.engines.tiny_model import make_tiny_model
from tests.support.reading import request

pytestmark = pytest.mark.gpu


def test_a_gpu_answers(tmp_path: Path) -> None:
    make_tiny_model(tmp_path / "tiny")
    words = ["engine=vllm", f"engine.model={tmp_path / 'tiny'}"]
    words.append("engine.args.gpu_memory_utilization=0.3")
    settings = VllmSettings.model_validate(compose(words)["engine"])
    assert settings.gpus == 1

    async def replies() -> list[Reply]:
        engine = await settings.start()
        constraint = Constraint(choices=("yes", "no"))
        return [
            await engine.generate(request("Is it so?", 20)),
            await engine.generate(request("Is it so?", 20, constraint=constraint)),
        ]

    free, chosen = asyncio.run(replies())
    assert (free.finish_reason, free.reply_tokens) == ("length", 20)
    assert chosen.text in ("yes", "no")
