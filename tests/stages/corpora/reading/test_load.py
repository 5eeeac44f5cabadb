"""Which documents `limit` and `sample` choose."""

from pathlib import Path

import pytest

from jobs.graph.preparation import chosen_documents
from jobs.graph.read_run import read_run
from tests.support.texts.small_corpus import document, question, write

NUMBERS = range(20)


@pytest.fixture
def corpus(tmp_path: Path) -> list[str]:
    write(tmp_path, [document(n) for n in NUMBERS], [question(n, of=n) for n in NUMBERS])
    return ["corpus=tables", f"corpus.path={tmp_path}"]


def ids(words: list[str], *more: str) -> list[str]:
    return [
        loaded.document.document_id for loaded in chosen_documents(read_run([*words, *more]).config)
    ]


def test_everything_unless_told_otherwise(corpus: list[str]) -> None:
    assert ids(corpus) == [f"d{n}" for n in NUMBERS]


def test_limit_takes_the_first(corpus: list[str]) -> None:
    assert ids(corpus, "limit=3") == ["d0", "d1", "d2"]
    assert ids(corpus, "limit=99") == ids(corpus)


def test_sample_draws_by_seed_in_corpus_order(corpus: list[str]) -> None:
    drawn = ids(corpus, "sample=5")
    assert len(set(drawn)) == 5
    assert drawn == sorted(drawn, key=lambda name: int(name[1:]))
    assert drawn == ids(corpus, "sample=5", "corpus.seed=0")
    others = [tuple(ids(corpus, "sample=5", f"corpus.seed={seed}")) for seed in range(1, 9)]
    assert len({tuple(drawn), *others}) > 5
    assert ids(corpus, "sample=99") == ids(corpus)


def test_a_larger_sample_holds_the_smaller(corpus: list[str]) -> None:
    assert set(ids(corpus, "sample=4")) < set(ids(corpus, "sample=8"))
