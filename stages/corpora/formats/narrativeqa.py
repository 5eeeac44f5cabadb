"""NarrativeQA (google-deepmind/narrativeqa): documents.csv, qaps.csv, summaries.csv, the stories.

The csv files are in one folder; a story is <document_id>.content in its folder `tmp` or in another.
A document whose story is missing, or was not downloaded completely, is skipped with its questions.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.core.rows import Document
from stages.corpora.formats.stories import story
from stages.corpora.reading.corpus import (
    Address,
    FileCorpus,
    Loaded,
    document_or_bad,
    refuse_missing,
)
from stages.corpora.reading.corpus_row import BadInputError, Row, json_text, label_of, optional_text
from stages.corpora.reading.files import read_whole, rows_of
from stages.corpora.reading.ids import Ids
from stages.corpora.reading.questions import QuestionFile, Value

# The official script counts a file under 19 kB as a failed download; but shorter stories exist.
_SHORT_BYTES = 19_000
_MOJIBAKE = re.compile(r"[\xc2-\xf4][\x80-\xbf]{1,3}")  # UTF-8 that was read as Latin-1
_ABOUT = ("kind", "set", "story_url", "wiki_url")


class NarrativeQACorpus(FileCorpus):
    """`kind` also names the prompt family: books and film scripts have different prompts."""

    papers: ClassVar[tuple[str, ...]] = ("narrativeqa",)
    licences: ClassVar[Mapping[str, str]] = {
        "NarrativeQA": "Apache-2.0; the stories have their own (Project Gutenberg's)"
    }
    format: Literal["narrativeqa"]
    kind: Literal["gutenberg", "movie", "all"]
    stories: Address | None  # the folder of the stories; null: tmp, beside documents.csv

    splits: ClassVar[tuple[str, ...]] = ("train", "valid", "test")
    unhashed: ClassVar[frozenset[str]] = FileCorpus.unhashed | {"stories"}
    version: ClassVar[int] = 5

    def check(self) -> None:
        """Raise UsageError where the path or the folder of the stories is missing."""
        super().check()
        if self.stories is not None:
            refuse_missing(self.stories, "corpus.stories", "folder")

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per row of documents.csv that is of the kind and split.

        Raises UsageError where documents.csv or qaps.csv is missing or unreadable.
        """
        documents = list(rows_of([self._file("documents.csv")]))
        known = {row.given_id("document_id") for row in documents}
        chosen = [row for row in documents if self._is_chosen(row)]
        ids = {row.given_id("document_id") for row in chosen}
        asked = (_asked(row) for row in rows_of([self._file("qaps.csv")]))
        # A question about a document of another kind or split is left out without a message; about
        # a document that documents.csv does not have, it is bad input.
        questions = QuestionFile(
            row for row in asked if (i := row.given_id("document_id")) in ids or i not in known
        )
        summaries = self._summaries()
        document_ids = Ids()
        for row in chosen:
            found = document_ids.of_given(row, "document_id")
            document = document_or_bad(row, found, partial(self._document, summaries))
            taken = questions.take(document)
            yield Loaded(document, () if document.skipped else taken)
        yield from questions.take_rest(document_ids)

    def _file(self, name: str) -> UPath:
        file = self.path / name
        if not file.exists():
            raise UsageError(f"{self.path}: no {name} in this folder; set corpus.path=...")
        return file

    def _is_chosen(self, row: Row) -> bool:
        """True if the row is of the kind and split. True for an unreadable row, to report it."""
        value = row.value or {}
        kinds = {"all": (value.get("kind"),)}.get(self.kind, (self.kind,))
        sets = (self.split,) if self.split else (value.get("set"),)
        return row.value is None or (value.get("kind") in kinds and value.get("set") in sets)

    def _summaries(self) -> dict[str | None, str]:
        file = self.path / "summaries.csv"
        rows = rows_of([file]) if file.exists() else iter(())
        return {
            row.given_id("document_id"): _repaired(str((row.value or {}).get("summary") or ""))
            for row in rows
        }

    def _document(
        self, summaries: Mapping[str | None, str], value: Value, document_id: str
    ) -> Document:
        title = label_of(value, "wiki_title") or ""
        about: dict[str, Any] = {key: value.get(key) for key in _ABOUT}
        content = self._content(value, document_id)
        if content is None:
            return Document(
                document_id=document_id, title=title, metadata=json_text(about), skipped=True
            )
        start, end = (optional_text(value, key) or "" for key in ("story_start", "story_end"))
        found = story(content, start, end)
        about["cut_by"] = found.cut_by
        if summary := summaries.get(document_id):
            about["summary"] = summary
        document = self.document(document_id, found.text, title, json_text(about))
        note = f"{document_id}.content: {found.note}" if found.note else None
        return replace(document, detail=note)

    def _content(self, value: dict[str, Any], document_id: str) -> bytes | None:
        """The story's file; None where it is missing or clearly was not downloaded completely."""
        folder = self.stories or self.path / "tmp"
        try:
            content = read_whole(folder / f"{document_id}.content")
        except (FileNotFoundError, ValueError):  # an id may hold characters that a file name cannot
            return None
        except OSError as error:
            raise BadInputError(f"the story: {error.strerror}; fix it") from error
        size = value.get("story_file_size")
        expected = int(size) if isinstance(size, str) and size.isdecimal() else _SHORT_BYTES
        failed = len(content) < _SHORT_BYTES and len(content) < expected / 2
        return None if failed else content


def _asked(row: Row) -> Row:
    """A row of qaps.csv in the columns of question_file.py, without the tokenized copies."""
    if row.value is None:
        return row
    answers = [row.value.get(key) for key in ("answer1", "answer2")]
    question = row.value.get("question")
    value = {
        "document_id": row.value.get("document_id"),
        "question": _repaired(question) if isinstance(question, str) else question,
        "references": [_repaired(a) for a in answers if isinstance(a, str) and a.strip()],
    }
    return replace(row, value=value)


def _repaired(text: str) -> str:
    """`text` with mojibake decoded as it was meant, without white space around it."""
    return _MOJIBAKE.sub(_read_as_utf8, text).strip()


def _read_as_utf8(found: re.Match[str]) -> str:
    try:
        return found[0].encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return found[0]
