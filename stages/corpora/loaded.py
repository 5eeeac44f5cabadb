"""One document with its questions, as every loader yields it, and the rows for unreadable input."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipeline.rows import Document, Question
from stages.corpora.checks import BadInputError
from stages.corpora.ids import Ids
from stages.corpora.row import Row


@dataclass(frozen=True, slots=True)
class Loaded:
    """A document and its questions; the document_id of every question is the document's.

    Questions about a document that does not exist come with a Document of problem `bad_input`.
    """

    document: Document
    questions: tuple[Question, ...]


def bad_document(document_id: str, detail: str) -> Document:
    """Make the Document for input that cannot be read: problem bad_input."""
    return Document(document_id=document_id, problem="bad_input", detail=detail)


def unreadable(row: Row, ids: Ids) -> Loaded:
    """Make the bad_input document for a row that is not a JSON object."""
    return Loaded(bad_document(ids.of_place(row), row.detail(row.wrong)), ())


def bad_question(
    row: Row, document_id: str, question_id: str, wrong: BadInputError | str
) -> Question:
    """Make the Question for a row that cannot be asked: problem bad_input; its text is kept."""
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
    found: tuple[str, str | None],
    parse: Callable[[dict[str, Any], str], Question],
) -> Question:
    """Parse the row's value into a Question, or make a Question of problem bad_input.

    `found` is the row's id and what is wrong with it, as Ids returns them.
    """
    question_id, wrong = found
    try:
        if wrong:
            raise BadInputError(wrong)
        return parse(row.value or {}, question_id)
    except BadInputError as error:
        return bad_question(row, document_id, question_id, error)
