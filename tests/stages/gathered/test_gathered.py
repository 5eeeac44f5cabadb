"""Pages and gists that a document brings along, the document that is gathered of pages, and the
passage of a page that an answer rests on."""

import json
from dataclasses import replace
from math import log
from typing import Any

import pytest

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
    row = found.document
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


BARN = "The barn is red. It was painted in May."
BREAD = "The baker sold bread. Nobody painted it."
TEXTS = [BARN, BREAD, "The barn burnt."]


def test_a_term_is_the_rarer_the_fewer_texts_have_it() -> None:
    """barn is in two of three texts, and so is paint, by its stem; bread in one."""
    weight = rarity(TEXTS)
    assert weight["barn"] == weight["paint"] == pytest.approx(log(4 / 2))
    assert weight["bread"] == pytest.approx(log(4 / 1))
    assert "the" not in weight


def sentence(word: str, words: int = 12) -> str:
    return " ".join([word.title(), *["was"] * (words - 2), "there."])


def test_it_is_the_sentence_that_shares_rare_words_with_answer_and_question() -> None:
    page = " ".join([sentence("one", 30), sentence("lighthouse", 30), sentence("three", 30)])
    weight = {"lighthous": 2.0, "on": 1.0}
    found = passage(page, "Who has the lighthouse?", "", weight)
    assert found == (sentence("lighthouse", 30), 2.0)
    assert passage(page, "?", "The lighthouse", weight) == found


def test_a_short_sentence_has_one_beside_it_and_those_that_share_words_are_kept() -> None:
    """10 + 10 words are at most 20; the third shares nothing. With a weight it is in, up to 60."""
    page = " ".join([sentence("well", 10), sentence("barn", 10), sentence("mill", 10)])
    only = passage(page, "well", "", {"well": 1.0})
    assert only[0] == " ".join([sentence("well", 10), sentence("barn", 10)])
    more = passage(page, "well", "mill", {"well": 2.0, "mill": 1.0})
    assert more == (page, 3.0)
    longer = " ".join([sentence("well", 35), sentence("mill", 35)])
    assert passage(longer, "well mill", "", {"well": 2.0, "mill": 1.0})[0] == sentence("well", 35)


def test_headings_and_rows_of_a_table_have_lines_of_their_own() -> None:
    table = "| Part | Cost |\n|---|---|\n| wheel | 40 |"
    page = f"# The mill\n\nThe wheel\nis of oak.\n\n{table}\n"
    weight = {"mill": 1.0, "wheel": 1.0, "oak": 1.0}
    assert passage(page, "mill wheel oak", "", weight) == (
        f"# The mill\nThe wheel is of oak.\n{table}",
        3.0,
    )
