"""Pages and gists that a document brings along, the document that is gathered of pages, and the
passage of a page that an answer rests on."""

import json
from dataclasses import replace
from math import log
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.core.errors import AccountingError
from pipeline.core.rows import UnitRows
from stages.gathered.gathered_pages import (
    GivenGists,
    MemoryPage,
    PaginateGiven,
    gather,
    passage,
    rarity,
)
from stages.tables.pages import Gist, Page
from tests.support.reading import document, never, run

TEXT = "one two\n\nthree four five"


def pages_and_gists(text: str, given: Any) -> tuple[list[Page], list[Gist]]:
    about = replace(document(text), metadata=json.dumps({"pages": given}))
    pages, calls = run(PaginateGiven(), UnitRows(document=about), never())
    gists, more = run(GivenGists(), UnitRows(about, (), {Page: tuple(pages)}), never())
    assert calls == more == ()
    return pages, gists


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ([{"start_char": 0, "gist": "1 2", "file": "a"}, {"start_char": 9, "gist": "3"}],
         [("one two\n\n", 2, "1 2", 2, None), ("three four five", 3, "3", 1, None)]),
        (None, [(TEXT, 5, None, 0, "bad_input")]),
    ],
)  # fmt: skip
def test_pages_begin_where_the_metadata_says_and_have_their_gists(
    given: Any, rows: list[Any]
) -> None:
    pages, gists = pages_and_gists(TEXT, given)
    assert [
        (page.text, page.num_words, gist.gist, gist.num_words, gist.problem)
        for page, gist in zip(pages, gists, strict=True)
    ] == rows


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("x", ValidationError), ([{"start_char": -1}], ValidationError),
        ([{"start_char": 0}, {"gist": "no start"}], ValidationError),
        *(([{"start_char": n} for n in starts], AccountingError) for starts in ([3], [0, 9, 5])),
    ],
)  # fmt: skip
def test_pages_that_have_no_start_or_do_not_tile_the_text_fail_their_unit(
    given: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        pages_and_gists(TEXT, given)


def page(document_id: str, page_index: int, text: str, gist: str | None = "gist") -> MemoryPage:
    return MemoryPage(document_id, "shared", page_index, text, gist, len(text.split()))


PAGES = [
    page("a", 0, "the well is dry"), page("a", 1, "the barn is red"),
    page("b", 0, "hens and geese"), page("b", 1, "a lighthouse by the well"),
]  # fmt: skip
FILES = {"a": "a.txt", "b": "sub/{b}.md", "c": "c", "letters/bergen": "letters/bergen.txt"}
WELL = "Is a well by the lighthouse?"


@pytest.mark.parametrize(
    ("question", "words", "chosen"),
    [
        # Both words of the question are in b 1, one in a 0; the others tie at 0, in their order.
        (WELL, 16, [("b", 0), ("b", 1), ("a", 0), ("a", 1)]),
        (WELL, 15, [("b", 1), ("a", 0), ("a", 1)]), (WELL, 12, [("b", 1), ("a", 0)]),
        (WELL, 1, [("b", 1)]),  # however long
        ("rye", 1, [("c", 0)]), ("Bergen", 1, [("letters/bergen", 0)]),  # gists and names count
    ],
)  # fmt: skip
def test_the_best_pages_up_to_the_words_document_by_document(
    question: str, words: int, chosen: list[tuple[str, int]]
) -> None:
    others = [page("c", 0, "nothing", "the harvest of rye"), page("letters/bergen", 0, "nothing")]
    pages = PAGES if question == WELL else [*PAGES, *others]
    gathered = gather("farm", pages, FILES, question, words)
    assert [(page.document_id, page.page_index) for page in gathered.pages] == chosen


def test_a_gathered_document_brings_its_pages_and_gists_below_headings() -> None:
    row = gather("farm", PAGES, FILES, WELL, 12).document
    texts = [
        "{sub/(b).md, page 1}\n\na lighthouse by the well\n\n",
        "{a.txt, page 0}\n\nthe well is dry\n\n",
    ]
    assert row["text"] == "".join(texts)
    assert row["title"] == "farm, 2 documents"
    pages, gists = pages_and_gists(row["text"], row["pages"])
    assert [page.text for page in pages] == texts
    assert [gist.gist for gist in gists] == ["{sub/(b).md, page 1} gist", "{a.txt, page 0} gist"]


def test_a_term_is_the_rarer_the_fewer_texts_have_it() -> None:
    """barn is in two of three texts, and so is paint, by its stem; bread in one."""
    barn, bread = "The barn is red. It was painted in May.", "They sold bread. Nobody painted it."
    weight = rarity([barn, bread, "The barn burnt."])
    assert weight["barn"] == weight["paint"] == pytest.approx(log(4 / 2))
    assert weight["bread"] == pytest.approx(log(4 / 1))
    assert "the" not in weight


SENTENCES = ["The barn is red.", "The well is dry.", "Nobody knows why.", "Geese\ncame."]


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        # The sentence that shares rare words with the question or the answer, and those beside it.
        ("A well?", "", ([0, 1, 2], 2.0)), ("?", "The well", ([0, 1, 2], 2.0)),
        ("A well?", "Red.", ([0, 1, 2], 2.0)), ("Geese?", "", ([2, 3], 1.0)),
        ("A barn?", "Red.", ([0, 1], 2.5)), ("Rye?", "", ([0, 1], 0)),
    ],
)  # fmt: skip
def test_a_passage_is_the_best_sentence_and_its_neighbors(
    question: str, answer: str, expected: Any
) -> None:
    weight = {"well": 2.0, "gees": 1.0, "barn": 1.5, "red": 1.0}
    text, score = passage("\n ".join(SENTENCES), question, answer, weight)
    shown = " ".join(SENTENCES[n] for n in expected[0]).replace("\n", " ")
    assert (text, score) == (shown, expected[1])
    assert passage(" \n", question, answer, weight) == ("", 0)
