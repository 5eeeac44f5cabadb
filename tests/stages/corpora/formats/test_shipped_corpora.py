"""The demo corpus is sound: evidence of whole sentences; and the corpus that is made up is the same
every time, of any length, with facts where it says."""

import json
import re
from typing import Any

from jobs.graph.resolved_run import read_run
from stages.corpora import Loaded, load
from tests.support.command import ROOT

DEMO = ROOT / "conf" / "demo"
SENTENCE_END = re.compile(r"[.?!][\"')]?$")
# A sentence starts at the top of a line, after a "Speaker: " label (tags allowed), or after
# the end of another sentence on the same line.
SENTENCE_START = re.compile(r"(?:^|\n)(?:\w+: )?(?:\{\w+\} )?$|[.?!][\"')]? (?:\{\w+\} )?$")


def test_evidence_is_whole_sentences_and_in_two_places_far_apart() -> None:
    for line in (DEMO / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        question: dict[str, Any] = json.loads(line)
        text = (DEMO / f"{question['document_id']}.txt").read_text(encoding="utf-8")
        spans = sorted((span["start_char"], span["end_char"]) for span in question["evidence"])
        assert spans
        for start, end in spans:
            quoted = text[start:end]
            assert quoted and quoted == quoted.strip()
            assert SENTENCE_START.search(text[:start]) and SENTENCE_END.search(quoted), quoted
            assert end == len(text) or text[end].isspace(), quoted
        if question["question_type"] == "two_places":
            assert len(text[spans[0][1] : spans[-1][0]].split()) >= 1000


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
    for document, questions in ((one.document, one.questions) for one in made(num_documents=4)):
        assert document.num_words == len(document.text.split())
        for question in questions:
            (span,) = question.evidence
            fact = document.text[span.start_char : span.end_char]
            told = re.fullmatch(r"(\w+) keeps (\w+ \w+ \w+) under the floor\.", fact)
            assert told is not None
            assert question.question == f"What does {told[1]} keep under the floor?"
            assert question.references == (told[2],)
            assert document.text.count(fact) == 1
