"""Find the questions that the answers in another program's log are to."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.work.stage import Corpus
from stages.read.evaluation_logs import LogEntry
from stages.text.words import plain

_OPENING = 200  # characters of a document, by which a prompt is recognized that holds its text


def matched(entries: Sequence[LogEntry], corpus: Corpus) -> Mapping[str, Any]:
    """The answers by question_id: of the question that has one of the entry's ids, else of the one
    with its text, of several the one whose document the entry names or shows.

    Raises UsageError for entries of no question, of one of several, or of the same question.
    """
    known = _Known(corpus)
    found: dict[str, Any] = {}
    lines: dict[str, LogEntry] = {}
    unknown: list[LogEntry] = []
    for entry in entries:
        question_id = known.question_id(entry)
        if question_id is None:
            unknown.append(entry)
        elif question_id in found:
            raise UsageError(
                entry.row.detail(
                    f"the question {question_id!r} is answered twice, first in "
                    f"{lines[question_id].row.place}; keep one of several epochs or filters"
                )
            )
        else:
            found[question_id], lines[question_id] = entry.answer, entry
    if unknown:
        raise UsageError(_unknown(unknown, len(entries)))
    return found


def _unknown(unknown: Sequence[LogEntry], number: int) -> str:
    first = unknown[0]
    what = " ".join(repr(text[:60]) for text in (*first.ids[:1], *first.questions[:1]))
    return first.row.detail(
        f"{len(unknown)} of {number} answers are to no question of the corpus, or to one of "
        f"several with the same text, the first to {what or 'nothing'}; add its question_id"
        ", or set corpus= to the corpus that was asked"
    )


class _Known:
    """The questions of a corpus, by id and by text."""

    def __init__(self, corpus: Corpus) -> None:
        self._ids: set[str] = set()
        self._openings: dict[str, str] = {}  # of documents
        self._by_text: dict[str, dict[str, str]] = defaultdict(dict)  # document by question_id
        for document, questions in corpus:
            self._openings[document.document_id] = plain(document.text[:_OPENING])
            for question in questions:
                self._ids.add(question.question_id)
                own = self._by_text[plain(question.question)]
                own[question.question_id] = document.document_id

    def question_id(self, entry: LogEntry) -> str | None:
        """The id of the entry's question; None if there is none, or one of several."""
        texts = (self._by_text.get(plain(text)) for text in entry.questions)
        same = next((found for found in texts if found), {})
        of_id = next((name for name in entry.ids if name in self._ids), None)
        # Some programs number their samples: a number is no id of a question with another text.
        if of_id is not None and (not same or of_id in same):
            return of_id
        if len(same) > 1:
            same = {name: own for name, own in same.items() if self._is_shown(own, entry)}
        return next(iter(same)) if len(same) == 1 else None

    def _is_shown(self, document_id: str, entry: LogEntry) -> bool:
        opening = self._openings[document_id]
        return any(
            text == document_id or (opening and opening in plain(text)) for text in entry.documents
        )
