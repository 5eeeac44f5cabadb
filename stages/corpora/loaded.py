"""What a loader yields, and the ids and rows every loader makes the same way."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pipeline.rows import Document, Question
from stages.corpora.checks import BadInputError, label_of, shown
from stages.corpora.corpus import Corpus
from stages.corpora.row import Row
from stages.text.paragraphs import paragraph_spans
from stages.text.words import num_words


@dataclass(frozen=True, slots=True)
class Loaded:
    """A document and its questions; every question's document_id is the document's.

    Questions for a document that is not there come with a Document of problem `bad_input`.
    """

    document: Document
    questions: tuple[Question, ...]


class MadeIds:
    """The ids of a corpus's documents or questions, each handed out once.

    A row that has none gets 8 hex of its content. The second that wants an id gets it with `-2`,
    but never an id that is `reserved`: given in the files, perhaps to a row still to come.
    """

    def __init__(self, reserved: Iterable[str | None] = ()) -> None:
        self._reserved = set(reserved)
        self._taken: set[str] = set()
        self._repeats: Counter[str] = Counter()

    def make(self, *content: Any) -> str:
        """The id for `content` (JSON values), which must be uncleaned, as it is in the file."""
        try:
            text = json.dumps(content, ensure_ascii=True, sort_keys=True, default=str)
        except RecursionError:  # the row is bad, but it needs an id
            text = "nested too deeply"
        return self.claim(hashlib.sha256(text.encode()).hexdigest()[:8])

    def claim(self, wanted: str) -> str:
        """`wanted`, or if that is taken `wanted-2` and so on."""
        made = wanted
        while made in self._taken or (made != wanted and made in self._reserved):
            self._repeats[wanted] += 1
            made = f"{wanted}-{self._repeats[wanted] + 1}"
        self._taken.add(made)
        return made

    def of_row(self, row: Row, key: str | None, *content: Any) -> tuple[str, str | None]:
        """The id the row gives under `key`, or a made one; and what is wrong with the row.

        `key` null: the format has no ids.
        """
        if row.value is None:
            return self.claim(row.made_id), row.wrong
        try:
            given = label_of(row.value, key) if key else None
        except BadInputError as wrong:
            return self.make(*content), str(wrong)
        if not given:
            return self.make(*content), None
        made = self.claim(given)
        repeated = f"`{key}` {shown(given)} is used twice; give it another or delete it"
        return made, None if made == given else repeated


def document_of(
    corpus: Corpus, document_id: str, text: str, title: str = "", metadata: str = "{}"
) -> Document:
    """The Document with its words and paragraphs counted. Raises BadInputError where none."""
    words = num_words(text)
    if not words:
        raise BadInputError("the text has no words; add it or delete the document")
    return Document(
        document_id=document_id,
        title=title,
        text=text,
        num_words=words,
        num_paragraphs=len(paragraph_spans(text, corpus.paragraphs)),
        metadata=metadata,
    )


def bad_document(document_id: str, detail: str) -> Document:
    """A document that cannot be read: problem bad_input."""
    return Document(document_id=document_id, problem="bad_input", detail=detail)


def unreadable(row: Row, ids: MadeIds) -> Loaded:
    """What a row that cannot be read at all comes to: a document, bad_input."""
    return Loaded(bad_document(ids.claim(row.made_id), row.detail(row.wrong)), ())


def bad_question(
    row: Row, document_id: str, question_id: str, wrong: BadInputError | str
) -> Question:
    """A question that cannot be asked: problem bad_input; its text is kept if it has one."""
    value = row.value or {}
    text = value.get("question", value.get("query"))
    return Question(
        document_id=document_id,
        question_id=question_id,
        question=text if isinstance(text, str) else "",
        problem="bad_input",
        detail=row.detail(wrong),
    )


def question_or_bad(
    row: Row,
    document_id: str,
    made: tuple[str, str | None],
    parse: Callable[[dict[str, Any], str], Question],
) -> Question:
    """What `parse` makes of the row and its id, or a Question of problem bad_input.

    `made` is the row's id and what is wrong with the row, see MadeIds.of_row.
    """
    question_id, wrong = made
    try:
        if wrong:
            raise BadInputError(wrong)
        return parse(row.value or {}, question_id)
    except BadInputError as error:
        return bad_question(row, document_id, question_id, error)
