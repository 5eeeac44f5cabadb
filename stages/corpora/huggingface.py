"""A Hugging Face dataset by its id, at a pinned revision; rows are read as records.py reads them.

`corpus.path` is the id (or a folder that `datasets` can read). Needs the extra `huggingface`.
"""

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import NonNegativeInt

from pipeline.errors import UsageError
from stages.corpora.corpus import FileCorpus
from stages.corpora.grouped import load_grouped
from stages.corpora.loaded import Loaded
from stages.corpora.records import Fields, form_of, refuse_unnamed
from stages.corpora.row import Row


class HuggingFaceCorpus(FileCorpus):
    """`subset` is what a dataset of several configurations calls the one to read."""

    format: Literal["huggingface"]
    subset: str | None
    revision: str | None  # a commit: what a branch holds may change overnight
    fields: Fields
    first_option: NonNegativeInt

    def check(self) -> None:
        """Raises UsageError unless revision and split are set."""
        if self.revision is None and not self.path.is_dir():
            raise UsageError(
                f"corpus.revision is not set; pin a commit of {self.path}: corpus.revision=SHA"
            )
        if self.split is None:
            raise UsageError("corpus.split is not set; name the dataset's split")

    def load(self) -> Iterator[Loaded]:
        """One Loaded a document. Raises UsageError where the dataset cannot be had."""
        refuse_unnamed(self.fields, self._rows())
        return load_grouped(self, self._rows, form_of(self.fields, self.first_option))

    def _rows(self) -> Iterator[Row]:
        dataset = self._dataset()
        for number, value in enumerate(dataset, 1):
            yield Row(self.path, number, dict(value))

    def _dataset(self) -> Any:
        """Streamed, not stored."""
        try:
            from datasets import load_dataset
        except ImportError:
            raise UsageError(
                "corpus=huggingface needs datasets; pip install 'gistmill[huggingface]'"
            ) from None
        try:
            return load_dataset(
                str(self.path),
                self.subset,
                split=self.split,
                revision=self.revision,
                streaming=True,
            )
        except (OSError, ValueError, RuntimeError) as error:
            line = " ".join(str(error).split())
            raise UsageError(
                f"corpus.path={self.path}: no such dataset to be had: {line}"
            ) from None
