"""Arithmetic on spans of characters. Pure functions."""

from collections.abc import Sequence

from pipeline.core.rows import Span


def covered_chars(gold: Sequence[Span], read: Sequence[Span]) -> int:
    """The number of characters of `gold` that are in `read`. Spans are half-open and may
    overlap."""
    mine, theirs = _merged(gold), _merged(read)
    return sum(
        max(0, min(a.end_char, b.end_char) - max(a.start_char, b.start_char))
        for a in mine
        for b in theirs
    )


def _merged(spans: Sequence[Span]) -> list[Span]:
    """The characters as disjoint spans in order."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start_char, s.end_char)):
        if merged and span.start_char <= merged[-1].end_char:
            end_char = max(merged[-1].end_char, span.end_char)
            merged[-1] = Span(merged[-1].start_char, end_char)
        elif span.end_char > span.start_char:
            merged.append(span)
    return merged
