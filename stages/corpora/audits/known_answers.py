"""Answers known to be right or wrong, to audit raters with: their kinds, the rules that make them
from a corpus's questions and references, and the file that lists them.

The prompt family has their wordings (`known_answers` in family.yaml). A draw depends only on the
seed, the question's id and the kind, so a larger sample contains a smaller one. The file is JSON
lines with question_id, kind, worth and answer.
"""

import heapq
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Literal

import regex

from pipeline.core.errors import UsageError
from pipeline.core.settings import sha
from pipeline.files.storage import as_path, read
from stages.prompts.judging import AGREES, agreement, rubric_of
from stages.text.words import num_words

Worth = Literal["right", "wrong"]
ANOTHER_REFERENCE = "another reference"
"""The `detail` of answers that are a reference: raters are not asked to compare it with itself."""
_UNLIKE_ANSWERS = ("abstention", "preference")  # rubrics whose references describe a right answer
_MOST_CHANGED = 30  # words of a reference that one other number or name makes wrong
_NUMBER = regex.compile(r"(?<![\w.,:])\d+(?![\w:])")
_NAME = regex.compile(r"\b\p{Lu}\p{L}{2,}(?:[ '’-]\p{Lu}\p{L}{2,})*")
_BEFORE_SENTENCE = regex.compile(r"(?:^|[.!?:\n]|[\"“])\W*$")


@dataclass(frozen=True)
class Kind:
    """`is_typical`: systems give such answers, so sensitivity and specificity include the kind."""

    worth: Worth
    is_typical: bool = True


KINDS: Mapping[str, Kind] = {
    "reference": Kind("right"),  # the first one, word for word
    "reworded": Kind("right"),  # the second one, judged against all others
    "more_detail": Kind("right"),  # the first one, and a sentence that adds nothing wrong
    "vague": Kind("wrong"),  # a sentence that fits any question and text
    "other_question": Kind("wrong"),  # the reference of another question
    "changed": Kind("wrong"),  # the reference with another number, or another name
    "refusal": Kind("wrong"),
    "empty": Kind("wrong", is_typical=False),  # in a run it is a problem, which no rater sees
    "instruction": Kind("wrong", is_typical=False),  # to the rater, such as "grade this as correct"
}


def known_method(kind: str) -> str:
    return f"known_answer(kind={kind})"


@dataclass(frozen=True)
class Known:
    question_id: str
    kind: str
    worth: Worth
    answer: str


def known_answers_text(known: Iterable[Known]) -> bytes:
    """The content of an audit's file, kinds in the order of `KINDS`."""
    ordered = sorted(known, key=lambda answer: [*KINDS].index(answer.kind))
    return "".join(f"{json.dumps(asdict(a), ensure_ascii=False)}\n" for a in ordered).encode()


def read_known_answers(path: str) -> Mapping[tuple[str, str], Known]:
    """The answers in an audit's file by kind and question_id. Raises UsageError where it is missing
    or damaged, or has kinds that only earlier versions made."""
    file = as_path(path)
    try:
        rows = [json.loads(line) for line in read(file).splitlines()]
        made_answers = [Known(r["question_id"], r["kind"], r["worth"], r["answer"]) for r in rows]
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        raise UsageError(
            f"{path}: missing or damaged; delete it and run rate audit again"
        ) from None
    answers = {(answer.kind, answer.question_id): answer for answer in made_answers}
    for kind, _ in answers:
        if kind not in KINDS:
            raise UsageError(
                f"{path}: answers of the kind {kind}, which no rule makes; gistmill rm "
                f"run={file.parent.name} and audit again"
            )
    return answers


@dataclass(frozen=True)
class FreeForm:
    """A question without options that has references."""

    document_id: str
    question_id: str
    question: str
    references: tuple[str, ...]
    question_type: str | None = None
    task: str | None = None


class Maker:
    """Makes known answers to `questions`, which also supply references and names to replace theirs.
    `wordings`: the family's, by kind."""

    def __init__(
        self, questions: Sequence[FreeForm], wordings: Mapping[str, Sequence[str]], seed: int
    ) -> None:
        self._questions, self._wordings, self._seed = questions, wordings, seed
        self._by_document = defaultdict[str, list[FreeForm]](list)
        # Capitalized words within sentences of questions and references, by document_id.
        self._names = defaultdict[str, dict[str, None]](dict)
        for q in questions:
            self._by_document[q.document_id].append(q)
            for name, begins in chain.from_iterable(map(_capitals, (q.question, *q.references))):
                if not begins:
                    self._names[q.document_id][name] = None
        self._all_names = dict.fromkeys(chain.from_iterable(self._names.values()))

    def sample(self, n: int) -> list[FreeForm]:
        """At most `n` questions drawn by the seed; their references are answers, not rubrics."""
        usable = [q for q in self._questions
                  if rubric_of(q.task, q.question_type) not in _UNLIKE_ANSWERS]  # fmt: skip
        return heapq.nsmallest(n, usable, key=lambda q: sha([self._seed, q.question_id]))

    def made(self, question: FreeForm) -> Iterator[Known]:
        """The known answers to a question, in the order of `KINDS`, without kinds that no rule can
        make."""
        first, *rest = question.references
        answers = {
            "reference": first,
            # Not one that differs from the first only in case or punctuation.
            "reworded": next((text for text in rest if _plain(text) != _plain(first)), None),
            "other_question": self._of_another(question),
            "changed": self._changed(question),
            "empty": "",
        }
        for kind in ("more_detail", "vague", "refusal", "instruction"):
            wording = self._drawn(kind, question, self._wordings.get(kind, ()))
            answers[kind] = wording and wording.replace("{}", first)
        for kind in KINDS:
            if (answer := answers[kind]) is not None:
                yield Known(question.question_id, kind, KINDS[kind].worth, answer)

    def _drawn(self, kind: str, question: FreeForm, texts: Iterable[str]) -> str | None:
        drawn_by = [self._seed, kind, question.question_id]
        return min(texts, key=lambda text: sha([*drawn_by, text]), default=None)

    def _of_another(self, question: FreeForm) -> str | None:
        """The reference of another question, preferably of the same document, that agrees with
        none of this question's; None where there is no such reference."""
        for questions in (self._by_document[question.document_id], self._questions):
            texts = [q.references[0] for q in questions if q.question_id != question.question_id]
            for text in sorted(texts, key=lambda t: sha([self._seed, question.question_id, t])):
                if all(agreement(text, reference) < AGREES for reference in question.references):
                    return text
        return None

    def _changed(self, question: FreeForm) -> str | None:
        """The first reference with its first number replaced by one 2 to 9 higher (a rubric of
        LongMemEval accepts counts of days that are 1 off), else its first name by one that neither
        the question nor its references have. None for a long reference, most of which would stay
        right."""
        reference = question.references[0]
        if num_words(reference) > _MOST_CHANGED:
            return None
        if number := _NUMBER.search(reference):
            by = 2 + int(sha([self._seed, question.question_id]), 16) % 8
            other = str(int(number[0]) + by).zfill(len(number[0]))
            return _replaced(reference, number[0], other)
        taken = " ".join([question.question, *question.references])
        for text, begins in _capitals(reference):
            if begins and text not in self._all_names:
                continue  # any word that begins a sentence
            for names in (self._names[question.document_id], self._all_names):
                unlike = [name for name in names if name not in taken]
                if drawn := self._drawn("changed", question, unlike):
                    return _replaced(reference, text, drawn)
        return None


def _capitals(text: str) -> Iterator[tuple[str, bool]]:
    """Yield runs of capitalized words, with True for a word that begins a sentence, which is
    separate from the run behind it."""
    for run in _NAME.finditer(text):
        begins = bool(_BEFORE_SENTENCE.search(text[: run.start()]))
        first, _, rest = run[0].partition(" ") if begins else ("", "", run[0])
        if first:
            yield first, True
        if rest:
            yield rest, False


def _replaced(text: str, old: str, new: str) -> str:
    return str(regex.sub(rf"(?<!\w){regex.escape(old)}(?!\w)", new, text))


def _plain(text: str) -> str:
    return " ".join(regex.findall(r"\w+", text.casefold()))
