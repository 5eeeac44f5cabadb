"""How tokens are counted: by a model's tokenizer, if this machine has it; no network, no model."""

from pathlib import Path

import pytest

from jobs.plan.estimate import CountingEngine, TokenCounts, token_counts
from pipeline.core.compose import compose
from pipeline.engines.vllm import VllmSettings
from pipeline.engines.vllm.chat_tokenizer import local_chat_tokenizer
from tests.support.command import QMSUM
from tests.support.engines.tiny_model import make_tokenizer
from tests.support.runs.plans import planned

MEETINGS = ("corpus=qmsum", f"corpus.path={QMSUM}", "limit=2", "methods=gist_only", "rater=none")
TEXT = "The grandmothers of the remote control want it in yellow rubber, with fewer buttons. " * 40


def settings(folder: Path) -> VllmSettings:
    return VllmSettings.model_validate(compose(["engine=vllm", f"engine.model={folder}"])["engine"])


@pytest.mark.vllm
def test_a_local_tokenizer_counts(tmp_path: Path) -> None:
    make_tokenizer(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    counts = token_counts(settings(tmp_path), [TEXT[:2000]])
    chat = local_chat_tokenizer(str(tmp_path), settings(tmp_path))
    assert chat is not None
    asked = chat.tokenise([{"role": "user", "content": TEXT}])
    assert counts.of([{"role": "user", "content": TEXT}]) == pytest.approx(len(asked), rel=0.03)
    assert "the model's tokenizer" in counts.how
    words = ("engine=vllm", f"engine.model={tmp_path}", f"warehouse={tmp_path / 'w'}")
    plan = planned(*MEETINGS, *words)
    assert any("the model's tokenizer on some documents" in line for line in plan["assumptions"])


def test_without_one_tokens_are_estimated(tmp_path: Path) -> None:
    """A quarter of the bytes, and it says so; Chinese takes three bytes a sign."""
    (tmp_path / "config.json").write_text("{}")
    counts = token_counts(settings(tmp_path), [TEXT])
    assert counts.how.startswith("estimated, no tokenizer on this machine")
    assert counts.of_text("a" * 400) == 100
    assert counts.of_text("\u78e8" * 400) == 300
    words = ("engine=vllm", f"engine.model={tmp_path}", f"warehouse={tmp_path / 'w'}")
    told = planned(*MEETINGS, *words)["assumptions"]
    assert any(line.startswith("tokens of reading: estimated") for line in told)


def test_a_prompt_finds_what_an_earlier_one_began_with(tmp_path: Path) -> None:
    engine = CountingEngine(settings(tmp_path), TokenCounts(len, 0, ""))
    begin = "".join(f"{n:04}" for n in range(160))  # 640 characters, none of it twice
    assert engine.cached_share(begin + "x" * 360) == 0
    assert engine.cached_share(begin + "y" * 360) == 0.64
    assert engine.cached_share(begin[::-1]) == 0
