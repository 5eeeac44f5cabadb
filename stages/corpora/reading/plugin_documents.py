"""Check what the loader of a plugin yields: it may raise, or yield, anything."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pipeline.core.arrow import wrong_value
from pipeline.core.errors import CommandError, UsageError, contained
from pipeline.core.rows import Document, Question
from pipeline.work.class_checks import file_of
from stages.corpora.reading.corpus import Corpus
from stages.corpora.reading.loaded import Loaded
from stages.text.encodings import without_c1


def plugin_documents(corpus: Corpus) -> Iterator[Loaded]:
    """The documents that a plugin's `load` yields. Raises UsageError, naming its file, for what it
    raises, and for what is no document with its questions, or has the id of another."""
    place, ids = f"{file_of(type(corpus))}: {type(corpus).__name__}.load", set[str]()
    with contained(CommandError) as raised:
        for number, loaded in enumerate(corpus.load()):
            if why := _wrong(loaded, ids):
                raise UsageError(f"{place}: item {number}: {why}; fix it")
            text = without_c1(loaded.document.text)
            yield replace(loaded, document=replace(loaded.document, text=text))
    if raised.error:
        raise UsageError(f"{place}: {raised.line()}; fix it, or what it reads")


def _wrong(loaded: Any, ids: set[str]) -> str | None:
    """Say what is wrong with an item; adds its ids to those before. None if nothing is."""
    if type(loaded) is not Loaded or not isinstance(loaded.questions, tuple):
        return f"{type(loaded).__name__}, not Loaded(document, (question, ...))"
    document, questions = loaded.document, loaded.questions
    for row, kind in ((document, Document), *((question, Question) for question in questions)):
        if type(row) is not kind:
            return f"{type(row).__name__}, not {kind.__name__}"
    if why := wrong_value(Document, [document]) or wrong_value(Question, questions):
        return why
    for question in questions:
        if question.document_id != document.document_id:
            return f"question {question.question_id!r}: its document_id is not the document's"
    for own in (f"document {document.document_id!r}",
                *(f"question {question.question_id!r}" for question in questions)):  # fmt: skip
        if own in ids:
            return f"another {own} came before"
        ids.add(own)
    return None
