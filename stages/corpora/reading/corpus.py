"""The base classes of corpora, what they yield, and the check of what a plugin's corpus yields."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, get_args

from pydantic import BeforeValidator, Field, PlainSerializer, StrictInt
from upath import UPath

from pipeline.core.errors import CommandError, UsageError, contained
from pipeline.core.registry import Registry, file_of
from pipeline.core.rows import Document, Question, wrong_value
from pipeline.core.settings import Settings
from pipeline.files.storage import AnyPath, as_path, refuse_unreachable_path
from stages.corpora.reading.files import files_of, rows_of, split_of
from stages.corpora.reading.values import BadInputError, GivenId, Row, Value
from stages.text.encodings import without_c1
from stages.text.words import Paragraphs, num_words, paragraph_spans


@dataclass(frozen=True, slots=True)
class Loaded:
    """A document and its questions, which all have its id. `note`: the file's name, and which parts
    of a readable document could not be read. `is_named_only`: the corpus lacks this document; only
    questions with problem `bad_input` name it, and it does not count as input."""

    document: Document
    questions: tuple[Question, ...]
    note: str | None = None
    is_named_only: bool = False


FORMATS: "Registry[type[Corpus]]" = Registry("reads the format {!r}", "formats")


def _to_path(value: Any) -> UPath:
    if not isinstance(value, AnyPath):
        raise ValueError("Input should be a path")
    return as_path(value)


Address = Annotated[UPath, BeforeValidator(_to_path), PlainSerializer(str)]  # a path or URL


class Corpus(Settings):
    """Settings of a corpus; each format adds fields of its own. Default values: conf/corpus/."""

    format: str  # of a subclass that can be loaded: a Literal
    name: str
    paragraphs: Paragraphs
    family: str  # of prompts; hashed with the prompts
    seed: Annotated[StrictInt, Field(ge=0)]  # of the random draw that `sample` makes
    licence: str | None = None  # of the texts, where the format has none

    # Fields that locate the corpus or select rows: no part of the hash that names its steps.
    unhashed: ClassVar[frozenset[str]] = frozenset({"family", "seed", "licence"})
    version: ClassVar[int] = 4  # raise it where the format's files become other rows
    papers: ClassVar[tuple[str, ...]] = ()  # keys in papers.bib, of the dataset's own papers
    licences: ClassVar[Mapping[str, str]] = {}  # by a dataset's name, as its authors state it
    page_breaks: ClassVar[bool] = False  # whether a form feed in the text ends a page

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        for name in get_args(cls.model_fields["format"].annotation):
            FORMATS.add(name, cls)

    def hashed(self) -> Mapping[str, Any]:
        """The settings that change the content of rows; hashed into the steps' names."""
        return self.model_dump(mode="json", exclude={*self.unhashed})

    def selection(self) -> Mapping[str, Any]:
        """The settings that select the corpus and its rows; hashed into the run's name."""
        return self.model_dump(mode="json", include={*self.unhashed - {"family", "licence"}})

    def licences_by_name(self) -> Mapping[str, str]:
        return self.licences if self.licence is None else {self.name: self.licence}

    def check(self) -> None:
        """Raise UsageError for settings that cannot work. Reads no rows."""

    @abstractmethod
    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per document. Raises UsageError, on the first `next`, where the corpus
        has nothing of this format."""

    def document(
        self, document_id: str, text: str, title: str = "", metadata: str = "{}"
    ) -> Document:
        """A Document with its words and paragraphs counted, and C1 control characters replaced by
        Windows-1252's. Raises BadInputError where the text has no words."""
        text = without_c1(text)
        if not (words := num_words(text)):
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
    split: str | None  # null: all splits
    unhashed: ClassVar[frozenset[str]] = Corpus.unhashed | {"path", "split"}
    splits: ClassVar[tuple[str, ...]] = ()  # empty: the format has no splits
    files: ClassVar[tuple[str, ...]] = ("*.jsonl",)  # patterns of a folder's

    def rows(self) -> Iterator[Row]:
        return rows_of(files_of(split_of(self.path, self.split, "jsonl"), *self.files))

    def check(self) -> None:
        """Raise UsageError where the path is missing or the format has no such split."""
        refuse_missing(self.path, "corpus.path")
        if self.split is not None and self.split not in self.splits:
            legal = f"one of {', '.join(self.splits)}" if self.splits else "null"
            raise UsageError(f"corpus.split={self.split}: format {self.format} takes {legal}")


def refuse_missing(path: UPath, key: str, kind: str = "file or folder") -> None:
    with refuse_unreachable_path(path, key):
        is_there = path.is_dir() if kind == "folder" else path.exists()
    if not is_there:
        raise UsageError(f"{path}: no such {kind}; set {key}=...")


def bad_document(document_id: str, detail: str) -> Document:
    return Document(document_id=document_id, problem="bad_input", detail=detail)


def document_or_bad(row: Row, given: GivenId, make: Callable[[Value, str], Document]) -> Document:
    """The Document that `make` returns for the row's value and id. Problem: bad_input, where the
    row has no id or `make` raises BadInputError."""
    document_id, wrong = given
    if wrong:
        return bad_document(document_id, row.detail(wrong))
    try:
        document = make(row.value or {}, document_id)
    except BadInputError as error:
        return bad_document(document_id, row.detail(error))
    return replace(document, detail=document.detail or row.note)


def plugin_documents(corpus: Corpus) -> Iterator[Loaded]:
    """Yield what a plugin's `load` yields. Raises UsageError, which names the plugin's file, for
    any error in it, for items of the wrong type and for repeated ids."""
    where, ids = f"{file_of(type(corpus))}: {type(corpus).__name__}.load", set[str]()
    with contained(CommandError) as raised:
        for number, loaded in enumerate(corpus.load()):
            if why := _wrong(loaded, ids):
                raise UsageError(f"{where}: item {number}: {why}; fix it")
            text = without_c1(loaded.document.text)
            yield replace(loaded, document=replace(loaded.document, text=text))
    if raised.error:
        raise UsageError(f"{where}: {raised.line()}; fix it, or what it reads")


def _wrong(loaded: Any, ids: set[str]) -> str | None:
    """Why an item cannot be used, or None. Adds its ids to `ids`."""
    if type(loaded) is not Loaded or not isinstance(loaded.questions, tuple):
        return f"{type(loaded).__name__}, not Loaded(document, (question, ...))"
    document, questions = loaded.document, loaded.questions
    if why := wrong_value(Document, [document]) or wrong_value(Question, questions):
        return why
    names = [f"document {document.document_id!r}"]
    for question in questions:
        names.append(f"question {question.question_id!r}")
        if question.document_id != document.document_id:
            return f"{names[-1]}: its document_id is not the document's"
    for name in names:
        if name in ids:
            return f"another {name} came before"
        ids.add(name)
    return None
