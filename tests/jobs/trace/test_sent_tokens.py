"""Calls of engines that count by a model's tokenizer, with and without it on this machine."""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.trace import recorded_counts
from pipeline.core.engine import Reply, Request
from pipeline.core.prompts import Message
from pipeline.engines.vllm.local_tokenizer import local_chat_tokenizer
from tests.support.runs.hostile_run import HostileEngine, HostileRun, book_words
from tests.support.runs.shown_calls import as_asked, as_shown, problems, shown

METHODS = (
    "methods=readagent_s(max_pages=3),truncated_to_context(keep=last),"
    "recurrence(segment_tokens=200,summary_tokens=30)"
)
TEMPLATE = "{% for message in messages %}<u> {{ message['content'] }} <a>{% endfor %}"
pytestmark = pytest.mark.vllm  # whose tokenizers are transformers'
NEEDED = "what it was sent depends on how many tokens texts have, which takes the tokenizer of "


class Tokenised(HostileEngine):
    """Counts by a tokenizer, and says of each prompt how many tokens it has, as vLLM does."""

    tokenizer: Any

    async def generate(self, request: Request) -> Reply:
        reply = await super().generate(request)
        return replace(reply, prompt_tokens=await self.count_tokens(request.messages))

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return len(self.tokenizer.tokenise(messages))


@pytest.fixture(autouse=True)
def _no_tokenizer_is_kept() -> Iterator[None]:
    recorded_counts.by_tokenizer.cache_clear()
    yield
    recorded_counts.by_tokenizer.cache_clear()


class TokenisedRun(HostileRun):
    """Of engine=vllm and a model of which there is a tokenizer alone, in the folder `model`."""

    def __init__(self, folder: Path) -> None:
        self.model = folder / "model"
        _make_tokenizer(self.model)
        (self.model / "config.json").write_text('{"model_type": "llama"}')
        words = [*book_words(folder, 12, 2)[:-1], METHODS]
        super().__init__(folder, words, 7, False, ("engine=vllm", f"engine.model={self.model}"))
        self.engine = Tokenised(7)
        self.engine.tokenizer = local_chat_tokenizer(str(self.model), None)


def _make_tokenizer(folder: Path) -> None:
    """Of words and marks, all of them unknown to it."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    plain = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> TokenisedRun:
    made = TokenisedRun(tmp_path_factory.mktemp("tokens"))
    made.work()
    return made


def test_with_the_tokenizer_every_call_is_shown(run: TokenisedRun) -> None:
    found = shown(run.config.warehouse)
    assert problems(found) == {}
    assert Counter(map(as_shown, found)) == Counter(map(as_asked, run.engine.asked))


def test_without_it_a_call_is_shown_or_says_what_it_takes(run: TokenisedRun) -> None:
    shutil.move(run.model, run.model.with_name("elsewhere"))
    try:
        found = shown(run.config.warehouse)
    finally:
        shutil.move(run.model.with_name("elsewhere"), run.model)
    assert {as_shown(one) for one in found if one.messages} <= set(map(as_asked, run.engine.asked))
    (why,) = problems(found)
    assert why.startswith(NEEDED)
    # Words are asked for by what fits, or the text is cut where it no longer does.
    lost = {(o.call["prompt"], (o.call["method"] or "").partition("(")[0]) for o in found
            if o.why_not}  # fmt: skip
    assert lost <= {
        ("regist", ""), ("update_summary", "recurrence"), ("answer", "recurrence"),
        ("answer", "truncated_to_context"),
    }  # fmt: skip
