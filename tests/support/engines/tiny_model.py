"""A small Llama with random weights, made on the spot: real for vLLM, and babble to a reader."""

import json
from pathlib import Path
from typing import Any

from tests.support.command import QMSUM

CONTEXT_TOKENS = 32768
THINKS = ("<think>", "</think>")
_SPECIAL = ("<|end|>", "<|user|>", "<|assistant|>")
_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>"
    "{% if thinking is defined %}{{ '<think>' if thinking else '<think></think>' }}{% endif %}"
    "{% endif %}"
)


def make_tiny_model(
    folder: Path, hidden: int = 256, layers: int = 4, chat_template: str | None = _TEMPLATE
) -> None:
    """Weights, tokenizer and chat template as Hugging Face keeps them; the same every time.

    The tokenizer's 4,000 tokens are trained on QMSum's words. `<think>` and `</think>` are tokens,
    and the template's `thinking` opens or skips the thinking, as reasoning models' templates do.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = make_tokenizer(folder, chat_template)
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


def make_tokenizer(folder: Path, chat_template: str | None = _TEMPLATE) -> Any:
    """The tokenizer alone, which needs no torch."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    plain = Tokenizer(models.BPE())
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4000,
        special_tokens=list(_SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    plain.train_from_iterator(meeting_texts(), trainer)
    plain.add_tokens([AddedToken(mark, special=False) for mark in THINKS])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, eos_token=_SPECIAL[0], pad_token=_SPECIAL[0]
    )
    tokenizer.chat_template = chat_template
    tokenizer.save_pretrained(folder)
    return tokenizer


def meeting_texts() -> list[str]:
    """What was said in ten meetings."""
    with QMSUM.open(encoding="utf-8") as lines:
        meetings = [json.loads(line) for line, _ in zip(lines, range(10), strict=False)]
    return [turn["content"] for meeting in meetings for turn in meeting["meeting_transcripts"]]
