"""A small Llama with random weights, made on the spot: real for vLLM, and babble to a reader."""

import json
from pathlib import Path
from typing import Any

from benchmarks.gpu import dummy_model
from benchmarks.gpu.dummy_model import CONTEXT_TOKENS, TEMPLATE
from tests.support.command import QMSUM


def make_tiny_model(
    folder: Path,
    hidden: int = 256,
    layers: int = 4,
    chat_template: str | None = TEMPLATE,
    tokenizer: Any = None,
) -> None:
    """Weights, tokenizer and chat template, always the same. By default 4,000 tokens are trained on
    QMSum's words; the template's `thinking` opens or skips `<think>`, which is a token."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    if tokenizer is None:
        tokenizer = make_tokenizer(folder, chat_template)
    else:
        tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        num_key_value_heads=hidden // 128,
        head_dim=64,
        max_position_embeddings=CONTEXT_TOKENS,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


def make_tokenizer(folder: Path, chat_template: str | None = TEMPLATE) -> Any:
    """The tokenizer alone, which needs no torch."""
    return dummy_model.make_tokenizer(folder, meeting_texts(), chat_template)


def meeting_texts() -> list[str]:
    """What was said in ten meetings."""
    with QMSUM.open(encoding="utf-8") as lines:
        meetings = [json.loads(line) for line, _ in zip(lines, range(10), strict=False)]
    return [turn["content"] for meeting in meetings for turn in meeting["meeting_transcripts"]]
