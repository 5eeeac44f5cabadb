"""Texts to unit vectors by a sentence-transformers model, loaded once per process when first used.

The only file that imports sentence_transformers. A thread of its own encodes, one request after
the other, so that the event loop keeps feeding the engine meanwhile.
"""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import PositiveInt

from pipeline.errors import StartError, UsageError
from pipeline.settings import Settings, sha

Vectors = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Kind = Literal["document", "query"]  # some models put another prompt before either

_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")  # of a model on Hugging Face
_MODEL_FILES = ("modules.json", "config.json")  # one of them is in every model's folder
_THREAD = ThreadPoolExecutor(1, thread_name_prefix="embedder")


class EmbedderSettings(Settings):
    """The `embedder` section. Only the model and `chunk_words` shape vectors and are hashed."""

    model: str | None  # a folder, or a name on Hugging Face; null: no method needs one
    chunk_words: PositiveInt  # long texts are embedded in pieces of so many words
    device: str  # cpu, cuda, cuda:1 ...
    batch_size: PositiveInt

    def refuse_unusable(self, method: str) -> None:
        """Raise UsageError where `method` cannot have its vectors, as far as can be told now."""
        if self.model is None:
            raise UsageError(
                f"embedder.model is not set, and {method} needs it; add embedder.model=FOLDER or "
                "the name of a sentence-transformers model"
            )
        folder, key = Path(self.model), f"embedder.model={self.model}"
        if not folder.is_dir() and not _NAME.fullmatch(self.model):
            raise UsageError(f"{key}: no such folder; name one that holds a model")
        if folder.is_dir() and not any((folder / name).is_file() for name in _MODEL_FILES):
            files = " and no ".join(_MODEL_FILES)
            raise UsageError(f"{key}: no {files} there; name a folder that holds a model")
        if find_spec("sentence_transformers") is None:
            raise UsageError(
                f"{key}: sentence-transformers is not installed; pip install 'gistmill[dense]'"
            )

    def identity(self) -> str:
        """What names the model in a step: its name, of a folder the hash of its files, so that
        one that was moved is the same; empty where there is none."""
        folder = Path(self.model or "")
        return _folder_sha(folder) if self.model and folder.is_dir() else self.model or ""

    def hashed(self) -> dict[str, Any]:
        """What shapes vectors, by the section's name; nothing where there is no model."""
        if self.model is None:
            return {}
        return {"embedder": {"model": self.identity(), "chunk_words": self.chunk_words}}

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """A vector of length 1 per text, in order; no texts, no rows.

        Raises StartError where the model cannot be loaded.
        """
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        return await asyncio.get_running_loop().run_in_executor(
            _THREAD, self._encode, list(texts), kind
        )

    def _encode(self, texts: list[str], kind: Kind) -> Vectors:
        assert self.model is not None, "refused before"
        model = _model(self.model, self.device)
        encode = model.encode_query if kind == "query" else model.encode_document
        return np.asarray(
            encode(
                texts,
                batch_size=self.batch_size,
                normalize_embeddings=True,
                show_progress_bar=False,
            ),
            dtype=np.float32,
        )


@lru_cache(maxsize=1)
def _model(name: str, device: str) -> Any:
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(name, device=device)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        why = " ".join(str(error).split())
        raise StartError(
            f"embedder.model={name} cannot be loaded on embedder.device={device} ({why}); name a "
            "folder or another model"
        ) from None


def _folder_sha(folder: Path) -> str:
    """A hash of the folder's files but for hidden ones, wherever it stands."""
    files = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    shown = sorted(path for path in files if not any(p.startswith(".") for p in path.parts))
    return sha([[path.as_posix(), _file_sha(folder / path)] for path in shown], 16)


def _file_sha(path: Path) -> str:
    return _sha_of(path, path.stat().st_mtime_ns)


@lru_cache  # a model may have gigabytes, and a command asks more than once
def _sha_of(path: Path, changed_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
