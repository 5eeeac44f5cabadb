"""A dataset of the Hugging Face Hub at a pinned revision; columns are mapped by `corpus.fields`.

`corpus.path` is the dataset's id, or a folder that `datasets` can read. Needs the extra
`huggingface`.
"""

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import NonNegativeInt

from pipeline.core.errors import UsageError
from stages.corpora.own.own_rows import Fields, layout_of, refuse_unnamed
from stages.corpora.reading.corpus import FileCorpus
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.grouped import load_grouped
from stages.corpora.reading.loaded import Loaded
from stages.corpora.reading.row_checks import without_nan


class HuggingFaceCorpus(FileCorpus):
    """`subset`: the name of the configuration, for a dataset that has several."""

    format: Literal["huggingface"]
    subset: str | None
    revision: str | None  # a commit, since the content of a branch changes
    fields: Fields
    first_option: NonNegativeInt

    def check(self) -> None:
        """Raise UsageError unless revision and split are set."""
        if self.revision is None and not self.path.is_dir():
            raise UsageError(
                f"corpus.revision is not set; pin a commit of {self.path}: corpus.revision=SHA"
            )
        if self.split is None:
            raise UsageError("corpus.split is not set; name the dataset's split")

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per document. Raises UsageError where the dataset cannot be loaded."""
        refuse_unnamed(self.fields, self.rows())
        return load_grouped(self, layout_of(self.fields, self.first_option))

    def rows(self) -> Iterator[Row]:
        rows = (without_nan(dict(value)) for value in self._dataset())
        found = (Row(self.path, number, value) for number, value in enumerate(rows, 1))
        return self.fields.with_paths(found)

    def _dataset(self) -> Any:
        """The dataset, streamed and not stored on disk."""
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
                f"corpus.path={self.path}: the dataset cannot be loaded: {line}"
            ) from None
