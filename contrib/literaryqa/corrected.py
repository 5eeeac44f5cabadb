"""LiteraryQA (arXiv 2510.13494; SapienzaNLP/LiteraryQA, data/annotations): NarrativeQA's questions
about books, corrected, without the questions and books that could not be.

A line is a book, by NarrativeQA's document_id, with its `qas` in NarrativeQA's order: the text of a
question and its answers as they are now, and which of these were modified. NarrativeQA has no ids
of questions, so `pair` finds which of them each is of. The file is all that is asked: what it does
not have is left out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from pipeline.core.errors import UsageError
from pipeline.core.rows import Document, Question
from stages.corpora.reading.corpus_row import Row, rows_within
from stages.corpora.reading.corrections import Corrections, correct, misfit
from stages.corpora.reading.loaded import Loaded
from stages.corpora.reading.row_checks import BadInputError, question_of, texts_of

_SPLITS = {"validation": "valid"}  # its name -> NarrativeQA's
_NO_QUESTION = "no question of the document {}; fix or delete it"
_LEFT_OUT = "LiteraryQA: its annotations do not have it; left out"


@dataclass(frozen=True, slots=True)
class Annotated:
    """One of `qas`. `kept`: for each of the answers, whether it is NarrativeQA's."""

    row: Row
    question: str
    is_reworded: bool
    answers: tuple[str, ...]
    kept: tuple[bool, ...]

    @classmethod
    def of(cls, row: Row) -> "Annotated":
        """Raises BadInputError for an entry that is not of this format."""
        if row.value is None:
            raise BadInputError(row.wrong)
        is_reworded, changed = (row.value.get(f"is_{what}_modified") for what in
                                ("question", "answer"))  # fmt: skip
        answers = texts_of(row.value, "answers")
        if not isinstance(is_reworded, bool):
            raise BadInputError("`is_question_modified` is no boolean; fix it")
        flags = changed if isinstance(changed, list) else []
        if not answers or [*map(type, flags)] != [bool] * len(answers):
            raise BadInputError("`is_answer_modified` has no boolean for each answer; fix it")
        kept = tuple(not flag for flag in flags)
        return cls(row, question_of(row.value, "question"), is_reworded, answers, kept)

    def num_kept(self, question: Question) -> int:
        """Count the answers that were not modified and are among the question's references."""
        theirs = {_plain(reference) for reference in question.references} - {""}
        pairs = zip(self.answers, self.kept, strict=True)
        return sum(is_kept and _plain(answer) in theirs for answer, is_kept in pairs)

    def references(self, question: Question) -> tuple[str, ...]:
        """The answers; those that were not modified as the corpus writes them."""
        was = question.references
        found = []
        for place, (answer, is_kept) in enumerate(zip(self.answers, self.kept, strict=True)):
            same = [w for w in (*was[place : place + 1], *was) if _plain(w) == _plain(answer)]
            found.append(same[0] if is_kept and same else answer.strip())
        return tuple(found)


class LiteraryQA(Corrections):
    """Corrections by document_id."""

    key = "qas"
    about = "document_id"
    papers = ("literaryqa",)

    @classmethod
    def of_split(cls, rows: Iterable[Row], split: str | None) -> "Corrections":
        """Those of the corpus's split. Raises UsageError where all are of others."""
        rows = list(rows)
        theirs = [_split(row) for row in rows]
        own = [row for row, of in zip(rows, theirs, strict=True) if split in (None, of) or not of]
        if not own:
            there = " and ".join(sorted({of for of in theirs if of}))
            raise UsageError(
                f"{rows[0].file}: expected corrections of corpus.split={split}, these are of "
                f"{there}; set corpus.corrections=... or corpus.split={there.split(' ')[0]}"
            )
        return cls(own)

    def corrected(self, loaded: Loaded) -> Loaded:
        document = loaded.document
        row = self.rows.pop(document.document_id, None)
        if document.skipped or document.problem:
            return loaded
        if row is None:
            return Loaded(_without_text(document), _left_out(loaded.questions), is_left_out=True)
        annotated, made = [], []
        for entry in rows_within(row, "qas"):
            try:
                annotated.append(Annotated.of(entry))
            except BadInputError as wrong:
                made.append(misfit(entry, document.document_id, wrong))
        paired = pair(annotated, loaded.questions)
        questions = {q.question_id: q for q in _left_out(loaded.questions)}
        for own, question in zip(annotated, paired, strict=True):
            try:
                corrected = _corrected(own, question)
                questions[corrected.question_id] = corrected
            except BadInputError as wrong:
                made.append(misfit(own.row, document.document_id, wrong))
        return replace(loaded, questions=(*questions.values(), *made))


def pair(annotated: Sequence[Annotated], questions: Sequence[Question]) -> list[Question | None]:
    """The question that each annotation is of, None where that cannot be told; none is of two.

    1. One that was not reworded is of a question of the same text, letters and digits alone; of
       several, such as a question that is asked twice, the one with most of its answers.
    2. One that was is of the question left with most of its unmodified answers, one at least; of
       several the one worded most alike.
    3. Where all answers were modified, too, it is of the only question left between those of its
       neighbours, as both are in the same order.
    """
    found: dict[int, int] = {}
    same = {
        (place, number): (own.num_kept(asked), 0.0)
        for place, own in enumerate(annotated)
        for number, asked in enumerate(questions)
        if not own.is_reworded and _plain(own.question) == _plain(asked.question)
    }
    _take_best(found, same)
    alike = {
        (place, number): (num_kept, _likeness(own.question, asked.question))
        for place, own in enumerate(annotated)
        for number, asked in enumerate(questions)
        if own.is_reworded and (num_kept := own.num_kept(asked))
    }
    _take_best(found, alike)
    _take_between(found, [own.is_reworded for own in annotated], len(questions))
    numbers = (found.get(place) for place in range(len(annotated)))
    return [None if number is None else questions[number] for number in numbers]


def _take_best(found: dict[int, int], scored: dict[tuple[int, int], tuple[int, float]]) -> None:
    """Add the pairs, those of the highest score first, the earlier of equal ones."""
    for place, number in sorted(scored, key=lambda pair: scored[pair], reverse=True):
        if place not in found and number not in found.values():
            found[place] = number


def _take_between(found: dict[int, int], is_reworded: Sequence[bool], num_questions: int) -> None:
    gaps: dict[tuple[int, int], list[int]] = {}
    for place in set(range(len(is_reworded))) - found.keys():
        before = max((p for p in found if p < place), default=None)
        after = min((p for p in found if p > place), default=None)
        first = 0 if before is None else found[before] + 1
        end = num_questions if after is None else found[after]
        gaps.setdefault((first, end), []).append(place)
    taken = {*found.values()}
    for (first, end), (place, *others) in gaps.items():
        left = [number for number in range(first, end) if number not in taken]
        if len(left) == 1 and not others and is_reworded[place]:
            found[place] = left[0]


def _corrected(own: Annotated, question: Question | None) -> Question:
    if question is None:
        which = "has its unmodified answers or its place" if own.is_reworded else "has this text"
        raise BadInputError(_NO_QUESTION.format(which))
    text = own.question.strip() if own.is_reworded else None
    return correct(question, text, own.references(question))


def _left_out(questions: Iterable[Question]) -> tuple[Question, ...]:
    """The questions as skipped rows; bad ones as they are."""
    return tuple(q if q.problem else replace(q, skipped=True, detail=_LEFT_OUT) for q in questions)


def _without_text(document: Document) -> Document:
    return Document(
        document_id=document.document_id,
        title=document.title,
        metadata=document.metadata,
        skipped=True,
        detail=_LEFT_OUT,
    )


def _split(row: Row) -> str | None:
    """The row's split as the corpus calls it; None where it says none."""
    own = (row.value or {}).get("split")
    return _SPLITS.get(own, own) if isinstance(own, str) else None


def _plain(text: str) -> str:
    """The letters and digits alone, which no tokenization changes."""
    return "".join(filter(str.isalnum, text.casefold()))


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one.casefold(), other.casefold(), autojunk=False).ratio()
