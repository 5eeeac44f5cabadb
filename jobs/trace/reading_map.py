"""The reading map of a question: its document as an axis, the gold evidence as a band across it,
and a lane per method with the raw text in its final context. Pages and notebooks show the same
lanes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from jobs.config.options import ReadOptions
from jobs.trace.trace import stored_id
from pipeline.core.sql_files import sql_beside
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)
_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, autoescape=True
)
PAGE_SPANS, READINGS = _SQL["page_spans"], _SQL["readings"]
"""Of the documents and questions in the variables `documents` and `questions`."""
_LEAST = 400  # parts of the axis; a shorter span is drawn as one, to be visible

Spans = Iterable[Mapping[str, Any]]
"""Rows with start_char and end_char, half-open, characters of the document's text."""
_Joined = list[tuple[int, int]]


@dataclass(frozen=True)
class Lane:
    """The text that one method read: its picture as SVG, and the percentages that it covers of the
    document, of the gold evidence and of each passage of it; `gold` is None without evidence."""

    svg: str
    read: float
    gold: float | None
    passages: tuple[float, ...]


def lane(num_chars: int, read: Spans, gold: Sequence[Mapping[str, Any]]) -> Lane:
    """`num_chars`: the characters of the document."""
    of_read, of_gold = _joined(read), _joined(gold)
    return Lane(
        svg=_drawn(num_chars, gold=of_gold, read=of_read),
        read=_percent(of_read, [(0, num_chars)]),
        gold=_percent(of_read, of_gold) if of_gold else None,
        passages=tuple(_percent(of_read, _joined([passage])) for passage in gold),
    )


def _percent(read: _Joined, of: _Joined) -> float:
    """Percentage of the characters in `of`, to one decimal; 0 if there are none."""
    seen = [(max(a, c), min(b, d)) for a, b in read for c, d in of if max(a, c) < min(b, d)]
    return round(100 * _length(seen) / _length(of), 1) if _length(of) else 0.0


def pages_lane(num_chars: int, pages: Sequence[Mapping[str, Any]]) -> str:
    """The lane of a memory's pages, as SVG: each is a rectangle with its data-page."""
    return _drawn(num_chars, pages=pages)


def _joined(spans: Spans) -> _Joined:
    """The spans in order; spans that touch or overlap become one."""
    found: _Joined = []
    for start, end in sorted((span["start_char"], span["end_char"]) for span in spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        elif start < end:
            found.append((start, end))
    return found


def _length(spans: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in spans)


def _drawn(num_chars: int, **parts: Any) -> str:
    return _TEMPLATES.get_template("reading_map_lane.svg.jinja").render(
        num_chars=max(num_chars, 1), least=max(num_chars, 1) / _LEAST, **parts
    )


@dataclass(frozen=True)
class ReadingMap:
    """SVG lanes by method, and of pages by memory. A notebook shows them as a table."""

    question_id: str
    document_id: str
    num_chars: int
    pages: Mapping[str, str]
    methods: Mapping[str, Lane]

    def _repr_html_(self) -> str:
        pages = {memory: Markup(svg) for memory, svg in self.pages.items()}
        methods = [(name, Markup(one.svg), one) for name, one in self.methods.items()]
        return _TEMPLATES.get_template("reading_map.jinja").render(
            map=self, pages=pages, methods=methods
        )


def read_reading_map(options: ReadOptions, question: str) -> ReadingMap:
    """The map of the first repeat. Raises UsageError if the run has no such question."""
    with options.opened() as (_, connection):
        question = stored_id(connection, "question", question)
        connection.execute("set variable question = ?", [question])
        connection.execute("set variable questions = ?", [[question]])
        (found,) = query(connection, _SQL["question"])
        connection.execute("set variable documents = ?", [[found["document_id"]]])
        num_chars, gold = found["num_chars"], found["evidence"] or ()
        return ReadingMap(
            question,
            found["document_id"],
            num_chars,
            {row["memory"]: pages_lane(num_chars, row["spans"])
             for row in query(connection, PAGE_SPANS)},
            {row["method"]: lane(num_chars, row["spans"] or (), gold)
             for row in query(connection, READINGS) if row["repeat"] == 0},
        )  # fmt: skip
