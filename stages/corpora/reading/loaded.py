"""The items that loaders yield: a document with its questions; and rows for unreadable input."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pipeline.core.rows import Document, Question
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.row_checks import BadInputError
from stages.text.words import LONGEST_WORD, is_without_spaces


@dataclass(frozen=True, slots=True)
class Loaded:
    """A document and its questions; the document_id of every question is the document's.

    `note`: what of a document that can be read could not be, after the file's name.
    `is_named_only`: the corpus does not have the document, which questions of problem `bad_input`
    name; it is no input.
    """

    document: Document
    questions: tuple[Question, ...]
    note: str | None = None
    is_named_only: bool = False


def bad_document(document_id: str, detail: str) -> Document:
    """Make a Document with problem `bad_input`, for input that cannot be read."""
    return Document(document_id=document_id, problem="bad_input", detail=detail)


def document_or_bad(
    row: Row, found: tuple[str, str | None], make: Callable[[dict[str, Any], str], Document]
) -> Document:
    """Make the row's Document of its value and id, or one with problem `bad_input`.

    `found`: its id and the reason why it is bad input, as Ids returns them.
    """
    document_id, wrong = found
    try:
        if wrong:
            raise BadInputError(wrong)
        document = make(row.value or {}, document_id)
        return replace(document, detail=document.detail or row.note)
    except BadInputError as error:
        return bad_document(document_id, row.detail(error))


def bad_question(
    row: Row, document_id: str, question_id: str, wrong: BadInputError | str
) -> Question:
    """Make a Question with problem `bad_input` for a row that cannot be used; keeps its text."""
    value = row.value or {}
    text = value.get("question", value.get("query"))
    return Question(
        document_id=document_id,
        question_id=question_id,
        question=text if isinstance(text, str) else "",
        problem="bad_input",
        detail=row.detail(wrong),
    )


def without_spaces(document: Document) -> str | None:
    """Why pages of the document end between characters; None where they end between words."""
    if not is_without_spaces(document.text):
        return None
    why = f"over {LONGEST_WORD:,} characters without white space; pages end between them"
    return f"{document.document_id}: {why}"
