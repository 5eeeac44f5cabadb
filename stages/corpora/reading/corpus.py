"""The `corpus` section of the configuration: settings that all corpus formats share."""

import typing
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, get_args

from pydantic import BeforeValidator, Field, PlainSerializer, StrictInt
from pydantic.fields import FieldInfo
from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.core.registry import Registry
from pipeline.core.rows import Document
from pipeline.core.settings import Settings
from pipeline.files.named_paths import refuse_unreachable_path
from pipeline.files.place import AnyPath, as_path
from stages.corpora.reading.corpus_files import files_of, rows_of, split_of
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.loaded import Loaded
from stages.corpora.reading.opening import refuse_no_file
from stages.corpora.reading.row_checks import BadInputError
from stages.text.encodings import without_c1
from stages.text.words import Paragraphs, num_words, paragraph_spans

FORMATS: "Registry[type[Corpus]]" = Registry("reads the format {!r}", "formats")


@dataclass(frozen=True, slots=True)
class Unhashed:
    """Marks a field that locates the corpus or selects rows, but does not change their content.

    Its value is left out of the hash that names the `documents` and `questions` steps.
    """


def _to_path(value: Any) -> UPath:
    if not isinstance(value, AnyPath):
        raise ValueError("Input should be a path")
    return as_path(value)


# A path or URL. No field of this type, optional or not, is hashed.
Address = Annotated[UPath, BeforeValidator(_to_path), PlainSerializer(str), Unhashed()]


class Corpus(Settings):
    """Settings of a corpus; each format adds fields of its own. Default values: conf/corpus/.

    A format is found by its name in `FORMATS` once its module is imported.
    """

    format: str  # of a subclass that can be loaded: a Literal
    name: str
    paragraphs: Paragraphs
    family: Annotated[str, Unhashed()]  # of prompts; hashed with the prompts
    seed: Annotated[StrictInt, Field(ge=0), Unhashed()]  # of the random draw that `sample` makes
    licence: Annotated[str | None, Unhashed()] = None  # of the texts, where the format has none

    version: ClassVar[int] = 4  # raise where what a file of the format becomes changes
    papers: ClassVar[tuple[str, ...]] = ()  # keys in papers.bib, of the dataset's own
    licences: ClassVar[Mapping[str, str]] = {}  # as the authors of a dataset state it, by its name
    page_breaks: ClassVar[bool] = False  # whether a form feed in the text ends a page

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        for name in get_args(cls.model_fields["format"].annotation):
            FORMATS.add(name, cls)

    def hashed(self) -> Mapping[str, Any]:
        """The settings that change the content of rows; hashed into the steps' names."""
        return self.model_dump(mode="json", exclude=self._unhashed())

    def selection(self) -> Mapping[str, Any]:
        """The settings that select the corpus and its rows; hashed into the run's name."""
        return self.model_dump(mode="json", include=self._unhashed() - {"family", "licence"})

    def licences_by_name(self) -> Mapping[str, str]:
        """The licences of the data: the one that is given for this corpus, else the format's."""
        return self.licences if self.licence is None else {self.name: self.licence}

    @classmethod
    def _unhashed(cls) -> set[str]:
        return {name for name, field in cls.model_fields.items() if _is_unhashed(field)}

    def check(self) -> None:
        """Raise UsageError for settings that cannot work, before anything is read."""
        return

    @abstractmethod
    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per document.

        Raises UsageError, on the first `next`, where there is nothing of this format.
        """

    def document(
        self, document_id: str, text: str, title: str = "", metadata: str = "{}"
    ) -> Document:
        """Make a Document, without control characters C1, and count its words and paragraphs.

        Raises BadInputError where the text has no words.
        """
        text = without_c1(text)
        words = num_words(text)
        if not words:
            raise BadInputError("the text has no words; add it or delete the document")
        return Document(
            document_id=document_id,
            title=title,
            text=text,
            num_words=words,
            num_paragraphs=len(paragraph_spans(text, self.paragraphs)),
            metadata=metadata,
        )


class FileCorpus(Corpus):
    """A corpus that is read from files."""

    path: Address  # a file or a folder, see the format's module
    split: Annotated[str | None, Unhashed()]  # null: all splits

    splits: ClassVar[tuple[str, ...]] = ()  # empty: the format has no splits
    files: ClassVar[tuple[str, ...]] = ("*.jsonl",)  # patterns of a folder's

    def rows(self) -> Iterator[Row]:
        """The rows of the file, or of the folder's files, in order. Raises UsageError."""
        return rows_of(files_of(split_of(self.path, self.split, "jsonl"), *self.files))

    def check(self) -> None:
        """Raise UsageError where the path is missing or the format has no such split."""
        refuse_missing(self.path, "corpus.path")
        if not self.path.is_dir():
            refuse_no_file(self.path, "set corpus.path=...")
        if self.split is not None and self.split not in self.splits:
            legal = f"one of {', '.join(self.splits)}" if self.splits else "null"
            raise UsageError(f"corpus.split={self.split}: format {self.format} takes {legal}")


def refuse_missing(path: UPath, key: str, kind: str = "file or folder") -> None:
    """Raise UsageError where there is no such file or folder, or not of that kind."""
    with refuse_unreachable_path(path, key):
        is_there = {"file": path.is_file, "folder": path.is_dir}.get(kind, path.exists)()
    if not is_there:
        raise UsageError(f"{path}: no such {kind}; set {key}=...")


def _is_unhashed(field: FieldInfo) -> bool:
    """True if the field is marked, itself or within its type (`Address | None`)."""
    return any(isinstance(mark, Unhashed) for mark in [*field.metadata, *_marks(field.annotation)])


def _marks(annotation: Any) -> Iterator[Any]:
    """The Annotated metadata of a type and of its type arguments."""
    yield from getattr(annotation, "__metadata__", ())
    for inner in typing.get_args(annotation):
        yield from _marks(inner)
