"""Pagination by hand, and of random texts: who chose each page's end, what the model was shown."""

import re
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pipeline.core.engine import Request
from pipeline.core.errors import AccountingError
from pipeline.core.rows import UnitRows
from stages.index.paginate import PaginateByModel, PaginateUniform
from stages.tables.pages import Page
from stages.text.words import Paragraphs, num_words
from tests.support.reading import (
    Listener,
    always,
    content,
    deadline,
    document,
    family,
    in_turn,
    never,
    run,
    scripted,
)

SETTINGS: dict[str, Any] = {
    "page_breaks": False, "paragraphs": "lines", "preceding_words": 0, "following": "nothing",
    "label_rule": "within_limits",
}  # fmt: skip


def by_model(
    min_words: int, max_words: int, tail_words: int = 0, **settings: Any
) -> PaginateByModel:
    sizes = {"min_words": min_words, "max_words": max_words, "tail_words": tail_words}
    return PaginateByModel(**{**SETTINGS, **sizes, **settings})


def uniform(words: int, max_words: int, **settings: Any) -> PaginateUniform:
    sizes = {"words": words, "max_words": max_words}
    return PaginateUniform(**{"page_breaks": False, "paragraphs": "lines", **sizes, **settings})


def lines(*counts: int) -> UnitRows:
    """A document of one paragraph per count, of so many words, all different."""
    texts = (" ".join(f"p{i}w{j}" for j in range(n)) for i, n in enumerate(counts))
    return UnitRows(document=document("\n".join(texts) + "\n"))


def words(made: list[Page]) -> list[int]:
    return [page.num_words for page in made]


def chosen_by(made: list[Page]) -> list[str | None]:
    assert all(page.problem is None for page in made)
    return [page.chosen_by for page in made]


def labels(prompt: str) -> list[int]:
    return [int(label) for label in re.findall(r"^<(\d+)>$", prompt, re.MULTILINE)]


def test_labels_stand_where_the_page_has_min_words() -> None:
    engine = in_turn("Break point: <4>", "Break point: <6>")
    # Window 1: 10+10+10+10+10 = 50 words, the sixth would make it 60. At least 25: after 3, 4, 5.
    # Window 2 starts with paragraph 5: all that is left, 40 words; labels after 7 and 8. <6> is
    # not among them.
    made, calls = run(by_model(25, 55), lines(*[10] * 8), engine)
    assert [(call.page_index, call.prompt) for call in calls] == [
        (0, "break_point"), (1, "break_point"),
    ]  # fmt: skip
    assert [labels(prompt) for prompt in engine.prompts()] == [[3, 4, 5], [7, 8]]
    assert words(made) == [40, 40]
    assert chosen_by(made) == ["model", "fallback"]


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"reply": ""}, None),
        ({"reply": "There is no good place."}, None),
        ({"reply": "Break point: <1>"}, None),  # before min_words
        ({"reply": "Break point: <5>"}, None),  # beyond the window
        ({"reply": "Break point: <999999999999>"}, None),
        ({"finish_reason": "abort"}, "engine_failed"),
        ({"hang": True}, "timeout"),
    ],
)
def test_without_a_legal_label_the_last_is_taken(
    tmp_path: Path, rule: dict[str, Any], problem: str | None
) -> None:
    stage, engine = by_model(15, 45, tail_words=11), scripted(tmp_path, rule)
    made, _ = run(stage, lines(*[10] * 5), engine, deadline_seconds=deadline(rule))
    assert [(page.num_words, page.chosen_by, page.problem) for page in made] == [
        (40, "fallback", problem), (10, "end", None),
    ]  # fmt: skip


def test_no_context_for_the_window_takes_the_last_label() -> None:
    engine = always("<2>", context_tokens=50)
    made, calls = run(by_model(15, 45, tail_words=11), lines(*[10] * 5), engine)
    assert (made[0].problem, made[0].chosen_by, calls) == ("context_overflow", "fallback", ())


@pytest.mark.parametrize("preceding_words", [13, None])
def test_words_before_the_window_or_the_whole_previous_page_are_shown(
    preceding_words: int | None,
) -> None:
    rows, engine = lines(*[10] * 7), in_turn("Label: <2>", "Label: <4>", "Label: <6>")
    stage = by_model(15, 45, 11, preceding_words=preceding_words)
    run(stage, rows, engine, prompts="qmsum")
    first, *later = (prompt.partition("What comes just before") for prompt in engine.prompts())
    assert first[1] == "" and len(later) == 2
    for end, (_, _, text) in zip((20, 40), later, strict=True):
        before, _, _ = text.partition("\n\n")[2].partition("\n\nThe stretch to cut:")
        assert before.split() == rows.document.text.split()[end - (preceding_words or 20) : end]


def test_the_notebooks_labels_stand_one_paragraph_earlier() -> None:
    engine = in_turn("<2>", "<5>")
    # Window 1: 10, 20, 30, 40, 50, 60: with the sixth it has 55 or more. The third paragraph brings
    # it to 25, so the first label is before that. Window 2: 40 words, all that is left.
    stage = by_model(25, 55, tail_words=35, label_rule="notebook")
    made, _ = run(stage, lines(*[10] * 8), engine)
    assert [labels(prompt) for prompt in engine.prompts()] == [[2, 3, 4, 5, 6], [4, 5, 6, 7, 8]]
    assert words(made) == [20, 30, 30]
    assert chosen_by(made) == ["model", "model", "end"]


@pytest.mark.parametrize(
    ("following", "shown"),
    [("ellipsis", "..."), ("paragraph", " ".join(f"p4w{n}" for n in range(13)) + "\n...")],
)
def test_what_follows_the_window(following: str, shown: str) -> None:
    engine = in_turn("<3>", "<5>")
    run(by_model(15, 45, following=following), lines(10, 10, 10, 10, 13, 10), engine)
    first, second = engine.prompts()
    assert f"<4>\n\nAfter that the text goes on:\n\n{shown}\n\nAt which" in first
    assert "goes on" not in second  # the window ends with the text


def test_min_words_over_max_words_is_refused() -> None:
    with pytest.raises(ValidationError, match="min_words 31 is over max_words 30"):
        by_model(31, 30)
    assert by_model(30, 30).min_words == 30


@pytest.mark.parametrize("stage", [by_model(15, 45), uniform(30, 100)])
def test_texts_with_little_to_cut(stage: PaginateByModel | PaginateUniform) -> None:
    assert run(stage, UnitRows(document=document("")), never()) == ([], ())
    for text in ("word", " \n\n ", "\n\n one two\n\n\n"):
        (page,), _ = run(stage, UnitRows(document=document(text)), never())
        assert (page.text, page.start_char, page.end_char) == (text, 0, len(text))


def test_pages_must_tile_the_text() -> None:
    stage, rows = by_model(15, 45), lines(*[10] * 5)
    made, _ = run(stage, rows, Listener(lambda _: "<2>"))
    for wrong in (made[1:], made[::-1], [*made, made[-1]], []):
        with pytest.raises(AccountingError, match="do not tile"):
            stage.check(rows, wrong)


def test_a_document_that_failed_has_one_page_without_text() -> None:
    (page,) = by_model(15, 45).failed(lines(10), "unit_failed", "a line of ours")
    assert (page.text, page.chosen_by, page.problem) == (None, None, "unit_failed")
    assert page.detail == "a line of ours"


# Which label to choose at each call: an index into those offered, or null for babble.
choices = st.lists(st.none() | st.integers(0, 30), min_size=1, max_size=12)
odd_texts = st.text(alphabet="ab .!\n\r\t\u3000。！中文:B’\u2028", max_size=300)


@st.composite
def limits(draw: st.DrawFn) -> tuple[int, int, int]:
    """min_words, max_words and tail_words, none above max_words."""
    most = draw(st.integers(1, 60))
    return draw(st.integers(1, most)), most, draw(st.integers(0, most))


def reader(choices: list[int | None]) -> Listener:
    """An engine that chooses among the labels that stand in its prompt, round and round."""
    left = cycle(choices)

    def reply(request: Request) -> str:
        offered, choice = labels(content(request)), next(left)
        return "Nowhere." if choice is None else f"Break point: <{offered[choice % len(offered)]}>"

    return Listener(reply)


def whole(made: list[Page], text: str) -> None:
    """Pages tile the text, count from 0 and are read from where they say."""
    assert "".join(page.text or "" for page in made) == text
    assert [page.page_index for page in made] == list(range(len(made)))
    assert all(a.end_char == b.start_char for a, b in pairwise(made))
    assert all(page.text == text[page.start_char : page.end_char] for page in made)
    assert all(page.num_words == num_words(page.text or "") for page in made)


@pytest.mark.sampled
@settings(max_examples=150, deadline=None)
@given(odd_texts, st.sampled_from(["lines", "blank_lines", "auto"]), limits(), choices)
def test_odd_texts_are_tiled(
    text: str, how: Paragraphs, words: tuple[int, int, int], chosen: list[int | None]
) -> None:
    rows = UnitRows(document=document(text))
    made, _ = run(by_model(*words, paragraphs=how), rows, reader(chosen))
    whole(made, text)
    even, _ = run(uniform(words[1], words[1], paragraphs=how), rows, reader(chosen))
    whole(even, text)
    assert all(page.num_words for page in [*made, *even]) or not text.split()
    assert all(page.num_words <= words[1] for page in made)


PAUSES = {**SETTINGS, "paragraphs": "blank_lines", "page_ends": "pauses"}


def even(words: int, max_words: int = 60, page_ends: str = "pauses") -> PaginateUniform:
    return uniform(words, max_words, paragraphs="blank_lines", page_ends=page_ends)


def at_pauses(min_words: int, max_words: int, page_ends: str = "pauses") -> PaginateByModel:
    return by_model(min_words, max_words, **{**PAUSES, "page_ends": page_ends})


def unit(*paragraphs: str) -> UnitRows:
    return UnitRows(document=document("\n\n".join(paragraphs)))


def para(num: int, end: str = ".") -> str:
    return "word " * (num - 1) + "word" + end


def ends(made: list[Page]) -> list[str]:
    """The last two words of each page."""
    return [" ".join((page.text or "").split()[-2:]) for page in made]


NOVEL = (para(20, " there."), "CHAPTER II.", "A Night Alone", para(18, " dark."), para(20))


def test_no_uniform_page_ends_after_a_heading() -> None:
    made, _ = run(even(23), unit(*NOVEL), never())
    # Ends after 21, 45 and 65 words; those after 23 and 26, the headings, are none.
    assert ends(made) == ["word there.", "word dark.", "word word."]
    before, _ = run(even(23, page_ends="any"), unit(*NOVEL), never())
    assert ends(before)[0] == "CHAPTER II."


def test_no_label_stands_after_a_heading() -> None:
    engine = always("<1>")
    made, _ = run(at_pauses(20, 50), unit(*NOVEL), engine)
    prompt, _ = engine.prompts()
    # The headings are one with their text, as they stand in it.
    assert prompt.count("<1>") == 1 and "<2>\n" in prompt and "<3>" not in prompt
    assert "<1>\nCHAPTER II.\n\nA Night Alone\n\nword" in prompt
    assert ends(made) == ["word there.", "word word."]


def test_a_heading_before_a_long_paragraph_stays_with_its_first_sentences() -> None:
    """66 words are over a window of 60: they are cut at sentences, but not after the heading."""
    text = " ".join(para(8) for _ in range(8))
    made, _ = run(even(12, max_words=60), unit(para(10), "THE TOWER", text), never())
    assert [page.num_words for page in made] == [10, 10, *[8] * 7]
    assert (made[1].text or "").startswith("THE TOWER\n\nword")


SAID = (para(19), para(9, " added,"), '"I shall go."', para(20))
VERSE = (para(19), para(9, " it:"), "Full fathom five,\nthy father lies,", "drowned.", para(20))
NOTE = (para(19), para(9, " tower"), "[The tower of 1066,", "now gone] fell down.", para(20))


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
    made, _ = run(even(29), unit(*paragraphs), never())
    assert ends(made)[0] == after
    made, _ = run(even(29, page_ends="any"), unit(*paragraphs), never())
    assert ends(made)[0] == before
    shown = [always("<2>"), always("<2>")]
    run(at_pauses(20, 60, "any"), unit(*paragraphs), shown[0])
    run(at_pauses(20, 60, "pauses"), unit(*paragraphs), shown[1])
    assert [f"{before}\n<2>" in engine.prompts()[0] for engine in shown] == [True, False]


def test_a_last_page_under_a_tenth_joins_the_one_before() -> None:
    def sizes(*counts: int) -> list[int]:
        made, _ = run(even(40), unit(*map(para, counts)), never())
        return [page.num_words for page in made]

    assert sizes(40, 40, 3) == [40, 43]
    assert sizes(40, 40, 4) == [40, 40, 4]
    assert sizes(3) == [3]


def test_no_label_leaves_a_rest_under_a_tenth_of_a_window() -> None:
    # A window of 60 words, labels from 30 words on: after 30 and 40, which leave 13 and 3.
    engine = always("<1>")
    made, _ = run(at_pauses(30, 60), unit(*map(para, (30, 10, 3))), engine)
    assert [page.num_words for page in made] == [30, 13]
    assert "<1>" in engine.prompts()[0] and "<2>" not in engine.prompts()[0]
    # The window's end at 60 leaves 5: the text's end stands in its place.
    made, calls = run(at_pauses(50, 60), unit(*map(para, (40, 20, 5))), never())
    assert ([page.num_words for page in made], calls) == ([65], ())
    made, _ = run(at_pauses(50, 60), unit(*map(para, (40, 20, 6))), never())
    assert [page.num_words for page in made] == [60, 6]


def test_the_families_of_readagents_tables_keep_their_pages_and_ids() -> None:
    for name in ("readagent", "readagent_quality", "readagent_qmsum",
                 "readagent_narrativeqa_gutenberg", "readagent_narrativeqa_movie"):  # fmt: skip
        assert family(name).settings["page_ends"] == "any"
    assert family("qmsum").settings["page_ends"] == "pauses"
    assert "page_ends" not in even(40, page_ends="any").hashed()
    assert "page_ends" not in at_pauses(20, 40, "any").hashed()
    assert even(40).hashed()["page_ends"] == "pauses"
