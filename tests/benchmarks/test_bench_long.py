"""The book of `bench long`, and that its figures are a ratio and its two parts."""

import json
from pathlib import Path

import pytest

from benchmarks import long_book
from benchmarks.long_book import write_book
from jobs.graph.read_run import read_run


def test_a_book_has_its_words_and_questions(tmp_path: Path) -> None:
    write_book(tmp_path / "corpus", 5_000, 3)
    (line,) = (tmp_path / "corpus" / "documents.jsonl").read_text().splitlines()
    parts = json.loads(line)["text"].split("\n\n")
    assert sum(len(part.split()) for part in parts) == 5_000
    assert len({part.split()[0] for part in parts}) == len(parts), "no two are equal"
    lengths = [len(part.split()) for part in parts[:-1]]
    assert max(lengths) > 3 * sorted(lengths)[len(lengths) // 2] / 2, "skewed"
    asked = (tmp_path / "corpus" / "questions.jsonl").read_text().splitlines()
    assert [json.loads(row)["question_id"] for row in asked] == ["q0", "q1", "q2"]


@pytest.mark.slow
def test_the_ratio_is_of_the_two_seconds(tmp_path: Path) -> None:
    write_book(tmp_path / "corpus", 6_000, 2)
    words = [*long_book.WORDS, f"corpus.path={tmp_path / 'corpus'}", "questions_per_unit=1000000"]
    config = read_run([*words, "engine.decode_tokens_per_second=5000"]).config
    ratio, seconds, bound = long_book.long_book(config, tmp_path / "warehouse", 1)
    assert ratio.values == pytest.approx((seconds.values[0] / bound.values[0],))
    assert ratio.values[0] >= 1, "so short a book is read in turn, and nothing beats the bound"
