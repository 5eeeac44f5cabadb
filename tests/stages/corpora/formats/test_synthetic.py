"""The corpus that is made up: the same every time, of any length, with facts where it says."""

import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from jobs.graph.read_run import read_run
from stages.corpora import Loaded, load
from tests.support.command import sql, succeed


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


@pytest.mark.slow
def test_a_whole_run_finds_the_planted_facts(tmp_path: Path) -> None:
    words = ["corpus=synthetic", "corpus.num_documents=3", "corpus.words=1500", "memory=uniform"]
    methods = "methods=bm25(top_k=1),constant"
    succeed("run", *words, methods, "rater=none", f"warehouse={tmp_path}")
    (row,) = sql(
        tmp_path,
        """select avg(value) as recall, count(*) as n from scores
        where metric = 'evidence_recall' and method = 'bm25(top_k=1)'""",
    )
    assert row["n"] == 30
    assert row["recall"] > 95, "the name in the question stands on one page only"
