"""Histories of any length for LongMemEval's questions: evidence sessions among filler sessions.

After appendix A.2 of the LongMemEval paper and the authors' sample_haystack_and_timestamp.py, with
these differences. They shuffle the sessions and then date them in that order; here a filler's date
is drawn uniformly and decides its place. Their fillers may come twice; here only when all others
are used. They mix three sources in fixed shares; here the mixture is that of the file of fillers.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from random import Random
from tempfile import TemporaryFile
from typing import Any, ClassVar, Literal

from pydantic import PositiveInt, StrictInt

from pipeline.core.errors import UsageError
from stages.corpora.chats.session_dates import Day, interval, read_date, with_dates
from stages.corpora.chats.sessions import Session, by_date
from stages.corpora.formats.fillers import Evidence, Fillers
from stages.corpora.formats.longmemeval import HistoryCorpus, sessions_of
from stages.corpora.reading.corpus import Address, refuse_missing
from stages.corpora.reading.ids import Ids
from stages.corpora.reading.loaded import Loaded, bad_document
from stages.corpora.reading.row_checks import BadInputError, optional_text, texts_of
from stages.text.words import num_words

# No tokenizer is known when a corpus is loaded. BERT's WordPiece makes 1.42 tokens of a word in the
# sessions of 16 published questions; the larger vocabularies of chat models make fewer.
TOKENS_PER_WORD = 1.3


class LongMemEvalHaystackCorpus(HistoryCorpus):
    """`path`: questions with their evidence sessions, as longmemeval_oracle.json. Where a row names
    some of its sessions in `answer_session_ids`, the others are not used.

    A history has as many sessions as `sessions`, or the fewest that reach `tokens`.
    """

    papers: ClassVar[tuple[str, ...]] = ("longmemeval",)
    licences: ClassVar[Mapping[str, str]] = {"LongMemEval": "MIT"}
    format: Literal["longmemeval_haystack"]
    fillers: Address  # a file, see fillers.py
    sessions: PositiveInt | None  # evidence included
    tokens: PositiveInt | None  # estimated: 1.3 per word
    first_date: Day  # of fillers; for null see session_dates.py
    last_date: Day
    seed: StrictInt  # of the fillers and their dates, hence hashed; and of the draw for `sample`

    def check(self) -> None:
        """Raise UsageError also for a missing file, two targets or none, and reversed dates."""
        super().check()
        refuse_missing(self.fillers, "corpus.fillers", "file")
        if (self.sessions is None) == (self.tokens is None):
            both = "neither is" if self.sessions is None else "both are"
            raise UsageError(f"corpus.sessions, corpus.tokens: {both} set; set one of them")
        if self.first_date and self.last_date and self.first_date > self.last_date:
            raise UsageError("corpus.first_date is after corpus.last_date; exchange them")

    def load(self) -> Iterator[Loaded]:
        """Yield a bad_input document per bad row of fillers, then one Loaded per question.

        A history depends on the settings, the fillers and its row alone. It is bad_input where its
        evidence exceeds the target or there is no date for a filler. Raises UsageError where the
        file of questions, or that of fillers, has nothing that can be used.
        """
        ids = Ids()
        evidence = self._evidence()
        with TemporaryFile() as file:
            fillers = Fillers(file)
            bad = [
                Loaded(bad_document(ids.of_place(row), detail), ())
                for row, detail in fillers.read(self.fillers, evidence)
            ]
            if not len(fillers):
                why = bad[0].document.detail if bad else "set corpus.fillers=..."
                raise UsageError(f"{self.fillers}: no session in it can be a filler; {why}")
            yield from bad
            yield from self.histories(partial(self._compiled, fillers), ids)

    def _evidence(self) -> Evidence:
        """The evidence of all questions, as one question's must not be another's filler."""
        evidence = Evidence()
        for row in self.rows():
            try:
                for session in _evidence_of(row.value or {}):
                    evidence.add(session)
            except BadInputError:
                continue  # a bad row when it is loaded
        return evidence

    def _compiled(self, fillers: Fillers, value: dict[str, Any], document_id: str) -> list[Session]:
        """The history of one question, by date. Evidence keeps its dates: answers count on them."""
        draw = Random(f"history {self.seed} {document_id}")
        evidence = _evidence_of(value)
        asked = read_date(optional_text(value, "question_date"), "question_date")
        within = interval(self.first_date, self.last_date, _dates(evidence), asked)
        chosen = list(self._chosen(evidence, fillers.drawn(draw)))
        return by_date([*with_dates(evidence, within, draw), *with_dates(chosen, within, draw)])

    def _chosen(self, evidence: Sequence[Session], drawn: Iterator[Session]) -> Iterator[Session]:
        """Fillers until the target is reached. Raises BadInputError where evidence exceeds it."""
        size = sum(map(self._size, evidence))
        key, target = ("sessions", self.sessions) if self.sessions else ("tokens", self.tokens)
        assert target is not None  # by check()
        if size > target:
            needed = math.ceil(size)
            raise BadInputError(f"its evidence has {needed} {key}; raise corpus.{key} to that")
        while size < target:
            session = next(drawn)
            size += self._size(session)
            yield session

    def _size(self, session: Session) -> float:
        return 1 if self.sessions else TOKENS_PER_WORD * num_words("\n".join(session.turns))


def _evidence_of(value: dict[str, Any]) -> list[Session]:
    """The sessions named in `answer_session_ids` that have turns; where none is, all sessions."""
    sessions = [session for session in sessions_of(value) if session.turns]
    names = texts_of(value, "answer_session_ids")
    evidence = [session for session in sessions if session.session_id in names] or sessions
    if not evidence:
        raise BadInputError("no evidence session; add it or delete the question")
    return evidence


def _dates(sessions: Sequence[Session]) -> list[datetime]:
    read = (read_date(session.date, "haystack_dates") for session in sessions)
    return [when for when in read if when]
