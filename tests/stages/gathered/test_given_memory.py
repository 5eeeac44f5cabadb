"""Pages and gists that a document brings along, and the document that is gathered of pages."""

import json
from dataclasses import replace
from typing import Any

import pytest

from pipeline.core.rows import UnitRows
from stages.gathered.gathered_pages import GivenGists, MemoryPage, PaginateGiven, gather
from stages.tables.pages import Gist, Page
from tests.support.reading import document, never, run

TEXT = "one two\n\nthree four five"


def made(pages: Any) -> tuple[list[Page], list[Gist]]:
    """The pages and gists of a document with these `pages` in its metadata. Asks no model."""
    about = replace(document(TEXT), metadata=json.dumps({"pages": pages}))
    found, calls = run(PaginateGiven(), UnitRows(document=about), never())
    gists, more = run(GivenGists(), UnitRows(about, (), {Page: tuple(found)}), never())
    assert calls == more == ()
    return list(found), list(gists)


def test_pages_begin_where_the_metadata_says_and_have_their_gists() -> None:
    given = [{"start_char": 0, "gist": "1 2", "file": "a"}, {"start_char": 9, "gist": "3"}]
    pages, gists = made(given)
    assert [(page.text, page.num_words) for page in pages] == [
        ("one two\n\n", 2), ("three four five", 3),
    ]  # fmt: skip
    assert [(gist.gist, gist.num_words, gist.problem) for gist in gists] == [
        ("1 2", 2, None), ("3", 1, None),
    ]  # fmt: skip


WRONG = [
    None, "x", [{"start_char": 3}], [{"start_char": 0}, {"start_char": 0}],
    [{"start_char": 0}, {"start_char": len(TEXT)}], [{"start_char": 0}, {"gist": "no start"}],
]  # fmt: skip


@pytest.mark.parametrize("pages", WRONG)
def test_a_document_without_pages_is_one_without_a_gist(pages: Any) -> None:
    own, gists = made(pages)
    assert [page.text for page in own] == [TEXT]
    assert [(gist.gist, gist.problem) for gist in gists] == [(None, "bad_input")]


def page(document_id: str, page_index: int, text: str, gist: str | None = "gist") -> MemoryPage:
    return MemoryPage(document_id, "shared", page_index, text, gist, len(text.split()))


PAGES = [
    page("a", 0, "the well is dry"),
    page("a", 1, "the barn is red"),
    page("b", 0, "hens and geese"),
    page("b", 1, "a lighthouse by the well"),
]
FILES = {"a": "a.txt", "b": "sub/{b}.md"}


def test_the_best_pages_up_to_the_words_document_by_document() -> None:
    """Both words of the question are in b 1, one in a 0; the others tie at 0, in their order."""

    def chosen(words: int) -> list[tuple[str, int]]:
        found = gather("farm", PAGES, FILES, "Is a well by the lighthouse?", words)
        return [(page.document_id, page.page_index) for page in found.pages]

    assert chosen(16) == [("b", 0), ("b", 1), ("a", 0), ("a", 1)]
    assert chosen(15) == [("b", 1), ("a", 0), ("a", 1)]
    assert chosen(12) == [("b", 1), ("a", 0)]
    assert chosen(1) == [("b", 1)]  # however long


def test_names_and_gists_count_in_the_ranking() -> None:
    by_gist = [*PAGES, page("c", 0, "nothing", "the harvest of rye")]
    found = gather("farm", by_gist, {**FILES, "c": "c"}, "rye", 1)
    assert [page.document_id for page in found.pages] == ["c"]
    by_name = [*PAGES, page("letters/bergen", 0, "nothing")]
    named = {**FILES, "letters/bergen": "letters/bergen.txt"}
    assert [p.document_id for p in gather("farm", by_name, named, "Bergen", 1).pages] == [
        "letters/bergen"
    ]


def test_a_gathered_document_brings_its_pages_and_gists_below_headings() -> None:
    found = gather("farm", PAGES, FILES, "Is a well by the lighthouse?", 12)
    row = found.document()
    texts = [
        "{sub/(b).md, page 1}\n\na lighthouse by the well\n\n",
        "{a.txt, page 0}\n\nthe well is dry\n\n",
    ]
    assert row["text"] == "".join(texts)
    assert row["title"] == "farm, 2 documents"
    about = replace(document(row["text"]), metadata=json.dumps({"pages": row["pages"]}))
    pages, _ = run(PaginateGiven(), UnitRows(document=about), never())
    gists, _ = run(GivenGists(), UnitRows(about, (), {Page: tuple(pages)}), never())
    assert [page.text for page in pages] == texts
    assert [gist.gist for gist in gists] == ["{sub/(b).md, page 1} gist", "{a.txt, page 0} gist"]
