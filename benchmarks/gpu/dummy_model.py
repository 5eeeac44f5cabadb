"""A Llama-like model without weights (load_format=dummy), and a tokenizer that is trained here."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONTEXT_TOKENS = 32_768
THINKS = ("<think>", "</think>")
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>"
    "{% if thinking is defined %}{{ '<think>' if thinking else '<think></think>' }}{% endif %}"
    "{% endif %}"
)
_SPECIAL = ("<|end|>", "<|user|>", "<|assistant|>")
_VOCABULARY = 4000


@dataclass(frozen=True)
class Shape:
    """A decoder with grouped-query attention and gated MLPs."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int

    def weights(self, vocabulary: int) -> int:
        """The weights that a token is multiplied by: all except norms and the input embedding."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        return self.layers * (attention + 3 * self.hidden * self.intermediate) + (
            vocabulary * self.hidden
        )


# "8b" is Llama 3's: 7.0 billion weights with so small a vocabulary.
SHAPES = {
    "8b": Shape(4096, 14336, layers=32, heads=32, kv_heads=8, head_dim=128),
    "tiny": Shape(256, 512, layers=4, heads=4, kv_heads=2, head_dim=64),
}


def make_dummy_model(folder: Path, shape: Shape, texts: Iterable[str]) -> int:
    """Write config and tokenizer in Hugging Face's format; returns the vocabulary's size."""
    tokenizer = make_tokenizer(folder, texts)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "bfloat16",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 500_000.0,
        "max_position_embeddings": CONTEXT_TOKENS,
        "vocab_size": len(tokenizer),
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return len(tokenizer)


def make_tokenizer(folder: Path, texts: Iterable[str], chat_template: str | None = TEMPLATE) -> Any:
    """A byte-level BPE of 4,000 tokens trained on `texts`, plus `<think>` and `</think>`;
    deterministic. The template's `thinking` opens or skips the thinking, as reasoning models'
    do."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    plain = Tokenizer(models.BPE())
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY,
        special_tokens=list(_SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    plain.train_from_iterator(texts, trainer)
    plain.add_tokens([AddedToken(mark, special=False) for mark in THINKS])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, eos_token=_SPECIAL[0], pad_token=_SPECIAL[0]
    )
    tokenizer.chat_template = chat_template
    tokenizer.save_pretrained(folder)
    return tokenizer
