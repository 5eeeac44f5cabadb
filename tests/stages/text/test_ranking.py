"""Terms, BM25 ranks and centrality."""

import math
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25

from stages.text.ranking import (
    Ranking,
    best_first,
    centrality,
    rank,
    ranking,
    relevance,
    relevance_by_words,
    terms,
    weights,
)
from tests.support.command import ROOT


def test_terms_are_stems_without_stop_words() -> None:
    assert terms("The Batteries of the remote-controls, and batteries") == [
        "batteri", "remot", "control", "batteri",
    ]  # fmt: skip


def test_the_words_that_stories_are_made_of_are_terms() -> None:
    said = "fire man mill world home found"
    assert terms(said) == said.split()
    assert terms("I don't think it's his, isn't it?") == ["think"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!?! {} --", []),
        ("中文 2024", ["中", "文", "2024"]),
        ("Война и мир", ["война", "и", "мир"]),
        ("ΜΗΝΙΝ", ["μηνιν"]),
    ],
)
def test_terms_of_odd_texts(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_the_best_text_comes_first() -> None:
    texts = ["a ship at sea", "a whale, a whale", "the whale and the ship at sea on a Monday"]
    assert rank(texts, "Where is the whale?") == [1, 2, 0]


@pytest.mark.parametrize("query", ["", "the", "zebra", "!"])
def test_ties_go_to_the_lower_index(query: str) -> None:
    assert rank(["whale", "ship", "whale"], query) == [0, 1, 2]
    assert relevance(["whale", "ship", "whale"], query).tolist() == [0, 0, 0]


def test_texts_without_terms() -> None:
    assert rank([], "whale") == []
    assert rank(["", "the", ""], "whale") == [0, 1, 2]
    assert rank(["", "the whale", ""], "whale") == [1, 0, 2]
    assert centrality([]).tolist() == []
    assert centrality(["", "the"]).tolist() == [0, 0]


def rank_by_words(texts: list[str], query: str) -> list[int]:
    return best_first(relevance_by_words(texts, query))


def test_okapi_by_hand() -> None:
    """Of four texts one has `whale`: idf log(3.5 / 1.5); two have `a`: idf 0; `the` three times is
    less than nothing in Okapi, and a quarter of the mean idf in rank_bm25."""
    texts = ["The whale the", "a ship the", "A Whale! the", "sea"]
    assert rank_by_words(texts, "WHALE") == [0, 1, 2, 3]
    assert rank_by_words(texts, "a") == [0, 1, 2, 3]
    assert rank_by_words(texts, "sea") == [3, 0, 1, 2]
    assert rank_by_words(texts, "whale!") == [2, 0, 1, 3]
    # 3 words, 2.5 on average: k1 times (1 - b) + b * 3 / 2.5, with k1 1.5 and b 0.75.
    score = math.log(3.5 / 1.5) * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 3 / 2.5))
    assert relevance_by_words(texts, "whale").tolist() == [pytest.approx(score), 0, 0, 0]


def test_central_is_what_the_others_speak_of() -> None:
    scores = centrality(["whale ship harpoon", "whale ship", "biscuit"])
    assert scores.tolist() == sorted(scores, reverse=True)
    assert scores[0] == 1


def test_frequent_and_long_terms_weigh_most() -> None:
    weight = weights(["whale harpoon 2024", "whale whale", "a" * 64, "b" * 12])
    assert weight["whale"] > weight["2024"] and weight["harpoon"] > weight["2024"]
    assert weight["whale"] == pytest.approx(5 * math.log(3))
    assert weight["a" * 64] == weight["b" * 12]  # a hash is not worth more than a long word


@given(st.lists(st.text("abc 中.", max_size=8), max_size=6), st.text("abc 中.", max_size=8))
def test_every_text_is_ranked_once(texts: list[str], query: str) -> None:
    assert sorted(rank(texts, query)) == list(range(len(texts)))
    assert rank(texts, query) == rank(list(texts), query)
    assert (relevance(texts, query) >= 0).all()


def test_the_order_does_not_hang_on_the_hash_seed() -> None:
    program = (
        "from stages.text.excerpts import gist, best_sentences\n"
        "said = [f'The w{i % 7} met x{i % 5} near y{i % 11} on day z{i}.' for i in range(60)]\n"
        "text = ' '.join(said)\n"
        "print(gist(text), best_sentences([text], 'Where did w3 meet y5?', 40))"
    )
    made = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(made) == 1


@pytest.mark.parametrize("bm25", ["plus_on_stems", "okapi_on_words", "okapi_on_spaces"])
def test_threads_that_ask_at_once_get_one_index(
    bm25: Ranking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each thread has its own copies of the pages, as each method has."""
    built: list[int] = []

    def slow(self: BM25, corpus: list[list[str]], *args: object) -> None:
        built.append(len(corpus))
        time.sleep(0.05)  # a second thread comes while the first builds
        init(self, corpus, *args)

    init = BM25.__init__
    monkeypatch.setattr(BM25, "__init__", slow)
    asked = ["bell", "rope", "bell", "mill"]
    with ThreadPoolExecutor(len(asked)) as threads:
        pages = [[f"{bm25} {word} {n}" for n, word in enumerate(asked)] for _ in asked]
        found = list(threads.map(partial(ranking, bm25), pages, asked))
    assert built == [4]
    assert found[0] == found[2] == ranking(bm25, pages[0], "bell")
