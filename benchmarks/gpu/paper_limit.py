"""Tokens per second that a card cannot exceed, by its data sheet."""

import subprocess
from dataclasses import dataclass

from pipeline.core.errors import UsageError

_BYTES = 2  # of a weight in bfloat16


@dataclass(frozen=True)
class Card:
    """Dense bfloat16 TFLOP/s and GB/s of memory, without sparsity."""

    name: str
    tflops: float
    gb_per_second: float


# NVIDIA's data sheets. The first one matches whose words are all in the card's name.
_CARDS = (
    Card("H200", 989, 4800),
    Card("H100 PCIe", 756, 2000),
    Card("H100 NVL", 835, 3900),
    Card("H100", 989, 3350),
    Card("A100 PCIe 80GB", 312, 1935),
    Card("A100 80GB", 312, 2039),
    Card("A100", 312, 1555),
    Card("L40S", 362, 864),
    Card("L4", 121, 300),
)


def name_of_gpu() -> str:
    """The first GPU as nvidia-smi names it. Raises UsageError where there is none."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        raise UsageError(
            "no GPU here: nvidia-smi names none; --cpu --shape tiny measures vLLM's CPU build"
        ) from None
    return done.stdout.strip().partition("\n")[0]


def card_named(name: str) -> Card | None:
    words = set(name.lower().replace("-", " ").replace("nvidia", "").split())
    for card in _CARDS:
        if set(card.name.lower().split()) <= words:
            return card
    return None


def prefill_limit(card: Card, weights: int) -> float:
    """Prompt tokens per second: two operations per weight and token, attention not counted."""
    return card.tflops * 1e12 / (2 * weights)


def decode_limit(card: Card, weights: int, sequences: int) -> float:
    """Reply tokens per second: each step reads every weight once for all sequences, and computes
    as much per token as for a prompt. The KV cache is not counted."""
    steps = card.gb_per_second * 1e9 / (_BYTES * weights)
    return min(sequences * steps, prefill_limit(card, weights))
