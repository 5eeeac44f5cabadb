"""Make answers of known worth by rules, from the questions of a corpus and their references; what
no rule can make of a question is left out.

The words are the family's (`known_answers` in family.yaml). What is drawn depends on the seed, the
question's id and the kind alone, so that a larger sample keeps what a smaller one has.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import regex

from pipeline.core.settings import sha
from stages.corpora.audits.known_answers import KINDS, Known
from stages.prompts.judging.rubrics import rubric_of
from stages.prompts.judging.verdicts import AGREES, agreement
from stages.text.words import num_words

_UNLIKE_ANSWERS = ("abstention", "preference")  # rubrics whose references describe a right answer
_MOST_CHANGED = 30  # words of a reference that one other number or name makes wrong
_NUMBER = regex.compile(r"(?<![\w.,:])\d+(?![\w:])")
_NAME = regex.compile(r"\b\p{Lu}\p{L}{2,}(?:[ '’-]\p{Lu}\p{L}{2,})*")
_BEGINS = regex.compile(r"(?:^|[.!?:\n]|[\"“])\W*$")  # what stands before a sentence


@dataclass(frozen=True)
class Asked:
    """A question as audits use it; free-form and with references."""

    document_id: str
    question_id: str
    question: str
    references: tuple[str, ...]
    question_type: str | None = None
    task: str | None = None


@dataclass(frozen=True)
class Maker:
    """Makes known answers to `questions`, of which other references and names are taken, too.
    `words`: the family's, by kind."""

    questions: Sequence[Asked]
    words: Mapping[str, Sequence[str]]
    seed: int

    def sample(self, n: int) -> list[Asked]:
        """At most `n` questions, drawn by the seed, of those whose references are answers."""
        usable = [q for q in self.questions
                  if rubric_of(q.task, q.question_type) not in _UNLIKE_ANSWERS]  # fmt: skip
        return heapq.nsmallest(n, usable, key=lambda q: sha([self.seed, q.question_id]))

    def made(self, question: Asked, by_model: bool) -> Iterator[Known]:
        """The known answers to a question, in the order of `KINDS`; with `by_model`, what a model
        is to write, too."""
        by_rule = {
            "reference": question.references[0],
            "reworded": self._second(question),
            "more_detail": self._worded("more_detail", question),
            "vague": self._worded("vague", question),
            "other_question": self._of_another(question),
            "changed": self._changed(question),
            "refusal": self._worded("refusal", question),
            "empty": "",
            "instruction": self._worded("instruction", question),
        }
        for name, kind in KINDS.items():
            if by_model and kind.how:
                reference = question.references[0]
                yield Known(question.question_id, name, kind.worth, reference=reference)
            elif (answer := by_rule.get(name)) is not None:
                yield Known(question.question_id, name, kind.worth, answer)

    def _drawn(self, kind: str, question: Asked, found: Sequence[str]) -> str | None:
        """One of the texts; None of none."""
        return min(
            found, key=lambda t: sha([self.seed, kind, question.question_id, t]), default=None
        )

    def _worded(self, kind: str, question: Asked) -> str | None:
        text = self._drawn(kind, question, self.words.get(kind, ()))
        return text and text.replace("{}", question.references[0])

    def _second(self, question: Asked) -> str | None:
        """The second reference, if it is not the first one in other letters."""
        first, *others = question.references
        return next((text for text in others if _plain(text) != _plain(first)), None)

    def _of_another(self, question: Asked) -> str | None:
        """The reference of a question of the same document, else of any, that does not agree with
        those of this one."""
        own = self._by_document[question.document_id]
        for others in (own, self.questions):
            texts = [q.references[0] for q in others if q.question_id != question.question_id]
            drawn = sorted(texts, key=lambda t: sha([self.seed, question.question_id, t]))
            for text in drawn:
                if all(agreement(text, reference) < AGREES for reference in question.references):
                    return text
        return None

    def _changed(self, question: Asked) -> str | None:
        """The first reference with another number, else another name. Most of a long one would
        stay right."""
        if num_words(question.references[0]) > _MOST_CHANGED:
            return None
        return self._with_another_number(question) or self._with_another_name(question)

    def _with_another_number(self, question: Asked) -> str | None:
        """The first reference with its first number, wherever it stands, 2 to 9 higher: counts of
        days that are 1 off are right by a rubric of LongMemEval's."""
        if not (found := _NUMBER.search(question.references[0])):
            return None
        by = 2 + int(sha([self.seed, question.question_id]), 16) % 8
        other = str(int(found[0]) + by).zfill(len(found[0]))
        return _replaced(question.references[0], found[0], other)

    def _with_another_name(self, question: Asked) -> str | None:
        """The first reference with its first name, wherever it stands, replaced by one of the same
        document, else of any, that neither the question nor its references have."""
        own = " ".join([question.question, *question.references])
        for text, begins in _capitals(question.references[0]):
            if begins and text not in self._names:
                continue  # any word that begins a sentence
            for of in (self._names_by_document[question.document_id], self._names):
                others = [name for name in of if name not in own]
                if other := self._drawn("changed", question, others):
                    return _replaced(question.references[0], text, other)
        return None

    @cached_property
    def _by_document(self) -> Mapping[str, Sequence[Asked]]:
        found = defaultdict[str, list[Asked]](list)
        for question in self.questions:
            found[question.document_id].append(question)
        return found

    @cached_property
    def _names_by_document(self) -> Mapping[str, Sequence[str]]:
        """Words with capitals within sentences of questions and references, by document_id."""
        return {
            document_id: list(dict.fromkeys(
                name for q in own for text in (q.question, *q.references)
                for name, begins in _capitals(text) if not begins
            ))
            for document_id, own in self._by_document.items()
        }  # fmt: skip

    @cached_property
    def _names(self) -> Mapping[str, None]:
        return dict.fromkeys(name for own in self._names_by_document.values() for name in own)


def _capitals(text: str) -> Iterator[tuple[str, bool]]:
    """The words with capitals, and whether they begin a sentence; others in a row are one."""
    for found in _NAME.finditer(text):
        begins = bool(_BEGINS.search(text[: found.start()]))
        first, _, others = found[0].partition(" ") if begins else ("", "", found[0])
        if first:
            yield first, True
        if others:
            yield others, False


def _replaced(text: str, old: str, new: str) -> str:
    return str(regex.sub(rf"(?<!\w){regex.escape(old)}(?!\w)", new, text))


def _plain(text: str) -> str:
    return " ".join(regex.findall(r"\w+", text.casefold()))
