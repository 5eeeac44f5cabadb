"""Embed texts as unit vectors by a sentence-transformers model, in a thread of its own, one request
at a time. The only file that imports sentence_transformers."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.util import find_spec
from itertools import islice
from typing import Any, Literal

import numpy as np
from pydantic import PositiveInt

from pipeline.core.errors import StartError, UsageError
from pipeline.core.settings import Settings, sha
from pipeline.engines.vllm.vllm_settings import local_model
from pipeline.files.model_hash import content_hash

Vectors = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Kind = Literal["document", "query"]  # some models have a prompt of their own for either

# The latest vectors, as documents share texts: chat histories have the same sessions. At 768
# dimensions they take 300 MB.
_VECTORS: dict[str, np.ndarray[Any, Any]] = {}
_MOST_VECTORS = 100_000
_THREAD = ThreadPoolExecutor(1, thread_name_prefix="embedder")


class EmbedderSettings(Settings):
    """The `embedder` section. `model` and `chunk_words` are hashed, as they change the vectors."""

    model: str | None  # a folder, or a Hugging Face name; null: none, if no method needs one
    # A long text is embedded in pieces of this many words; null: whole.
    chunk_words: PositiveInt | None
    device: str  # cpu, cuda, cuda:1 ...
    batch_size: PositiveInt

    def refuse_unusable(self, method: str) -> None:
        """Raise UsageError if the vectors that `method` needs cannot be made here."""
        if self.model is None:
            raise UsageError(
                f"embedder.model is not set, and {method} needs it; add embedder.model=FOLDER or "
                "the name of a sentence-transformers model"
            )
        if find_spec("sentence_transformers") is None:
            fix = "sentence-transformers is not installed; pip install sentence-transformers"
            raise UsageError(f"embedder.model={self.model}: {fix}")

    def identity(self) -> str:
        """The model in a step's hash: the hash of a folder's content, as a moved folder is the same
        model, or a Hugging Face name; "" without a model. Raises UsageError."""
        if not self.model:
            return ""
        folder = local_model("embedder.model", self.model, "modules.json", "config.json")
        return content_hash(folder) if folder else self.model

    def hashed(self) -> dict[str, Any]:
        """The settings that change vectors, under the section's name; {} without a model."""
        if self.model is None:
            return {}
        return {"embedder": {"model": self.identity(), "chunk_words": self.chunk_words}}

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """One vector of length 1 per text, in order: float32 of shape (texts, dimensions), (0, 0)
        without texts. Raises StartError where the model cannot be loaded."""
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        return await asyncio.get_running_loop().run_in_executor(
            _THREAD, self._vectors, list(texts), kind
        )

    def _vectors(self, texts: list[str], kind: Kind) -> Vectors:
        """The vectors of the texts; recent ones come from this process's cache."""
        names = [sha([self.model, kind, text], 32) for text in texts]
        missing = {
            name: text for name, text in zip(names, texts, strict=True) if name not in _VECTORS
        }
        if missing:
            vectors = self._encode(list(missing.values()), kind)
            _VECTORS.update(zip(missing, vectors, strict=True))
        joined = np.stack([_VECTORS[name] for name in names])
        for name in list(islice(_VECTORS, max(0, len(_VECTORS) - _MOST_VECTORS))):  # the oldest
            del _VECTORS[name]
        return joined

    def _encode(self, texts: list[str], kind: Kind) -> Vectors:
        model = _model(str(self.model), self.device)
        encode = model.encode_query if kind == "query" else model.encode_document
        vectors = encode(
            texts, batch_size=self.batch_size, normalize_embeddings=True, show_progress_bar=False
        )
        return np.asarray(vectors, dtype=np.float32)


@lru_cache(maxsize=1)
def _model(name: str, device: str) -> Any:
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(name, device=device)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        why = " ".join(str(error).split())
        raise StartError(
            f"embedder.model={name} cannot be loaded on embedder.device={device} ({why}); change "
            "one of them"
        ) from None
