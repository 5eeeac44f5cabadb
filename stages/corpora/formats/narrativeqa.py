"""NarrativeQA (google-deepmind/narrativeqa): documents.csv, qaps.csv and the stories.

The csv files are in one folder; a story is <document_id>.content in its folder `tmp` or in another.
A document whose story is missing, or was not downloaded completely, is skipped with its questions.
A story is cut out of its file, which is text or HTML.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from pipeline.core.rows import Document
from stages.corpora.reading import values
from stages.corpora.reading.corpus import (
    Address,
    FileCorpus,
    Loaded,
    document_or_bad,
    refuse_missing,
)
from stages.corpora.reading.files import decoded_text, read_whole, rows_of
from stages.corpora.reading.questions import QuestionFile
from stages.corpora.reading.values import BadInputError, Ids, Row, Value
from stages.text.article_text import article_text

_IS_PAGE = re.compile(r"\s*(?:<!--.*?-->\s*)*<(?:!doctype|html|head|body|pre|p|b|table|center)\b",
                      re.IGNORECASE | re.DOTALL)  # fmt: skip
# "Project Gutenberg" in the languages of its books, and what may stand before it in a line that
# begins or ends one: up to 60 characters of the same paragraph.
_GUTENBERG = r"\bPro[jgy]e[ckt]+o?s?[\s-]+Gutenberg"
_BEFORE = rf"(?:[^*\n]|\n(?![ \t]*\n)){{0,60}}?{_GUTENBERG}"
# The lines that end Project Gutenberg's head; a long title is wrapped, up to the closing stars.
_START = re.compile(
    rf"^[ \t*_]*(?:start|beginning|beginn?|anfang|d[ée]but|comienzo|in[ií][czg]io)\b{_BEFORE}"
    r"(?:(?:[^*\n]*\n(?![ \t]*\n)){0,4}?[^*\n]*\*{3}[^\n]*|[^\n]*)(?:\n|\Z)"
    r"|^\*+ ?END\*{0,2} ?THE SMALL PRINT[^\n]*(?:\n[^\n]*\*END\*[^\n]*)?\n"
    r'|^\["?Small Print"? V\.[^\n]*\n'
    rf"|^[ \t]*(?:To contact|Go to) {_GUTENBERG} (?:of )?Australia[^\n]*\n(?:[ \t]*http[^\n]*\n)?"
    r"|^[^\n]*\bgutenberg(?:2000|\.spiegel)\.de/? erreichbar[^\n]*\n",
    re.MULTILINE | re.IGNORECASE,
)
_MOST_OF_HEAD = 20_000  # characters from the first of these lines to the last: of a head in a head
_END = re.compile(
    rf"^[ \t*_]*(?:(?:this is )?the |here )?(?:ends?|ende|einde|fin|fine|fim)\b{_BEFORE}"
    r"|^[ \t*_]*End(?:e dieses| of (?:this|the)) (?:COPYRIGHTED )?E-?(?:text|book)"
    r"|^\*+This is a COPYRIGHTED Project Gutenberg"
    r"|^\*+ ?START: FULL LICENSE|^\*+START\*+ ?THE SMALL PRINT"
    r"|^[ \t]*Updated editions will replace the previous one"
    rf"|^[ \t]*(?:This site is full of FREE ebooks\b|{_GUTENBERG} (?:of )?Australia[ \t]*$)",
    re.MULTILINE | re.IGNORECASE,
)
# Remains of a head or licence. Credits to volunteers are not: printed books have them, too.
_LEFT = re.compile(
    rf"(?<!for ){_GUTENBERG}(?!\S*\s+(?:online|distributed|proofread|team|volunteer|also has))"
    r"|for the use of anyone anywhere|THE SMALL PRINT!",
    re.IGNORECASE,
)
_NOT_CUT = "Project Gutenberg's head or licence is left in the text; cut it from the file"
_EDGE_CHARS = 3000  # at the beginning and the end of a story, where that would stand
# A cut must leave at least this share of the words: if it leaves less, the marker also occurs in
# the story. Project Gutenberg's licence makes up half of a short book.
_MIN_SHARE_OF_BOOK, _MIN_SHARE_BETWEEN = 0.1, 0.5
# The official script counts a file under 19 kB as a failed download; but shorter stories exist.
_SHORT_BYTES = 19_000
_MOJIBAKE = re.compile(r"[\xc2-\xf4][\x80-\xbf]{1,3}")  # UTF-8 that was read as Latin-1
_ABOUT = ("kind", "set", "story_url", "wiki_url")


@dataclass(frozen=True, slots=True)
class Story:
    """`cut_by`: gutenberg, markers or nothing, and `_in_part` where some of Project Gutenberg's
    head or licence is left. `note`: doubts about the text."""

    text: str
    cut_by: str
    note: str | None


def story(content: bytes, start: str, end: str) -> Story:
    """The story in a file. `start` and `end` are the story_start and story_end of documents.csv:
    its first and last tokens. In books of Project Gutenberg they include the licence, so the lines
    with which Gutenberg frames a book are tried first."""
    decoded = decoded_text(content)
    is_page = _IS_PAGE.match(decoded.text[:10_000])
    whole = article_text(decoded.text) if is_page else decoded.text
    text, cut_by = _by_gutenberg(whole), "gutenberg"
    if text is None:
        text, cut_by = _by_markers(whole, start, end), "markers"
    if text is None:
        text, cut_by = whole, "nothing"
    if not any(map(_LEFT.search, (text[:_EDGE_CHARS], text[-_EDGE_CHARS:]))):
        return Story(text, cut_by, decoded.note)
    note = f"{decoded.note}; {_NOT_CUT}" if decoded.note else _NOT_CUT
    return Story(text, cut_by if text is whole else f"{cut_by}_in_part", note)


def _by_gutenberg(text: str) -> str | None:
    first = _START.search(text)
    last = _END.search(text, first.end() if first else len(text) // 2)
    start, end = first.end() if first else 0, last.start() if last else len(text)
    if first:
        for head in _START.finditer(text, start, min(end, start + _MOST_OF_HEAD)):
            start = head.end()
    return _cut(text, start, end, _MIN_SHARE_OF_BOOK) if first or last else None


def _by_markers(text: str, start: str, end: str) -> str | None:
    """The text from the first `start` to the last `end`, with or without white space between
    their tokens."""
    patterns = (r"\s*".join(map(re.escape, marker.split())) for marker in (start, end))
    firsts, lasts = ([*re.finditer(pattern, text)] if pattern else [] for pattern in patterns)
    if not firsts and not lasts:
        return None
    start_char = firsts[0].start() if firsts else 0
    end_char = lasts[-1].end() if lasts else len(text)
    return _cut(text, start_char, end_char, _MIN_SHARE_BETWEEN)


def _cut(text: str, start: int, end: int, least: float) -> str | None:
    between = text[start:end].strip()
    return between if len(between.split()) >= least * len(text.split()) else None


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
        super().check()
        if self.stories is not None:
            refuse_missing(self.stories, "corpus.stories", "folder")

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per row of documents.csv that is of the kind and split."""
        documents = list(rows_of([self.path / "documents.csv"]))
        all_ids = {row.given_id("document_id") for row in documents}
        chosen = [
            row
            for row in documents
            if row.value is None  # such a row is reported below
            or (
                self.kind in ("all", row.value.get("kind"))
                and self.split in (None, row.value.get("set"))
            )
        ]
        ids = {row.given_id("document_id") for row in chosen}
        pairs = map(_question_row, rows_of([self.path / "qaps.csv"]))
        # A question about a document of another kind or split is left out without a message; about
        # a document that documents.csv does not have, it is bad input.
        questions = QuestionFile(
            row for row in pairs if (i := row.given_id("document_id")) in ids or i not in all_ids
        )
        document_ids = Ids()
        for row in chosen:
            given = document_ids.of_given(row, "document_id")
            document = document_or_bad(row, given, self._document)
            taken = questions.take(document)
            yield Loaded(document, () if document.skipped else taken)
        yield from questions.take_rest(document_ids)

    def _document(self, value: Value, document_id: str) -> Document:
        title = values.label_of(value, "wiki_title") or ""
        about: dict[str, Any] = {key: value.get(key) for key in _ABOUT}
        content = self._content(value, document_id)
        if content is None:
            metadata = values.json_text(about)
            return Document(document_id=document_id, title=title, metadata=metadata, skipped=True)
        start, end = (
            values.optional_text(value, key) or "" for key in ("story_start", "story_end")
        )
        cut = story(content, start, end)
        about["cut_by"] = cut.cut_by
        document = self.document(document_id, cut.text, title, values.json_text(about))
        return replace(document, detail=cut.note and f"{document_id}.content: {cut.note}")

    def _content(self, value: Value, document_id: str) -> bytes | None:
        """The story's file; None where it is missing or clearly incomplete."""
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


def _question_row(row: Row) -> Row:
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
    """The text with mojibake decoded, stripped of white space."""

    def as_utf_8(wrong: re.Match[str]) -> str:
        try:
            return wrong[0].encode("latin-1").decode("utf-8")
        except UnicodeDecodeError:
            return wrong[0]

    return _MOJIBAKE.sub(as_utf_8, text).strip()
