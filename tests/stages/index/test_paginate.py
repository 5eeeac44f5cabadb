"""Pagination by hand, and of random texts: who chose each page's end, what the model was shown."""

import asyncio
import math
import re
from collections.abc import Callable
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.engine import Request
from pipeline.core.errors import AccountingError
from pipeline.core.rows import UnitRows
from stages.index.paginate import PaginateByModel, PaginateByTokens, PaginateChat, PaginateUniform
from stages.tables.pages import Page
from stages.text.chat_text import Turn, said_by, turns_of
from stages.text.fit_to_limit import segments
from stages.text.words import Paragraphs, num_words
from tests.support.reading import (
    FAMILIES,
    PLENTY,
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

ONE, TWO, THREE = "The bell rings at noon. ", "Nobody admits it.\n\n", "It was wind, he says."
FIRST_DATE, DATE = "\f[2023/05/20 (Sat) 10:00]\n", "\f[2023/05/30 (Tue) 21:48]\n"
ROUNDS = (
    f"{FIRST_DATE}user: Hi.\n\nassistant: Hello!\nHow are you?\n\n", "user: Fine.\n\n",
    f"{DATE}assistant: Welcome back.\n\nuser: user: is a word.\n\n", "user: Bye.\n\n",
)  # fmt: skip


def by_model(
    min_words: int, max_words: int, tail_words: int = 0, **settings: Any
) -> PaginateByModel:
    values = {
        "page_breaks": False, "paragraphs": "lines", "preceding_words": 0, "following": "nothing",
        "label_rule": "within_limits", **settings,
    }  # fmt: skip
    return PaginateByModel(
        min_words=min_words, max_words=max_words, tail_words=tail_words, **values
    )


def uniform(words: int, max_words: int, **settings: Any) -> PaginateUniform:
    values = {"page_breaks": False, "paragraphs": "lines", **settings}
    return PaginateUniform(words=words, max_words=max_words, **values)


def lines(*counts: int) -> UnitRows:
    """A document of one paragraph per count, of so many words, all different."""
    texts = (" ".join(f"p{i}w{j}" for j in range(n)) for i, n in enumerate(counts))
    return UnitRows(document=document("\n".join(texts) + "\n"))


def labels(prompt: str) -> list[int]:
    return [int(label) for label in re.findall(r"^<(\d+)>$", prompt, re.MULTILINE)]


@pytest.mark.parametrize(
    ("rule", "tail_words", "replies", "offered", "expected"),
    [
        # Window 1: 10+10+10+10+10 = 50 words, the sixth would make it 60. At least 25: after 3, 4,
        # 5. Window 2 starts with paragraph 5: all that is left, 40 words; labels after 7 and 8. <6>
        # is not among them.
        ("within_limits", 0, ["Break point: <4>", "Break point: <6>"], [[3, 4, 5], [7, 8]],
         [(40, "model"), (40, "fallback")]),
        # Window 1: 10, 20, 30, 40, 50, 60: with the sixth it has 55 or more. The third paragraph
        # brings it to 25, so the first label is before that. Window 2: 40 words, all that is left.
        ("notebook", 35, ["<2>", "<5>"], [[2, 3, 4, 5, 6], [4, 5, 6, 7, 8]],
         [(20, "model"), (30, "model"), (30, "end")]),
    ],
)  # fmt: skip
def test_labels_stand_where_the_page_has_min_words_and_in_the_notebook_one_earlier(
    rule: str, tail_words: int, replies: list[str], offered: list[list[int]], expected: list[Any]
) -> None:
    engine = in_turn(*replies)
    stage = by_model(25, 55, tail_words=tail_words, label_rule=rule)
    pages, calls = run(stage, lines(*[10] * 8), engine)
    assert [(call.page_index, call.prompt) for call in calls] == [
        (0, "break_point"), (1, "break_point"),
    ]  # fmt: skip
    assert [labels(prompt) for prompt in engine.prompts()] == offered
    assert [(page.num_words, page.chosen_by) for page in pages] == expected


@pytest.mark.parametrize(
    ("rule", "problem", "context_tokens"),
    [
        ({"reply": "There is no good place."}, None, PLENTY),
        ({"reply": "Break point: <1>"}, None, PLENTY),  # before min_words
        ({"reply": "Break point: <5>"}, None, PLENTY),  # beyond the window
        ({"finish_reason": "abort"}, "engine_failed", PLENTY), ({"hang": True}, "timeout", PLENTY),
        ({"reply": "<2>"}, "context_overflow", 50),
    ],
)  # fmt: skip
def test_without_a_legal_label_the_last_is_taken(
    tmp_path: Path, rule: dict[str, Any], problem: str | None, context_tokens: int
) -> None:
    stage = by_model(15, 45, tail_words=11)
    engine = scripted(tmp_path, rule, context_tokens=context_tokens)
    pages, _ = run(stage, lines(*[10] * 5), engine, deadline_seconds=deadline(rule))
    assert [(page.num_words, page.chosen_by, page.problem) for page in pages] == [
        (40, "fallback", problem), (10, "end", None),
    ]  # fmt: skip


def test_words_before_the_window_or_the_whole_previous_page_are_shown() -> None:
    rows = lines(*[10] * 7)
    for preceding_words in (13, None):
        engine = in_turn("Label: <2>", "Label: <4>", "Label: <6>")
        run(by_model(15, 45, 11, preceding_words=preceding_words), rows, engine, prompts="qmsum")
        first, *later = (prompt.partition("What comes just before") for prompt in engine.prompts())
        assert first[1] == ""
        for end, (_, _, text) in zip((20, 40), later, strict=True):
            before, _, _ = text.partition("\n\n")[2].partition("\n\nThe stretch to cut:")
            assert before.split() == rows.document.text.split()[end - (preceding_words or 20) : end]


def test_what_follows_the_window() -> None:
    paragraph = " ".join(f"p4w{n}" for n in range(13))
    for following, shown in (("ellipsis", "..."), ("paragraph", f"{paragraph}\n...")):
        engine = in_turn("<3>", "<5>")
        run(by_model(15, 45, following=following), lines(10, 10, 10, 10, 13, 10), engine)
        first, second = engine.prompts()
        assert f"<4>\n\nAfter that the text goes on:\n\n{shown}\n\nAt which" in first
        assert "goes on" not in second  # the window ends with the text


def test_pages_must_tile_the_text_and_one_without_text_says_why() -> None:
    stage, rows = by_model(15, 45), lines(*[10] * 5)
    pages, _ = run(stage, rows, Listener(lambda _: "<2>"))
    for wrong in (pages[1:], pages[::-1], [*pages, pages[-1]], []):
        with pytest.raises(AccountingError, match="do not tile"):
            stage.check(rows, wrong)
    (page,) = stage.failed(rows, "unit_failed", "a line of ours")
    assert (page.text, page.chosen_by, page.problem) == (None, None, "unit_failed")
    assert page.detail == "a line of ours"


# Which label to choose at each call: an index into those offered, or null for babble.
choices = st.lists(st.none() | st.integers(0, 30), min_size=1, max_size=12)
odd_texts = st.text(alphabet="ab .!\n\r\t\u3000。！中文:B’\u2028", max_size=300)
sizes = st.integers(1, 60)
# min_words, max_words and tail_words
limits = st.tuples(sizes, sizes, sizes).map(lambda n: (min(n[:2]), max(n[:2]), n[2] - 1))


def reader(choices: list[int | None]) -> Listener:
    left = cycle(choices)

    def reply(request: Request) -> str:
        offered, choice = labels(content(request)), next(left)
        return "Nowhere." if choice is None else f"Break point: <{offered[choice % len(offered)]}>"

    return Listener(reply)


def whole(pages: list[Page], text: str) -> None:
    """Pages tile the text, count from 0 and are read from where they say. None is without words,
    but of a text without any, which is one page; an empty text has none."""
    assert "".join(page.text or "" for page in pages) == text
    assert all(page.num_words for page in pages) if text.split() else len(pages) == bool(text)
    assert [page.page_index for page in pages] == list(range(len(pages)))
    assert all(a.end_char == b.start_char for a, b in pairwise(pages))
    assert all(page.text == text[page.start_char : page.end_char] for page in pages)
    assert all(page.num_words == num_words(page.text or "") for page in pages)


@pytest.mark.sampled
@settings(max_examples=150, deadline=None)
@given(odd_texts, st.sampled_from(["lines", "blank_lines", "auto"]), limits, choices)
def test_odd_texts_are_tiled(
    text: str, how: Paragraphs, words: tuple[int, int, int], chosen: list[int | None]
) -> None:
    rows = UnitRows(document=document(text))
    pages, _ = run(by_model(*words, paragraphs=how), rows, reader(chosen))
    whole(pages, text)
    even, _ = run(uniform(words[1], words[1], paragraphs=how), rows, reader(chosen))
    whole(even, text)
    assert all(page.num_words <= words[1] for page in pages)


def even(words: int, max_words: int = 60, page_ends: str = "pauses") -> PaginateUniform:
    return uniform(words, max_words, paragraphs="blank_lines", page_ends=page_ends)


def at_pauses(min_words: int, max_words: int, page_ends: str = "pauses") -> PaginateByModel:
    return by_model(min_words, max_words, paragraphs="blank_lines", page_ends=page_ends)


def unit(*paragraphs: str) -> UnitRows:
    return UnitRows(document=document("\n\n".join(paragraphs)))


def para(num: int, end: str = ".") -> str:
    return "word " * (num - 1) + "word" + end


def ends(pages: list[Page]) -> list[str]:
    return [" ".join((page.text or "").split()[-2:]) for page in pages]


def test_no_page_ends_after_a_heading() -> None:
    novel = unit(para(20, " there."), "CHAPTER II.", "A Night Alone", para(18, " dark."), para(20))
    pages, _ = run(even(23), novel, never())
    # Ends after 21, 45 and 65 words; those after 23 and 26, the headings, are none.
    assert ends(pages) == ["word there.", "word dark.", "word word."]
    pages, _ = run(even(23, page_ends="any"), novel, never())
    assert ends(pages)[0] == "CHAPTER II."
    engine = always("<1>")
    pages, _ = run(at_pauses(20, 50), novel, engine)
    prompt, _ = engine.prompts()
    # The headings are one with their text, as they stand in it.
    assert prompt.count("<1>") == 1 and "<2>\n" in prompt and "<3>" not in prompt
    assert "<1>\nCHAPTER II.\n\nA Night Alone\n\nword" in prompt
    assert ends(pages) == ["word there.", "word word."]


def test_a_heading_before_a_long_paragraph_stays_with_its_first_sentences() -> None:
    """66 words are over a window of 60: they are cut at sentences, but not after the heading."""
    text = " ".join(para(8) for _ in range(8))
    pages, _ = run(even(12, max_words=60), unit(para(10), "THE TOWER", text), never())
    assert [page.num_words for page in pages] == [10, 10, *[8] * 7]
    assert (pages[1].text or "").startswith("THE TOWER\n\nword")


@pytest.mark.parametrize(
    ("end", "rest", "before", "after"),
    [
        # 19, 29 and 32 words, then 52: 29 is nearest to 27, and 32 is next.
        (" added,", ['"I shall go."'], "word added,", 'shall go."'),
        # 19, 29, then 32 + 3 + 1
        (" it:", ["Full fathom five,\nthy father lies,", "drowned."], "word it:", "lies, drowned."),
        # 19, 29, then 33 + 4
        (" tower", ["[The tower of 1066,", "now gone] fell down."], "word tower", "fell down."),
    ],
)
def test_no_page_ends_inside_a_sentence(end: str, rest: list[str], before: str, after: str) -> None:
    rows = unit(para(19), para(9, end), *rest, para(20))
    for page_ends, first in (("pauses", after), ("any", before)):
        pages, _ = run(even(29, page_ends=page_ends), rows, never())
        assert ends(pages)[0] == first
        engine = always("<2>")
        run(at_pauses(20, 60, page_ends), rows, engine)
        assert (f"{before}\n<2>" in engine.prompts()[0]) == (page_ends == "any")


@pytest.mark.parametrize(
    ("stage", "paragraphs", "pages"),
    [
        (even(40), (40, 40, 3), [40, 43]), (even(40), (40, 40, 4), [40, 40, 4]),
        (even(40), (3,), [3]),
        # A window of 60 words, labels from 30 words on: after 30 and 40, which leave 13 and 3.
        (at_pauses(30, 60), (30, 10, 3), [30, 13]),
        # The window's end at 60 leaves 5: the text's end stands in its place.
        (at_pauses(50, 60), (40, 20, 5), [65]), (at_pauses(50, 60), (40, 20, 6), [60, 6]),
    ],
)  # fmt: skip
def test_no_page_has_under_a_tenth_of_the_words_of_one(
    stage: PaginateByModel | PaginateUniform, paragraphs: tuple[int, ...], pages: list[int]
) -> None:
    engine = always("<1>")
    made, _ = run(stage, unit(*map(para, paragraphs)), engine)
    assert [page.num_words for page in made] == pages
    assert not any("<2>" in prompt for prompt in engine.prompts())


def test_the_families_of_readagents_tables_keep_their_pages_and_ids() -> None:
    of_papers = [name for name in FAMILIES if name.startswith("readagent")]
    assert {family(name).settings["page_ends"] for name in of_papers} == {"any"}
    assert family("qmsum").settings["page_ends"] == "pauses"
    assert "page_ends" not in even(40, page_ends="any").hashed()
    assert "page_ends" not in at_pauses(20, 40, "any").hashed()
    assert even(40).hashed()["page_ends"] == "pauses"


@pytest.mark.parametrize(
    ("tokens", "max_tokens", "parts"),
    [
        (str.split, 13, [ONE + TWO + THREE]), (str.split, 12, [ONE + TWO, THREE]),
        (str.split, 8, [ONE + TWO, THREE]), (str.split, 7, [ONE, TWO, THREE]),
        (str.split, 5, [ONE, TWO, THREE]),
        (str.split, 4, ["The bell rings at ", "noon. " + TWO, "It was wind, he ", "says."]),
        (str.split, 1, [*(f"{word} " for word in ONE.split()), "Nobody ", "admits ", "it.\n\n",
                    "It ", "was ", "wind, ", "he ", "says."]),
        # A header of three words stays with what follows.
        (str.split, 6, ["user: Hello. ", f"{DATE}user: Good day. ", "Who rang?"]),
        # A word too long is cut between characters.
        (list, 4, ["ab ", "abcd", "efgh", "ij. ", "Ab"]),
    ],
)  # fmt: skip
def test_whole_sentences_as_many_as_fit_else_words(
    tokens: Callable[[str], list[str]], max_tokens: int, parts: list[str]
) -> None:
    async def count(part: str) -> int:
        return len(tokens(part))

    text = "".join(parts)
    spans = asyncio.run(segments(text, max_tokens, count))
    assert [text[start:end] for start, end in spans] == parts


def test_no_segment_crosses_a_form_feed() -> None:
    first, *second = "one two three.\n", "\ffour five six. ", "seven eight.\n"
    text = "".join([first, *second])
    for tokens, parts in ((100, [first, "".join(second)]), (4, [first, *second])):
        stage = PaginateByTokens(page_breaks=True, segment_tokens=tokens)
        rows, calls = run(stage, UnitRows(document=document(text)), never())
        assert ([page.text for page in rows], calls) == (parts, ())


def test_a_long_text_is_measured_a_few_times_a_segment() -> None:
    """Never the whole of it: no text of more than three times the limit."""
    text = "The bell of the old mill rings at noon, and nobody admits it. " * 3000
    measured: list[int] = []

    async def count(part: str) -> int:
        measured.append(len(part.split()))
        return measured[-1]

    spans = asyncio.run(segments(text, 500, count))
    assert len(spans) == math.ceil(3000 / (500 // 13))
    assert len(measured) <= 6 * len(spans)
    assert max(measured) <= 3 * 500


def pages(text: str, value: Any) -> list[str]:
    rows, _ = run(PaginateChat(value=value), UnitRows(document=document(text)), never())
    return [page.text for page in rows]


def test_rounds_begin_with_the_user_and_have_turns() -> None:
    first, second, third, last = ROUNDS
    assert pages("".join(ROUNDS), "round") == [*ROUNDS]
    assert pages("".join(ROUNDS), "session") == [first + second, third + last]
    for no_chat in ("", "A plain text.\n\nOf two paragraphs.", f"{FIRST_DATE}\n\n"):
        assert pages(no_chat, "round") == [no_chat]
    assert turns_of(first) == [Turn("user", "Hi."), Turn("assistant", "Hello!\nHow are you?")]
    assert turns_of(third)[1] == Turn("user", "user: is a word.")
    assert said_by(first + second, "user") == "Hi. Fine."
