"""The demo corpus is sound: long texts, exact evidence spans, fair multiple choice; and the corpus
that is made up is the same every time, of any length, with facts where it says."""

import json
import re
import statistics
from collections import Counter
from typing import Any

from jobs.graph.resolved_run import read_run
from stages.corpora import Loaded, load
from tests.support.command import ROOT

DEMO = ROOT / "conf" / "demo"

Question = dict[str, Any]

QUESTION_TYPES = {"detail", "why", "two_places", "summary"}
SENTENCE_END = re.compile(r"[.?!][\"')]?$")
# A sentence starts at the top of a line, after a "Speaker: " label (tags allowed), or after
# the end of another sentence on the same line.
SENTENCE_START = re.compile(r"(?:^|\n)(?:\w+: )?(?:\{\w+\} )?$|[.?!][\"')]? (?:\{\w+\} )?$")


TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(DEMO.glob("*.txt"))}
LINES = (DEMO / "questions.jsonl").read_text(encoding="utf-8").splitlines()
QUESTIONS: list[Question] = [json.loads(line) for line in LINES]
MULTIPLE_CHOICE = [question for question in QUESTIONS if "options" in question]
FREE_FORM = [question for question in QUESTIONS if "options" not in question]


def test_questions_cover_every_text() -> None:
    for text in TEXTS.values():
        assert len(text.split()) >= 2000 and text.endswith("\n")
        assert not any(line != line.strip() for line in text.splitlines())
    per_document = Counter(question["document_id"] for question in QUESTIONS)
    assert len(QUESTIONS) >= 24 and len({q["question_id"] for q in QUESTIONS}) == len(QUESTIONS)
    assert set(per_document) == set(TEXTS) and len(TEXTS) == 3
    assert min(per_document.values()) >= 8
    assert {question["question_type"] for question in QUESTIONS} == QUESTION_TYPES
    assert set(TEXTS) - {question["document_id"] for question in FREE_FORM}, "one has letters alone"


def test_answers_are_two_references_or_one_of_four_options() -> None:
    for question in FREE_FORM:
        first, second = (reference.strip().casefold() for reference in question["references"])
        assert first and second and first != second and "answer_index" not in question
    for question in MULTIPLE_CHOICE:
        assert len(question["options"]) == len({*question["options"]}) == 4
        assert question["answer_index"] in range(4) and "references" not in question


def test_evidence_is_whole_sentences_and_in_two_places_far_apart() -> None:
    for question in QUESTIONS:
        text = TEXTS[question["document_id"]]
        spans = sorted((span["start_char"], span["end_char"]) for span in question["evidence"])
        assert spans
        for start, end in spans:
            quoted = text[start:end]
            assert quoted and quoted == quoted.strip()
            assert SENTENCE_START.search(text[:start]) and SENTENCE_END.search(quoted), quoted
            assert end == len(text) or text[end].isspace(), quoted
        if question["question_type"] == "two_places":
            assert len(text[spans[0][1] : spans[-1][0]].split()) >= 1000


def always_right(choices: list[int]) -> float:
    answers = [question["answer_index"] for question in MULTIPLE_CHOICE]
    return sum(map(int.__eq__, choices, answers)) / len(answers)


def test_neither_place_nor_length_of_an_option_gives_the_answer_away() -> None:
    assert all(always_right([index] * len(MULTIPLE_CHOICE)) < 0.35 for index in range(4))
    lengths = [[len(option) for option in question["options"]] for question in MULTIPLE_CHOICE]
    assert always_right([row.index(max(row)) for row in lengths]) < 0.35
    assert always_right([row.index(min(row)) for row in lengths]) < 0.35


def made(**keys: Any) -> list[Loaded]:
    words = [f"corpus.{key}={value}" for key, value in keys.items()]
    return list(load(read_run(["corpus=synthetic", *words]).config.corpus))


def test_the_same_seed_makes_the_same_documents_however_many() -> None:
    few, many = made(num_documents=3, words=300), made(num_documents=5, words=300)
    assert many[:3] == few
    assert made(num_documents=3, words=300, seed=1) != few
    ids = [question.question_id for loaded in many for question in loaded.questions]
    assert len(set(ids)) == len(ids) == 5 * 10


def test_a_question_asks_for_the_fact_that_stands_in_its_evidence() -> None:
    for document, questions in [(one.document, one.questions) for one in made(num_documents=4)]:
        assert document.num_words == len(document.text.split())
        for question in questions:
            (span,) = question.evidence
            fact = document.text[span.start_char : span.end_char]
            told = re.fullmatch(r"(\w+) keeps (\w+ \w+ \w+) under the floor\.", fact)
            assert told is not None
            assert question.question == f"What does {told[1]} keep under the floor?"
            assert question.references == (told[2],)
            assert document.text.count(fact) == 1


def test_lengths_are_lognormal_about_the_median() -> None:
    alike = [one.document.num_words for one in made(num_documents=40, words=2000, skew=0.0)]
    assert all(1750 < words < 2250 for words in alike)
    skewed = [one.document.num_words for one in made(num_documents=400, words=200, questions=0)]
    assert 160 < statistics.median(skewed) < 250
    assert max(skewed) > 8 * statistics.median(skewed)
