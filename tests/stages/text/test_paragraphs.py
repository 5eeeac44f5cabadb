"""Paragraph and sentence spans: they tile, and they end where a reader would say so."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.text.words import Paragraphs, Spans, paragraph_spans, sentence_spans

TEXTS = st.text(
    st.sampled_from("ab Z.!?…\"')]”:\n\t 。！？』é中1") | st.characters(codec="utf-8"), max_size=80
)


def cut(text: str, spans: Spans) -> list[str]:
    return [text[start:end] for start, end in spans]


def tiles(text: str, spans: Spans) -> bool:
    ends = [0, *(end for _, end in spans)]
    in_order = all(start == before for (start, _), before in zip(spans, ends, strict=False))
    return in_order and ends[-1] == len(text) and all(a < b for a, b in pairwise(ends))


@given(TEXTS)
def test_sentences_tile_the_text(text: str) -> None:
    assert tiles(text, sentence_spans(text))


@given(TEXTS, st.sampled_from(["lines", "blank_lines", "auto"]))
def test_paragraphs_tile_the_text(text: str, how: Paragraphs) -> None:
    spans = paragraph_spans(text, how)
    assert tiles(text, spans)
    assert len(spans) == 1 or all(part.strip() for part in cut(text, spans))


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("He came. She left!  Why? Well…", ["He came. ", "She left!  ", "Why? ", "Well…"]),
        ('"No." (Yes!) It is 3.5 metres.', ['"No." ', "(Yes!) ", "It is 3.5 metres."]),
        ("Mr. Ash met J. R. Oak, i.e. me. So do I. Bye", [
            "Mr. Ash met J. R. Oak, i.e. me. ", "So do I. ", "Bye",
        ]),
        ("你好。再见！", ["你好。", "再见！"]),
        ("A: one\nPhD B: two\nor three", ["A: one\n", "PhD B: two\nor three"]),
        ("A heading\n\n  Text", ["A heading\n\n  ", "Text"]),
        ("no end", ["no end"]),
        ("", []),
    ],
)  # fmt: skip
def test_sentence_ends(text: str, sentences: list[str]) -> None:
    assert cut(text, sentence_spans(text)) == sentences


@pytest.mark.parametrize(
    ("text", "how", "paragraphs"),
    [
        ("a\nb\n\nc", "lines", ["a\n", "b\n\n", "c"]),
        ("a\nb\n \nc\n", "blank_lines", ["a\nb\n \n", "c\n"]),
        ("a\nb\n\nc", "auto", ["a\nb\n\n", "c"]),
        ("a\nb\n\n", "auto", ["a\n", "b\n\n"]),
        ("\n\na", "lines", ["\n\na"]),
        (" \n ", "auto", [" \n "]),
        ("", "auto", []),
    ],
)
def test_paragraph_ends(text: str, how: Paragraphs, paragraphs: list[str]) -> None:
    assert cut(text, paragraph_spans(text, how)) == paragraphs


@pytest.mark.parametrize("piece", [".", ". ", "\n", " ", '."', "。", "a\n ", "Mr. "])
def test_long_runs_take_linear_time(piece: str) -> None:
    started = time.perf_counter()
    sentence_spans(piece * 50_000)
    assert time.perf_counter() - started < 2
