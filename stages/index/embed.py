"""Embed every page, gist or key of a document; no questions.

A page ranks by its best chunk: an embedding model may cut a whole page at its input length, and one
vector would average all its topics. ReadAgent (section 4.2) has one vector a page, as with
`embedder.chunk_words=null` (YAML).
"""

from abc import abstractmethod
from collections.abc import Sequence
from itertools import accumulate, groupby
from typing import Any

from pydantic import Field

from pipeline.asking.ask import Ask
from pipeline.core.rows import Span, UnitRows
from pipeline.engines.embedder import EmbedderSettings
from pipeline.work.stage import Stage
from stages.tables.keys import Embedding, Key
from stages.tables.pages import Gist, Page
from stages.text.words import num_words, word_spans


class _EmbedTexts(Stage):
    name = "embed"
    writes = Embedding
    # Excluded from the hash: paths and devices change no vector; see `hashed`.
    embedder: EmbedderSettings = Field(exclude=True)

    def hashed(self) -> dict[str, Any]:
        """Adds the model's identity and the length of chunks."""
        return {**super().hashed(), **self.embedder.hashed()}

    def refuse_unusable(self, place: str) -> None:
        self.embedder.refuse_unusable(place)

    @abstractmethod
    def texts(self, rows: UnitRows) -> list[str]:
        """The text of every page, in page order."""

    def spans(self, rows: UnitRows, texts: Sequence[str]) -> list[list[Span]]:
        """For each page the spans of its text that get a vector each."""
        return [chunks(text, self.embedder.chunk_words) for text in texts]

    async def run(self, rows: UnitRows, ask: Ask) -> list[Embedding]:
        """Pages, gists or keys -> an Embedding per chunk or key, in page order. No calls.

        Problem: empty_input (one row without a vector for a page or gist without words).
        """
        found: list[tuple[int, int, Span, str]] = []
        empty: list[Embedding] = []
        texts = self.texts(rows)
        for page_index, spans in enumerate(self.spans(rows, texts)):
            text = texts[page_index]
            found += [(page_index, n, s, _cut(text, s)) for n, s in enumerate(spans)]
            if not spans:
                lack: dict[str, Any] = {"page_index": page_index, "problem": "empty_input"}
                empty.append(Embedding.about(rows.document, **lack))
        vectors = await self.embedder.embed([text for *_, text in found], "document")
        made = [
            Embedding.about(
                rows.document,
                page_index=page_index,
                chunk_index=chunk_index,
                start_char=span.start_char,
                end_char=span.end_char,
                embedding=tuple(vector.tolist()),
            )
            for (page_index, chunk_index, span, _), vector in zip(found, vectors, strict=True)
        ]
        return sorted([*made, *empty], key=lambda row: (row.page_index, row.chunk_index))


class EmbedPages(_EmbedTexts):
    """The pages' own text."""

    kind = "pages"
    version = 1
    reads = (Page,)

    def texts(self, rows: UnitRows) -> list[str]:
        return [page.text or "" for page in rows[Page]]


class EmbedGists(_EmbedTexts):
    """The pages' gists: what ReadAgent embeds for NarrativeQA (section 4.2)."""

    kind = "gists"
    version = 1
    reads = (Gist,)

    def texts(self, rows: UnitRows) -> list[str]:
        return [gist.gist or "" for gist in rows[Gist]]


class EmbedKeys(_EmbedTexts):
    """The keys of pages, a vector each whatever `embedder.chunk_words` says; a page's best key
    counts (LongMemEval section 5.3). The embedding model cuts what is longer than its input."""

    kind = "keys"
    version = 1
    reads = (Key,)

    def hashed(self) -> dict[str, Any]:
        """Leaves out the length of chunks, which keys do not have."""
        model = {"embedder": {"model": self.embedder.identity()}} if self.embedder.model else {}
        return {**super().hashed(), **model}

    def texts(self, rows: UnitRows) -> list[str]:
        """The joined keys of each page."""
        return ["\n".join(keys) for keys in _keys_of_pages(rows)]

    def spans(self, rows: UnitRows, texts: Sequence[str]) -> list[list[Span]]:
        """The spans of each page's keys in its joined text."""
        found: list[list[Span]] = []
        for keys in _keys_of_pages(rows):
            starts = accumulate((len(key) + 1 for key in keys), initial=0)
            spans = [Span(n, n + len(key)) for n, key in zip(starts, keys, strict=False)]
            found.append([s for s, key in zip(spans, keys, strict=True) if num_words(key)])
        return found


def _keys_of_pages(rows: UnitRows) -> list[list[str]]:
    of_pages = groupby(rows[Key], lambda row: row.page_index)
    return [[row.text or "" for row in keys] for _, keys in of_pages]


def chunks(text: str, words: int | None) -> list[Span]:
    """Consecutive spans of `words` words of `text`, the last perhaps shorter. None: one span."""
    spans = word_spans(text)
    step = words or max(1, len(spans))
    parts = [spans[start : start + step] for start in range(0, len(spans), step)]
    return [Span(part[0][0], part[-1][1]) for part in parts]


def _cut(text: str, span: Span) -> str:
    return text[span.start_char : span.end_char]
