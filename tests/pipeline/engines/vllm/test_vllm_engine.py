"""engine=vllm on real vLLM: exact prompts and budgets, thinking, startup errors. A dead engine, and
replies that are constrained or found in the cache, are in whole runs: tests/runs/test_vllm_run.py
and test_vllm_runs.py."""

import asyncio
import re
from array import array
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.core.calls import Subject
from pipeline.core.engine import Reply
from pipeline.core.errors import StartError, UsageError
from pipeline.core.prompts import Asked, Constraint
from stages.prompts.readagent_memory import PageGist
from tests.support.engines.tiny_model import make_tiny_model
from tests.support.engines.vllm_engines import FAMILY, Talk, ask, messages, settings
from tests.support.reading import request

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

CONTEXT_TOKENS = 2048
THINKING_TOKENS = 30
REPLY_TOKENS = 20
WORDS = "The keeper climbed the tower every evening at six, with oil in a tin can. "


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    make_tiny_model(folder)
    return folder


@pytest.fixture(scope="module")
def talk(model: Path) -> Iterator[Talk]:
    """An engine of 2,048 tokens of context."""
    with closing(Talk(f"engine.model={model}", f"engine.context_tokens={CONTEXT_TOKENS}")) as talk:
        yield talk


@pytest.fixture(scope="module")
def thinker(model: Path) -> Iterator[Talk]:
    """An engine that opens its thinking in the prompt; 30 tokens, then the end is forced."""
    words = (
        f"engine.model={model}", f"engine.context_tokens={CONTEXT_TOKENS}",
        f"engine.thinking_tokens={THINKING_TOKENS}", "engine.args.reasoning_parser=deepseek_r1",
        "engine.chat_template_kwargs.thinking=true",
    )  # fmt: skip
    with closing(Talk(*words)) as talk:
        yield talk


@pytest.fixture(scope="module")
def tokenizer(model: Path) -> Any:
    """The model's, by transformers and not by way of vLLM."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model)


def expected_ids(tokenizer: Any, text: str, **values: Any) -> list[int]:
    ids: list[int] = tokenizer.apply_chat_template(
        list(messages(text)), add_generation_prompt=True, return_dict=False, **values
    )
    return ids


def prompt_of(tokenizer: Any, num_tokens: int) -> PageGist:
    """A page whose prompt has exactly so many tokens."""
    page, lack = "", num_tokens
    while lack:
        page += WORDS if lack > 100 else " a"
        (message,) = FAMILY.render(PageGist(page=page))
        lack = num_tokens - len(expected_ids(tokenizer, message["content"]))
        assert lack >= 0
    return PageGist(page=page)


def generated(talk: Talk, text: str, max_reply_tokens: int, **changes: Any) -> Reply:
    reply: Reply = talk.run(talk.engine.generate(request(text, max_reply_tokens, **changes)))
    return reply


def test_prompts_are_rendered_with_the_models_own_template(talk: Talk, tokenizer: Any) -> None:
    assert (talk.engine.name, talk.engine.context_tokens) == ("vllm:tiny", CONTEXT_TOKENS)
    ids = expected_ids(tokenizer, WORDS)
    assert tokenizer.decode(ids) == f"<|user|>{WORDS}<|end|><|assistant|>"
    assert talk.run(talk.engine.count_tokens(messages(WORDS))) == len(ids)
    assert generated(talk, WORDS, 5).prompt_tokens == len(ids)


def test_sampling_is_by_temperature_and_seed(talk: Talk) -> None:
    cases = [(0.0, 1), (0.0, 2), (1.0, 1), (1.0, 1), (1.0, 2)]
    texts = [generated(talk, WORDS, 30, temperature=t, seed=seed).text for t, seed in cases]
    assert texts[0] == texts[1] and texts[2] == texts[3] != texts[4]


@pytest.mark.parametrize(("spare", "asked"), [(1, True), (0, True), (-1, False)])
def test_the_context_is_used_to_the_last_token(
    talk: Talk, tokenizer: Any, spare: int, asked: bool
) -> None:
    """Prompt and reply budget of one token less than the context, as many, and one more."""
    num_tokens = CONTEXT_TOKENS - REPLY_TOKENS - spare
    asking = ask(talk.engine, REPLY_TOKENS)
    page = prompt_of(tokenizer, num_tokens)
    reply = talk.run(asking(page, Subject(page_index=0)))
    if asked:
        (call,) = asking.calls()
        assert call.prompt_tokens == num_tokens
        assert (call.finish_reason, call.reply_tokens) == ("length", REPLY_TOKENS)
    else:
        assert (reply.problem, reply.raw, asking.calls()) == ("context_overflow", "", ())


def test_a_request_that_the_engine_refuses_is_a_failed_reply(talk: Talk) -> None:
    refused = generated(talk, WORDS, 5, constraint=Constraint(regex="(unclosed"))
    assert (refused.text, refused.finish_reason, refused.problem) == ("", "abort", None)
    assert generated(talk, WORDS, 5).finish_reason == "length"


def test_a_late_reply_is_a_timeout_and_leaves_the_engine(talk: Talk) -> None:
    async def late() -> tuple[Asked[str], int]:
        asking = ask(talk.engine, 1700, deadline=0.3)
        reply = await asking(PageGist(page=WORDS), Subject(page_index=0))
        return reply, talk.engine.llm.get_num_unfinished_requests()

    reply, left = talk.run(late())
    assert (reply.problem, reply.raw) == ("timeout", "")
    assert left == 0
    assert generated(talk, WORDS, 5).reply_tokens == 5


def test_thinking_has_its_own_budget(thinker: Talk, tokenizer: Any) -> None:
    num_markers = 2  # <think> and </think>
    assert thinker.engine.context_tokens == CONTEXT_TOKENS - THINKING_TOKENS - num_markers
    reply = generated(thinker, WORDS, REPLY_TOKENS)
    ids = expected_ids(tokenizer, WORDS, thinking=True)
    assert tokenizer.decode(ids).endswith("<|assistant|><think>")
    assert reply.prompt_tokens == len(ids)
    assert reply.thinking
    assert not set(re.findall("</?think>", reply.thinking + reply.text))
    # 30 of thinking, its end marker, 20 of the answer, and 1 that is cut off: it was reserved for
    # the start marker, which this prompt contains already.
    assert reply.reply_tokens == THINKING_TOKENS + 1 + REPLY_TOKENS + 1
    assert reply.finish_reason == "length"


def test_a_constraint_holds_after_the_thinking(thinker: Talk) -> None:
    """A list of one-digit page numbers, which may be empty."""
    legal = Constraint(regex=r"\[(\d(, \d){0,3})?\]")
    for seed in range(6):
        reply = generated(thinker, WORDS, 15, constraint=legal, temperature=1.0, seed=seed)
        assert reply.thinking
        assert re.fullmatch(legal.regex, reply.text)
        assert reply.finish_reason == "stop"


@pytest.mark.parametrize(
    ("reply", "thinking", "text", "finish_reason"),
    [
        ("a short thought</think> one two", "a short thought", "one two", "stop"),
        ("short</think>" + " the" * 25, "short", " ".join(["the"] * REPLY_TOKENS), "length"),
        ("thinking to the end", "thinking to the end", "", "stop"),
    ],
)
def test_the_answer_may_not_use_what_thinking_left_over(
    thinker: Talk, tokenizer: Any, reply: str, thinking: str, text: str, finish_reason: str
) -> None:
    """Replies written by hand; ` the` is one token."""
    assert len(tokenizer.encode(" the" * 25)) == 25
    made = SimpleNamespace(text=reply, token_ids=tokenizer.encode(reply), finish_reason="stop")
    answer = thinker.engine._answer(made, request(WORDS, REPLY_TOKENS))
    assert (answer.thinking, answer.text, answer.finish_reason) == (thinking, text, finish_reason)


def test_a_prompt_that_ends_the_thinking_gets_an_answer_only(thinker: Talk, tokenizer: Any) -> None:
    prompt = array("i", expected_ids(tokenizer, WORDS, thinking=False))
    assert tokenizer.decode(list(prompt)).endswith("<think></think>")
    from pipeline.engines.vllm.vllm_engine import ThinkingParser

    config = thinker.engine.llm.vllm_config
    ended = ThinkingParser(config, tokenizer, THINKING_TOKENS, {"thinking": False}, prompt[-8:])
    reply = tokenizer.encode("one two")
    assert ended.split(reply) == (None, reply)


HARMONY = (
    "<|start|>system<|message|>Current date: {{ strftime_now('%Y-%m-%d') }}<|end|>"
    "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor %}"
    "<|start|>assistant"
)


def test_gpt_oss_may_think_though_its_parser_has_no_end_marker(tmp_path: Path) -> None:
    """Its budget is reserved, its marks of thinking, special tokens, stay in the text, and the date
    in its prompt is the run's."""
    from transformers import PreTrainedTokenizerFast

    real = Path(__file__).parents[4] / ".venv/tokenizers/gptoss"
    assert real.is_dir(), f"{real} is missing: make .venv/tokenizers"
    tokenizer = PreTrainedTokenizerFast.from_pretrained(real)
    make_tiny_model(tmp_path, hidden=128, layers=1, tokenizer=tokenizer)
    (tmp_path / "harmony.jinja").write_text(HARMONY)
    words = (
        f"engine.model={tmp_path}", f"engine.chat_template={tmp_path / 'harmony.jinja'}",
        f"engine.thinking_tokens={THINKING_TOKENS}", "engine.args.reasoning_parser=openai_gptoss",
        "engine.context_tokens=512",
    )  # fmt: skip
    with closing(Talk(*words)) as talk:
        assert talk.engine.context_tokens == 512 - THINKING_TOKENS
        prompt = talk.run(talk.engine.tokens(messages(WORDS)))
        assert "Current date: 2024-02-29" in tokenizer.decode(list(prompt))
        reply = generated(talk, WORDS, REPLY_TOKENS)
        assert reply.reply_tokens == THINKING_TOKENS + REPLY_TOKENS
        assert reply.finish_reason == "length"
        thought = "<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant"
        sampling = talk.engine._sampling(request(WORDS, REPLY_TOKENS))
        is_left_out = sampling.skip_special_tokens
        decoded = tokenizer.decode(tokenizer.encode(thought), skip_special_tokens=is_left_out)
        assert decoded == thought


def why_not(*words: str | Path) -> str:
    """The one line that says why an engine does not start."""
    with pytest.raises((StartError, UsageError)) as caught:
        asyncio.run(settings(*words).start())
    assert "\n" not in str(caught.value)
    return f"{caught.type.__name__} {caught.value}"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("engine.args.gpu_memory_utilisation=0.8",
         "UsageError .*; correct or remove engine.args.gpu_memory_utilisation$"),
        ("engine.args.dtype=float12", "StartError .*tiny cannot start: .*float12"),
        ("engine.context_tokens=65536",
         "UsageError .*tiny cannot start: .*65536.*; set engine.context_tokens to at most 32768"),
        ("engine.model=nobody/has-this",
         "UsageError engine.model=nobody/has-this cannot start: .*; set engine.model to a "
         "Hugging Face name or to a model's folder$"),
    ],
)  # fmt: skip
def test_what_vllm_refuses_is_named(
    model: Path, word: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert re.match(says, why_not(f"engine.model={model}", word))


def test_a_model_without_a_chat_template_needs_one(tmp_path: Path) -> None:
    make_tiny_model(tmp_path, hidden=128, layers=1, chat_template=None)
    why = why_not(f"engine.model={tmp_path}")
    assert why.startswith("UsageError")
    assert why.endswith("set engine.chat_template=FILE.jinja")


@pytest.mark.sampled
def test_too_little_memory_for_the_cache_says_what_to_lower(model: Path) -> None:
    """The error is raised in the engine's child process and reaches its parent by the log."""
    long = 2_000_000  # tokens of 2 KiB each, in a cache of 1 GiB
    why = why_not(
        f"engine.model={model}", f"engine.context_tokens={long}", "engine.args.dtype=float32",
        f"engine.args.hf_overrides.max_position_embeddings={long}",
    )  # fmt: skip
    assert why.startswith("UsageError")
    assert "KV cache" in why
    (fits,) = re.findall(r"; set engine.context_tokens to at most (\d+), or raise what the KV", why)
    # 4 layers of 2 heads with 64 numbers of 4 bytes, for keys and for values
    assert pytest.approx(int(fits), rel=0.01) == 2**30 // (4 * 2 * 64 * 4 * 2)
