"""Split a text into paragraphs and sentences, as half-open spans that tile it."""

import re
from itertools import pairwise
from typing import Literal

Paragraphs = Literal["lines", "blank_lines", "auto"]
Spans = list[tuple[int, int]]
_BREAKS: dict[str, re.Pattern[str]] = {
    "lines": re.compile(r"\n"),
    "blank_lines": re.compile(r"\n[^\S\n]*\n\s*"),
}
# A full stop after these or after an initial ends no sentence; "I" is a word more often than an
# initial.
_ABBREVIATIONS = ("Mr", "Mrs", "Ms", "Dr", "Prof", "Rev", "Capt", "St", "vs", r"e\.g", r"i\.e")
_ABBREVIATED = "".join(rf"(?<!\b{word}(?=\.\s))" for word in (*_ABBREVIATIONS, "[A-HJ-Z]"))
# A sentence ends after . ! ? … with closing quotes or brackets, after a CJK full stop, at a blank
# line, and before a line "Speaker: ". The look-behind keeps runs of dots from quadratic time.
_SENTENCE_END = re.compile(
    rf"(?<![.!?…]){_ABBREVIATED}[.!?…]+[\"'”’)\]]*\s+"
    r"|[。！？]+[”’」』）]*\s*"
    r"|\n[^\S\n]*\n\s*"
    r"|\n(?=[^\W\d_][\w .'’-]{0,40}:\s)"
)


def paragraph_spans(text: str, how: Paragraphs) -> Spans:
    """Half-open spans that tile `text`, one per paragraph, its trailing white space included.

    `lines`: every line is a paragraph (transcripts). `blank_lines`: blank lines separate them.
    `auto`: `blank_lines` where the text has one, else `lines`. White space before the first word
    belongs to the first paragraph; a text without any word is one paragraph.
    """
    if how == "auto":
        how = "blank_lines" if _BREAKS["blank_lines"].search(text.strip()) else "lines"
    first_word = len(text) - len(text.lstrip())  # breaks before it end no paragraph
    ends = [m.end() for m in _BREAKS[how].finditer(text, first_word)] + [len(text)]
    spans: Spans = []
    start = 0
    for end in ends:
        if text[start:end].strip():
            spans.append((start, end))
            start = end
        elif spans and end > start:
            spans[-1] = (spans[-1][0], end)
            start = end
    return spans or ([(0, len(text))] if text else [])


def sentence_spans(text: str) -> Spans:
    """Half-open spans that tile `text`, one per sentence, its trailing white space included.

    A heuristic by punctuation, blank lines and speakers, good enough to cut at and to rank.
    """
    ends = [m.end() for m in _SENTENCE_END.finditer(text)]
    cuts = sorted({0, *ends, len(text)})
    return list(pairwise(cuts))
