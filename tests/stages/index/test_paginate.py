"""Pagination by hand: who chose each page's end, and what the model was shown."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.core.errors import AccountingError
from pipeline.core.rows import UnitRows
from stages.index.paginate import PaginateByModel, PaginateUniform
from stages.index.windows import Following, LabelRule
from stages.tables.pages import Page
from tests.support.reading import (
    Listener,
    always,
    deadline,
    document,
    in_turn,
    never,
    run,
    scripted,
)


def by_model(
    min_words: int,
    max_words: int,
    tail_words: int = 0,
    preceding_words: int | None = 0,
    following: Following = "nothing",
    label_rule: LabelRule = "within_limits",
) -> PaginateByModel:
    return PaginateByModel(
        page_breaks=False,
        paragraphs="lines",
        min_words=min_words,
        max_words=max_words,
        tail_words=tail_words,
        preceding_words=preceding_words,
        following=following,
        label_rule=label_rule,
    )


def uniform(words: int, max_words: int = 100) -> PaginateUniform:
    return PaginateUniform(page_breaks=False, paragraphs="lines", words=words, max_words=max_words)


def lines(*counts: int) -> UnitRows:
    """A document of one paragraph per count, of so many words, all different."""
    texts = (" ".join(f"p{i}w{j}" for j in range(n)) for i, n in enumerate(counts))
    return UnitRows(document=document("\n".join(texts) + "\n"))


def words(made: list[Page]) -> list[int]:
    return [page.num_words for page in made]


def choices(made: list[Page]) -> list[str | None]:
    assert all(page.problem is None for page in made)
    return [page.chosen_by for page in made]


def labels(prompt: str) -> list[int]:
    return [int(label) for label in re.findall(r"^<(\d+)>$", prompt, re.MULTILINE)]


def test_labels_stand_where_the_page_has_min_words() -> None:
    engine = in_turn("Break point: <4>", "Break point: <6>")
    # Window 1: 10+10+10+10+10 = 50 words, the sixth would make it 60. At least 25: after 3, 4, 5.
    # Window 2 starts with paragraph 5: all that is left, 40 words; labels after 7 and 8. <6> is
    # not among them.
    made, _ = run(by_model(25, 55), lines(*[10] * 8), engine)
    assert [labels(prompt) for prompt in engine.prompts()] == [[3, 4, 5], [7, 8]]
    assert words(made) == [40, 40]
    assert choices(made) == ["model", "fallback"]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "   \n",
        "There is no good place.",
        "Break point: <1>",  # before min_words
        "Break point: <0>",
        "Break point: <5>",  # beyond the window
        "Break point: <999999999999>",
        "Label: none",
    ],
)
def test_a_reply_without_a_legal_label_takes_the_last(tmp_path: Path, reply: str) -> None:
    engine = scripted(tmp_path, {"prompt": "break_point", "reply": reply})
    made, calls = run(by_model(15, 45, tail_words=11), lines(*[10] * 5), engine)
    assert (words(made), choices(made)) == ([40, 10], ["fallback", "end"])
    assert [call.reply for call in calls] == [reply]


@pytest.mark.parametrize(
    ("rule", "problem"),
    [({"finish_reason": "abort"}, "engine_failed"), ({"hang": True}, "timeout")],
)
def test_no_reply_takes_the_last_label_and_says_why(
    tmp_path: Path, rule: dict[str, Any], problem: str
) -> None:
    stage = by_model(15, 45, tail_words=11)
    made, _ = run(
        stage, lines(*[10] * 5), scripted(tmp_path, rule), deadline_seconds=deadline(rule)
    )
    assert [(page.chosen_by, page.problem) for page in made] == [
        ("fallback", problem),
        ("end", None),
    ]
    assert words(made) == [40, 10]


def test_no_context_for_the_window_takes_the_last_label() -> None:
    engine = always("<2>", context_tokens=50)
    made, calls = run(by_model(15, 45, tail_words=11), lines(*[10] * 5), engine)
    assert made[0].problem == "context_overflow"
    assert ([page.chosen_by for page in made], calls) == (["fallback", "end"], ())


def test_the_words_before_the_window_are_shown_exactly() -> None:
    engine = in_turn("Label: <2>", "Label: <4>")
    rows = lines(*[10] * 5)
    run(by_model(15, 45, 11, preceding_words=13), rows, engine, prompts="qmsum")
    first, second = engine.prompts()
    assert "What comes just before" not in first
    before = " ".join(rows.document.text.split()[20 - 13 : 20])
    assert f":\n\n{before}\n\nThe stretch to cut:\n\np2w0 " in second
    assert "p0w6" not in second


def test_the_notebooks_labels_stand_one_paragraph_earlier() -> None:
    engine = in_turn("<2>", "<5>")
    # Window 1: 10, 20, 30, 40, 50, 60: with the sixth it has 55 or more. The third paragraph brings
    # it to 25, so the first label is before that. Window 2: 40 words, all that is left.
    rule: LabelRule = "notebook"
    made, _ = run(by_model(25, 55, tail_words=35, label_rule=rule), lines(*[10] * 8), engine)
    assert [labels(prompt) for prompt in engine.prompts()] == [[2, 3, 4, 5, 6], [4, 5, 6, 7, 8]]
    assert words(made) == [20, 30, 30]
    assert choices(made) == ["model", "model", "end"]


def test_the_whole_previous_page_is_shown() -> None:
    rows, engine = lines(*[10] * 9), in_turn("<2>", "<4>", "<6>")
    run(by_model(15, 45, 31, preceding_words=None), rows, engine)
    first, second, third = engine.prompts()
    texts = rows.document.text.splitlines()
    assert "What comes just before" not in first
    assert f":\n\n{texts[0]}\n{texts[1]}\n\nThe stretch to cut:\n\n{texts[2]}\n" in second
    assert f":\n\n{texts[2]}\n{texts[3]}\n\nThe stretch to cut:\n\n{texts[4]}\n" in third
    assert texts[1] not in third


@pytest.mark.parametrize(
    ("following", "shown"),
    [("ellipsis", "..."), ("paragraph", " ".join(f"p4w{n}" for n in range(13)) + "\n...")],
)
def test_what_follows_the_window(following: Following, shown: str) -> None:
    engine = in_turn("<3>", "<5>")
    run(by_model(15, 45, following=following), lines(10, 10, 10, 10, 13, 10), engine)
    first, second = engine.prompts()
    assert f"<4>\n\nAfter that the text goes on:\n\n{shown}\n\nAt which" in first
    assert "goes on" not in second  # the window ends with the text


def test_a_call_says_which_page_it_was_about() -> None:
    _, calls = run(by_model(15, 45), lines(*[10] * 7), in_turn("<2>", "<4>", "<7>"))
    assert [(call.page_index, call.prompt) for call in calls] == [
        (0, "break_point"), (1, "break_point"), (2, "break_point"),
    ]  # fmt: skip


def test_min_words_over_max_words_is_refused() -> None:
    with pytest.raises(ValidationError, match="min_words 31 is over max_words 30"):
        by_model(31, 30)
    assert by_model(30, 30).min_words == 30


@pytest.mark.parametrize("stage", [by_model(15, 45), uniform(30)])
def test_texts_with_little_to_cut(stage: PaginateByModel | PaginateUniform) -> None:
    assert run(stage, UnitRows(document=document("")), never()) == ([], ())
    for text in ("word", " \n\n ", "\n\n one two\n\n\n"):
        (page,), _ = run(stage, UnitRows(document=document(text)), never())
        assert (page.text, page.start_char, page.end_char) == (text, 0, len(text))


@pytest.mark.parametrize("start", ["\n\n", "\n", "  \n \n\t"])
def test_white_space_before_a_long_paragraph_is_no_page(start: str) -> None:
    rows = UnitRows(document=document(start + "Bob: " + "word " * 99))
    for stage in (by_model(20, 60), uniform(60, max_words=60)):
        made, _ = run(stage, rows, always("no break point"))
        # 100 words in pieces of 10; a window holds six of them, and what is left is a page.
        assert words(made) == [60, 40]
        assert made[0].text == start + "Bob: " + "word " * 59


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
