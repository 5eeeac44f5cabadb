"""Pages and gists that a document brings along, the document that is gathered of pages, and the
passage of a page that an answer rests on."""

import json
from dataclasses import replace
from typing import Any

import pytest

from pipeline.core.errors import AccountingError
from pipeline.core.rows import UnitRows
from stages.gathered.gathered_pages import (
    GivenGists,
    MemoryPage,
    PaginateGiven,
    gather,
    quoted_answers,
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
        ("x", TypeError), ([{"start_char": 0}, {"gist": "no start"}], KeyError),
        *(([{"start_char": n} for n in starts], AccountingError)
          for starts in ([3], [-1], [0, 9, 5])),
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
FILES = {"a": "a.txt", "b": "sub/b.md", "c": "c", "letters/bergen": "letters/bergen.txt"}
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
        "{sub/b.md, page 1}\n\na lighthouse by the well\n\n",
        "{a.txt, page 0}\n\nthe well is dry\n\n",
    ]
    assert row["text"] == "".join(texts)
    assert row["title"] == "farm, 2 documents"
    pages, gists = pages_and_gists(row["text"], row["pages"])
    assert [page.text for page in pages] == texts
    assert [gist.gist for gist in gists] == ["{sub/b.md, page 1} gist", "{a.txt, page 0} gist"]


RED, DRY, GEESE = "The barn is red.", "The well is dry.", "Geese\ncame. Nobody knows why."
LONG = f"{RED} {DRY} {GEESE} Snow fell."


@pytest.mark.parametrize(
    ("question", "answer", "quoted"),
    [
        # The sentence that matches question or answer best, and those beside it.
        ("Is a well dry?", None, [(1, f"{RED} {DRY} Geese came.")]),
        ("?", "The well.", [(1, f"{RED} {DRY} Geese came.")]),
        ("Who knows?", "Nobody.", [(1, "Geese came. Nobody knows why. Snow fell.")]),
        ("Any snow?", None, [(1, "Nobody knows why. Snow fell.")]),
        # Both pages have it; a page that the memory lacks has none.
        ("Red?", "A red barn of oak.", [(0, "The barn, of oak, is red."), (1, f"{RED} {DRY}")]),
        ("Rye?", "Rye.", []),
    ],
)  # fmt: skip
def test_answers_quote_the_best_sentence_of_each_page(
    question: str, answer: str | None, quoted: list[tuple[int, str]]
) -> None:
    pages = [page("a", 0, "The barn, of\noak, is red."), page("a", 1, LONG), page("a", 2, "")]
    row = {
        "document_id": "a", "question_id": "q", "method": "m", "answer": answer, "problem": None,
        "detail": None, "num_context_words": 20, "memory": "shared", "page_indexes": [0, 1, 2, 9],
    }  # fmt: skip
    (found,) = quoted_answers([row], pages, question, FILES)
    assert (found.num_pages, len(found.pages), {p.file for p in found.pages}) == (3, 3, {"a.txt"})
    assert [(p.page_index, p.passage) for p in found.pages if p.score] == quoted
