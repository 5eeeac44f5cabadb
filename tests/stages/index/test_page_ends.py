"""Where pages end with `page_ends` pauses, by hand: headings, verse, notes, last pages."""

from typing import Any

import pytest

from pipeline.core.rows import UnitRows
from pipeline.engines.extractive import ExtractiveEngine
from stages.index.gist_pages import FollowUpGists
from stages.index.paginate import PaginateByModel, PaginateInConversations, PaginateUniform
from stages.tables.pages import Page
from tests.stages.index import test_paginate as paginate
from tests.support.reading import always, document, family, never, run

SETTINGS = {**paginate.SETTINGS, "paragraphs": "blank_lines", "page_ends": "pauses"}


def uniform(words: int, max_words: int = 60, page_ends: str = "pauses") -> PaginateUniform:
    return PaginateUniform.model_validate(
        {"page_breaks": False, "paragraphs": "blank_lines", "words": words, "max_words": max_words,
         "page_ends": page_ends}
    )  # fmt: skip


def by_model(min_words: int, max_words: int, page_ends: str = "pauses") -> PaginateByModel:
    return paginate.by_model(min_words, max_words, **{**SETTINGS, "page_ends": page_ends})


def unit(*paragraphs: str) -> UnitRows:
    return UnitRows(document=document("\n\n".join(paragraphs)))


def words(num: int, end: str = ".") -> str:
    return "word " * (num - 1) + "word" + end


def ends(made: list[Page]) -> list[str]:
    """The last two words of each page."""
    return [" ".join((page.text or "").split()[-2:]) for page in made]


NOVEL = (words(20, " there."), "CHAPTER II.", "A Night Alone", words(18, " dark."), words(20))


def test_no_uniform_page_ends_after_a_heading() -> None:
    made, _ = run(uniform(23), unit(*NOVEL), never())
    # Ends after 21, 45 and 65 words; those after 23 and 26, the headings, are none.
    assert ends(made) == ["word there.", "word dark.", "word word."]
    before, _ = run(uniform(23, page_ends="any"), unit(*NOVEL), never())
    assert ends(before)[0] == "CHAPTER II."


def test_no_label_stands_after_a_heading() -> None:
    engine = always("<1>")
    made, _ = run(by_model(20, 50), unit(*NOVEL), engine)
    prompt, _ = engine.prompts()
    # The headings are one with their text, as they stand in it.
    assert prompt.count("<1>") == 1 and "<2>\n" in prompt and "<3>" not in prompt
    assert "<1>\nCHAPTER II.\n\nA Night Alone\n\nword" in prompt
    assert ends(made) == ["word there.", "word word."]


def test_a_heading_before_a_long_paragraph_stays_with_its_first_sentences() -> None:
    """66 words are over a window of 60: they are cut at sentences, but not after the heading."""
    text = " ".join(words(8) for _ in range(8))
    made, _ = run(uniform(12, max_words=60), unit(words(10), "THE TOWER", text), never())
    assert [page.num_words for page in made] == [10, 10, *[8] * 7]
    assert (made[1].text or "").startswith("THE TOWER\n\nword")


SAID = (words(19), words(9, " added,"), '"I shall go."', words(20))
VERSE = (words(19), words(9, " it:"), "Full fathom five,\nthy father lies,", "drowned.", words(20))
NOTE = (words(19), words(9, " tower"), "[The tower of 1066,", "now gone] fell down.", words(20))


@pytest.mark.parametrize(
    ("paragraphs", "before", "after"),
    [
        # 19, 29 and 32 words, then 52: 29 is nearest to 27, and 32 is next.
        (SAID, "word added,", 'shall go."'),
        (VERSE, "word it:", "lies, drowned."),  # 19, 29, then 32 + 3 + 1
        (NOTE, "word tower", "fell down."),  # 19, 29, then 33 + 4
    ],
)
def test_no_page_ends_inside_a_sentence(
    paragraphs: tuple[str, ...], before: str, after: str
) -> None:
    made, _ = run(uniform(29), unit(*paragraphs), never())
    assert ends(made)[0] == after
    made, _ = run(uniform(29, page_ends="any"), unit(*paragraphs), never())
    assert ends(made)[0] == before
    shown = [always("<2>"), always("<2>")]
    run(by_model(20, 60, "any"), unit(*paragraphs), shown[0])
    run(by_model(20, 60, "pauses"), unit(*paragraphs), shown[1])
    assert [f"{before}\n<2>" in engine.prompts()[0] for engine in shown] == [True, False]


def test_a_last_page_under_a_tenth_joins_the_one_before() -> None:
    def sizes(*counts: int) -> list[int]:
        made, _ = run(uniform(40), unit(*map(words, counts)), never())
        return [page.num_words for page in made]

    assert sizes(40, 40, 3) == [40, 43]
    assert sizes(40, 40, 4) == [40, 40, 4]
    assert sizes(3) == [3]


def test_no_label_leaves_a_rest_under_a_tenth_of_a_window() -> None:
    # A window of 60 words, labels from 30 words on: after 30 and 40, which leave 13 and 3.
    engine = always("<1>")
    made, _ = run(by_model(30, 60), unit(*map(words, (30, 10, 3))), engine)
    assert [page.num_words for page in made] == [30, 13]
    assert "<1>" in engine.prompts()[0] and "<2>" not in engine.prompts()[0]
    # The window's end at 60 leaves 5: the text's end stands in its place.
    made, calls = run(by_model(50, 60), unit(*map(words, (40, 20, 5))), never())
    assert ([page.num_words for page in made], calls) == ([65], ())
    made, _ = run(by_model(50, 60), unit(*map(words, (40, 20, 6))), never())
    assert [page.num_words for page in made] == [60, 6]


def test_gists_follow_conversations_about_the_same_ends() -> None:
    settings: dict[str, Any] = {
        **SETTINGS, "min_words": 20, "max_words": 40, "pages_per_conversation": 4,
    }  # fmt: skip
    text = unit(*NOVEL, *SAID, *VERSE)
    made, _ = run(PaginateInConversations(**settings, tail_words=0), text, ExtractiveEngine(10**6))
    rows = UnitRows(document=text.document, tables={Page: tuple(made)})
    gists, _ = run(FollowUpGists(**settings), rows, ExtractiveEngine(10**6))
    assert len(gists) == len(made) > 2
    alone, _ = run(by_model(20, 40), text, ExtractiveEngine(10**6))
    assert [page.end_char for page in made] == [page.end_char for page in alone]


def test_the_families_of_readagents_tables_keep_their_pages_and_ids() -> None:
    for name in ("readagent", "readagent_quality", "readagent_qmsum",
                 "readagent_narrativeqa_gutenberg", "readagent_narrativeqa_movie"):  # fmt: skip
        assert family(name).settings["page_ends"] == "any"
    assert family("qmsum").settings["page_ends"] == "pauses"
    assert "page_ends" not in uniform(40, page_ends="any").hashed()
    assert "page_ends" not in by_model(20, 40, "any").hashed()
    assert uniform(40).hashed()["page_ends"] == "pauses"
