"""The `corpus` section of the configuration."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, PlainSerializer, StrictInt
from upath import UPath

from pipeline.errors import UsageError
from pipeline.place import AnyPath, place, reaching
from pipeline.settings import Settings
from stages.text.paragraphs import Paragraphs

if TYPE_CHECKING:
    from stages.corpora.loaded import Loaded

# Where a corpus lies and which of it is read. All other keys say how, and name the steps.
_WHERE = {"path", "split", "family", "seed"}


def _placed(value: Any) -> UPath:
    if not isinstance(value, AnyPath):
        raise ValueError("Input should be a path")
    return place(value)


Address = Annotated[UPath, BeforeValidator(_placed), PlainSerializer(str)]


class Corpus(Settings):
    """How a corpus is read; every format adds what it has of its own. Values: conf/corpus/."""

    format: str
    name: str
    paragraphs: Paragraphs
    family: str  # of prompts
    seed: StrictInt  # that `sample` draws with

    page_breaks: ClassVar[bool] = False  # a form feed ends a page

    def hashed(self) -> Mapping[str, Any]:
        """What shapes the rows."""
        return self.model_dump(mode="json", exclude=_WHERE)

    def selection(self) -> Mapping[str, Any]:
        """Which rows of which corpus."""
        return self.model_dump(mode="json", include=_WHERE - {"family"})

    def check(self) -> None:
        """Raise UsageError where it is plain before any reading that there is no such corpus."""
        return

    @abstractmethod
    def load(self) -> "Iterator[Loaded]":
        """One Loaded a document. Raises UsageError, on the first `next`, where there is nothing of
        this format."""


class FileCorpus(Corpus):
    """A corpus of files."""

    path: Address  # a file or a folder, see the format's loader
    split: str | None  # null: all there is

    splits: ClassVar[tuple[str, ...]] = ()  # none: the format has no splits

    def check(self) -> None:
        """Raise UsageError where the path is missing or there is no such split."""
        with reaching(self.path, "corpus.path"):
            exists = self.path.exists()
        if not exists:
            raise UsageError(f"{self.path}: no such file or folder; set corpus.path=...")
        if self.split is not None and self.split not in self.splits:
            legal = f"one of {', '.join(self.splits)}" if self.splits else "null"
            raise UsageError(f"corpus.split={self.split}: format {self.format} wants {legal}")
