"""Pagination of random texts against a second, naive one that counts lists of words."""

import re
from collections.abc import Callable
from itertools import count, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.rows import UnitRows
from stages.index.paginate import PaginateByModel, PaginateUniform
from stages.prompts.pages_and_gists import BreakPoint
from stages.tables.pages import Page
from stages.text.words import Paragraphs
from tests.support.reading import Listener, content, document, run

pytestmark = pytest.mark.sampled

Words = list[str]
# A text as its paragraphs, a paragraph as its sentences, a sentence as how many words it has.
Shape = list[list[int]]
shapes = st.lists(st.lists(st.integers(1, 15), min_size=1, max_size=9), min_size=1, max_size=25)
ends_of_paragraphs = st.sampled_from(["\n", "\n\n", "\n \n\n"])
# Which label to choose at each call: an index into those offered, or null for babble.
choices = st.lists(st.none() | st.integers(0, 30), min_size=1, max_size=12)
odd_texts = st.text(alphabet="ab .!\n\r\t\u3000。！中文:B’\u2028", max_size=300)


@st.composite
def limits(draw: st.DrawFn) -> tuple[int, int, int]:
    """min_words, max_words and tail_words, none above max_words."""
    most = draw(st.integers(1, 60))
    return draw(st.integers(1, most)), most, draw(st.integers(0, most))


def stage(words: tuple[int, int, int], how: Paragraphs, preceding: int = 0) -> PaginateByModel:
    return PaginateByModel(
        page_breaks=False,
        paragraphs=how,
        min_words=words[0],
        max_words=words[1],
        tail_words=words[2],
        preceding_words=preceding,
        following="nothing",
        label_rule="within_limits",
    )


def named(shape: Shape) -> list[list[Words]]:
    """The shape's sentences in words, no two alike."""
    number = count()
    return [
        [[f"w{next(number)}" for _ in range(n - 1)] + [f"w{next(number)}."] for n in paragraph]
        for paragraph in shape
    ]


def joined(paragraphs: list[list[Words]], between: str) -> str:
    return between.join(" ".join(" ".join(s) for s in sentences) for sentences in paragraphs)


def naive_pieces(paragraphs: list[list[Words]], max_words: int) -> list[Words]:
    """Paragraphs, and of those above max_words runs of sentences up to a sixth of it; no piece
    is longer than max_words."""
    found: list[Words] = []
    for sentences in paragraphs:
        if sum(map(len, sentences)) <= max_words:
            found.append([word for sentence in sentences for word in sentence])
            continue
        run: Words = []
        most = max(1, max_words // 6)
        for part in (part for sentence in sentences for part in cut(sentence, max_words, most)):
            if run and len(run + part) > most:
                found.append(run)
                run = []
            run = run + part
        found.append(run)
    return found


def cut(sentence: Words, max_words: int, most: int) -> list[Words]:
    """The sentence, or what it falls into if it is too long by itself."""
    if len(sentence) <= max_words:
        return [sentence]
    return [sentence[start : start + most] for start in range(0, len(sentence), most)]


def naive_labels(pieces: list[Words], first: int, min_words: int, max_words: int) -> list[int]:
    window = first + 1
    while window < len(pieces) and sum(map(len, pieces[first : window + 1])) <= max_words:
        window += 1
    enough = [
        end for end in range(first + 1, window) if sum(map(len, pieces[first:end])) >= min_words
    ]
    return [*enough, window]


def naive_pages(
    pieces: list[Words],
    words: tuple[int, int, int],
    choose: Callable[[list[int]], int | None],
) -> tuple[list[tuple[Words, str]], list[list[int]]]:
    """Each page's words and who chose its end, and the labels offered at each call."""
    pages: list[tuple[Words, str]] = []
    offered: list[list[int]] = []
    first = 0
    while first < len(pieces):
        labels = naive_labels(pieces, first, words[0], words[1])
        if sum(map(len, pieces[first:])) < words[2]:
            end, chosen_by = len(pieces), "end"
        elif len(labels) == 1:
            end, chosen_by = labels[0], "rule"
        else:
            offered.append(labels)
            choice = choose(labels)
            end, chosen_by = (labels[-1], "fallback") if choice is None else (choice, "model")
        pages.append(([word for piece in pieces[first:end] for word in piece], chosen_by))
        first = end
    return pages, offered


def chooser(choices: list[int | None]) -> Callable[[list[int]], int | None]:
    """The first choice at the first call and so on, round and round."""
    calls = count()

    def choose(labels: list[int]) -> int | None:
        choice = choices[next(calls) % len(choices)]
        return None if choice is None else labels[choice % len(labels)]

    return choose


def reader(choices: list[int | None], offered: list[list[int]] | None = None) -> Listener:
    """An engine that chooses among the labels that stand in its prompt."""
    choose = chooser(choices)

    def reply(prompt: str) -> str:
        labels = [int(label) for label in re.findall(r"^<(\d+)>$", prompt, re.MULTILINE)]
        if offered is not None:
            offered.append(labels)
        chosen = choose(labels)
        return "Nowhere." if chosen is None else f"Break point: <{chosen}>\nBecause."

    return Listener(lambda request: reply(content(request)))


def whole(made: list[Page], text: str) -> None:
    """Pages tile the text, count from 0 and are read from where they say."""
    assert "".join(page.text or "" for page in made) == text
    assert [page.page_index for page in made] == list(range(len(made)))
    assert all(a.end_char == b.start_char for a, b in pairwise(made))
    assert all(page.text == text[page.start_char : page.end_char] for page in made)
    assert all(page.num_words == naive_words(page.text or "") for page in made)


def naive_words(text: str) -> int:
    """Words of `odd_texts`: a Chinese character with the punctuation after it, or a run of the
    others."""
    found = 0
    for unspaced in text.split():
        before = ""  # what the character before belongs to: nothing, Chinese, another word
        for character in unspaced:
            if character in "中文":
                found, before = found + 1, "Chinese"
            elif before == "" or (before == "Chinese" and character.isalnum()):
                found, before = found + 1, "other"
    return found


@settings(max_examples=150, deadline=None)
@given(shapes, ends_of_paragraphs, limits(), choices)
def test_pages_and_labels_are_those_counted_naively(
    shape: Shape, between: str, words: tuple[int, int, int], chosen: list[int | None]
) -> None:
    paragraphs = named(shape)
    text = joined(paragraphs, between)
    offered: list[list[int]] = []
    how: Paragraphs = "lines" if between == "\n" else "blank_lines"
    rows = UnitRows(document=document(text))
    made, _ = run(stage(words, how), rows, reader(chosen, offered))
    pieces = naive_pieces(paragraphs, words[1])
    expected, expected_labels = naive_pages(pieces, words, chooser(chosen))
    assert [((page.text or "").split(), page.chosen_by) for page in made] == expected
    assert offered == expected_labels
    assert all(page.problem is None for page in made)
    whole(made, text)


@settings(max_examples=150, deadline=None)
@given(odd_texts, st.sampled_from(["lines", "blank_lines", "auto"]), limits(), choices)
def test_odd_texts_are_tiled(
    text: str, how: Paragraphs, words: tuple[int, int, int], chosen: list[int | None]
) -> None:
    rows = UnitRows(document=document(text))
    made, _ = run(stage(words, how), rows, reader(chosen))
    whole(made, text)
    uniform, _ = run(
        PaginateUniform(page_breaks=False, paragraphs=how, words=words[1], max_words=words[1]),
        rows,
        reader(chosen),
    )
    whole(uniform, text)
    assert all(page.num_words for page in [*made, *uniform]) or not text.split()
    assert all(page.num_words <= words[1] for page in made)


@settings(max_examples=40, deadline=None)
@given(shapes, limits(), choices, choices, st.sampled_from([0, 7, 100]))
def test_a_choice_depends_on_its_start_alone(
    shape: Shape,
    words: tuple[int, int, int],
    one: list[int | None],
    other: list[int | None],
    preceding: int,
) -> None:
    rows = UnitRows(document=document(joined(named(shape), "\n")))
    engines = reader(one), reader(other)
    for engine in engines:
        run(stage(words, "lines", preceding), rows, engine, prompts="qmsum")
    first, second = ({start(e, i): e.requests[i] for i in range(len(e.requests))} for e in engines)
    shared = first.keys() & second.keys()
    assert {s: first[s].messages for s in shared} == {s: second[s].messages for s in shared}


def start(engine: Listener, index: int) -> str:
    """The first paragraph shown; no two of a text are alike."""
    fields = engine.requests[index].fields
    assert isinstance(fields, BreakPoint)
    return fields.paragraphs[0].text


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(1, 150))
def test_uniform_pages_end_nearest_to_words(shape: Shape, words: int) -> None:
    paragraphs = named(shape)
    rows = UnitRows(document=document(joined(paragraphs, "\n\n")))
    made, calls = run(
        PaginateUniform(page_breaks=False, paragraphs="blank_lines", words=words, max_words=words),
        rows,
        reader([0]),
    )
    pieces = naive_pieces(paragraphs, words)
    expected: list[Words] = []
    first = 0
    while first < len(pieces):
        ends = range(first + 1, len(pieces) + 1)
        sizes = {end: sum(map(len, pieces[first:end])) for end in ends}
        end = min(sizes, key=lambda end: (abs(sizes[end] - words), end))
        expected.append([word for piece in pieces[first:end] for word in piece])
        first = end
    assert [(page.text or "").split() for page in made] == expected
    assert {page.chosen_by for page in made} == {"rule"}
    assert calls == ()
