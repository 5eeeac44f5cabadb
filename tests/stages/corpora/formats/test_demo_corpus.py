"""The demo corpus is sound: long texts, exact evidence spans, fair multiple choice."""

import json
import re
from collections import Counter, defaultdict
from typing import Any

import pytest

from tests.support.command import ROOT

DEMO = ROOT / "conf" / "demo"

Question = dict[str, Any]

QUESTION_TYPES = {"detail", "why", "two_places", "summary"}
SENTENCE_END = re.compile(r"[.?!][\"')]?$")
# A sentence starts at the top of a line, after a "Speaker: " label (tags allowed), or after
# the end of another sentence on the same line.
SENTENCE_START = re.compile(r"(?:^|\n)(?:\w+: )?(?:\{\w+\} )?$|[.?!][\"')]? (?:\{\w+\} )?$")


def load_questions() -> list[Question]:
    lines = (DEMO / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(DEMO.glob("*.txt"))}
QUESTIONS = load_questions()
MULTIPLE_CHOICE = [question for question in QUESTIONS if "options" in question]
FREE_FORM = [question for question in QUESTIONS if "options" not in question]


def spans_of(question: Question) -> list[tuple[int, int]]:
    return [(span["start_char"], span["end_char"]) for span in question["evidence"]]


def question_name(question: Question) -> str:
    return str(question["question_id"])


def words_between(text: str, first: tuple[int, int], second: tuple[int, int]) -> int:
    early, late = sorted((first, second))
    return len(text[early[1] : late[0]].split())


@pytest.mark.parametrize("stem", sorted(TEXTS))
def test_text_is_long_and_clean(stem: str) -> None:
    text = TEXTS[stem]
    assert len(text.split()) >= 2000
    assert text.endswith("\n")
    assert not any(line != line.strip() for line in text.splitlines())


def test_questions_cover_every_text() -> None:
    per_document = Counter(question["document_id"] for question in QUESTIONS)
    assert len(QUESTIONS) >= 24 and len({q["question_id"] for q in QUESTIONS}) == len(QUESTIONS)
    assert set(per_document) == set(TEXTS) and len(TEXTS) == 3
    assert min(per_document.values()) >= 8
    assert {question["question_type"] for question in QUESTIONS} == QUESTION_TYPES
    assert set(TEXTS) - {question["document_id"] for question in FREE_FORM}, "one has letters alone"


@pytest.mark.parametrize("question", FREE_FORM, ids=question_name)
def test_free_form_question_has_two_references(question: Question) -> None:
    references = question["references"]
    assert len(references) == 2
    assert all(reference.strip() for reference in references)
    assert references[0].casefold() != references[1].casefold()
    assert "answer_index" not in question


@pytest.mark.parametrize("question", MULTIPLE_CHOICE, ids=question_name)
def test_multiple_choice_question_has_four_options(question: Question) -> None:
    options = question["options"]
    assert len(options) == len(set(options)) == 4
    assert question["answer_index"] in range(4)
    assert "references" not in question


@pytest.mark.parametrize("question", QUESTIONS, ids=question_name)
def test_evidence_is_whole_sentences(question: Question) -> None:
    text = TEXTS[question["document_id"]]
    spans = spans_of(question)
    assert spans
    for start, end in spans:
        assert 0 <= start < end <= len(text)
        quoted = text[start:end]
        assert quoted == quoted.strip()
        assert SENTENCE_START.search(text[:start]), quoted
        assert SENTENCE_END.search(quoted), quoted
        assert end == len(text) or text[end].isspace(), quoted


def test_every_document_has_a_question_with_evidence_far_apart() -> None:
    distances: defaultdict[str, list[int]] = defaultdict(list)
    for question in QUESTIONS:
        if question["question_type"] == "two_places":
            document_id = question["document_id"]
            spans = sorted(spans_of(question))
            assert len(spans) >= 2
            distances[document_id].append(words_between(TEXTS[document_id], spans[0], spans[-1]))
    assert set(distances) == set(TEXTS)
    assert all(distance >= 1000 for found in distances.values() for distance in found)


def always_right(choices: list[int]) -> float:
    answers: list[int] = [question["answer_index"] for question in MULTIPLE_CHOICE]
    hits = sum(choice == answer for choice, answer in zip(choices, answers, strict=True))
    return hits / len(answers)


def test_neither_place_nor_length_of_an_option_gives_the_answer_away() -> None:
    assert all(always_right([index] * len(MULTIPLE_CHOICE)) < 0.35 for index in range(4))
    lengths = [[len(option) for option in question["options"]] for question in MULTIPLE_CHOICE]
    assert always_right([row.index(max(row)) for row in lengths]) < 0.35
    assert always_right([row.index(min(row)) for row in lengths]) < 0.35
