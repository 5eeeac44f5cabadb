"""What pages are searched by: items extracted from sessions or rounds of a chat, the keys made with
them (LongMemEval sections 5.3 and 5.4), and embeddings of pages, gists or keys.

A page ranks by its best chunk: an embedding model may cut a whole page at its input length, and one
vector would average all its topics. ReadAgent (section 4.2) has one vector a page, as with
`embedder.chunk_words=null`.
"""

import asyncio
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, ClassVar, Literal

from pydantic import Field

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Record, Span, UnitRows
from pipeline.engines.embedder import EmbedderSettings
from pipeline.work.stage import Role, Stage
from stages.prompts.longmemeval import (
    ExtractEvents,
    ExtractFacts,
    ExtractKeyphrases,
    ExtractSummary,
    ListFromChat,
    OfChat,
)
from stages.tables.pages import Embedding, Expansion, Gist, Key, Page
from stages.text.chat_text import day_of, said_by, session_dates
from stages.text.words import num_words, sentence_spans, without_header, word_spans

Side = Literal["user", "both"]
_PROMPTS: Mapping[str, type[OfChat[Any]]] = {
    "summary": ExtractSummary, "keyphrases": ExtractKeyphrases, "facts": ExtractFacts,
    "events": ExtractEvents,
}  # fmt: skip


class Expand(Stage):
    """Ask the role extractor for items of each page: `extracted` says which. `side`: the turns that
    it is shown, the user's alone in the paper. If it is not `enabled`, or `extracted` is none, it
    asks nothing. With `extraction_examples` prompts for facts and events have ten examples
    (appendix D).
    """

    name = "expand"
    version = 1
    reads = (Page,)
    writes = Expansion
    role: ClassVar[Role] = "extractor"
    prompts = tuple(_PROMPTS.values())
    extracted: Literal["none", "summary", "keyphrases", "facts", "events"]
    side: Side
    enabled: bool
    extraction_examples: bool

    def prompts_used(self) -> tuple[type[Prompt[Any]], ...]:
        is_asked = self.enabled and self.extracted != "none"
        return (_PROMPTS[self.extracted],) if is_asked else ()

    async def run(self, rows: UnitRows, ask: Ask) -> list[Expansion]:
        """Pages -> Expansions, in page order. A text that several histories share is asked about
        once, for events once per date. Problems: truncated, unparseable; empty_input (a page
        without words); context_overflow, timeout, refused, engine_failed."""
        if not self.prompts_used():
            return [Expansion.about(page, kind="none") for page in rows[Page]]
        dates = session_dates([page.text or "" for page in rows[Page]])
        pages = zip(rows[Page], dates, strict=True)
        of_pages = await asyncio.gather(*(self._of_page(page, date, ask) for page, date in pages))
        return [row for expansions in of_pages for row in expansions]

    async def _of_page(self, page: Page, date: str, ask: Ask) -> list[Expansion]:
        kind = self.extracted.removesuffix("s")  # fact, of facts
        row = Expansion.about(page, kind=kind, day=day_of(date) or None)
        chat = _side_of(page, self.side)
        if not chat:
            return [replace(row, problem="empty_input")]
        # Only events depend on the session's date: other replies are shared whatever it is.
        said_at = date if self.extracted == "events" else ""
        prompt = _PROMPTS[self.extracted](chat, said_at)
        if isinstance(prompt, ListFromChat):
            prompt = replace(prompt, with_examples=self.extraction_examples)
        reply = await ask(prompt, Subject(page_index=page.page_index), is_shared=True)
        items: Sequence[Any] = [reply.value] if isinstance(reply.value, str) else reply.value or ()
        if self.extracted != "events":
            items = [(None, text) for text in items]
        return [
            replace(row, item_index=index, text=text, day=day or row.day)
            for index, (day, text) in enumerate(items)
        ] or [replace(row, problem=reply.problem)]

    def empty(self, rows: UnitRows, about: Record) -> Expansion:
        return Expansion.about(about, kind=self.extracted.removesuffix("s"))


def _side_of(page: Page, side: Side) -> str:
    """The page's turns, all or the user's, without the session's header."""
    text = page.text or ""
    return said_by(text, "user") if side == "user" else without_header(text).strip()


class MakeKeys(Stage):
    """`join`: merge, one key with the items that were extracted before the value; separate, the
    value is a key and the items together another; replace, the items alone. With split_ each item,
    of a summary each sentence, is joined by itself. Where there are no items the value is the key.
    merge_as_published as merge, but a page whose reply was an empty list has no key: so it is lost
    from the index in the authors' code (index_expansion_utils.py). `side`: the turns of the value,
    the user's in the paper. No calls.
    """

    name = "keys"
    version = 3
    reads = (Page, Expansion)
    writes = Key
    join: Literal[
        "merge", "separate", "replace", "split_merge", "split_separate", "split_replace",
        "merge_as_published",
    ]  # fmt: skip
    side: Side

    async def run(self, rows: UnitRows, ask: Ask) -> list[Key]:
        """Pages, and what was extracted from them -> their Keys, in page order."""
        expansions: dict[int, list[Expansion]] = defaultdict(list)
        for row in rows[Expansion]:
            expansions[row.page_index].append(row)
        dates = session_dates([page.text or "" for page in rows[Page]])
        keys: list[Key] = []
        for page, date in zip(rows[Page], dates, strict=True):
            text = _side_of(page, self.side)
            value = Key.about(page, kind="value", text=text, day=day_of(date) or None)
            joined = self._joined(value, expansions[page.page_index])
            keys += [replace(key, key_index=index) for index, key in enumerate(joined)]
        return keys

    def _joined(self, value: Key, expansions: Sequence[Expansion]) -> list[Key]:
        items = [
            replace(value, kind=row.kind, text=row.text, day=row.day)
            for row in expansions
            if row.text is not None
        ]
        if not items:
            is_empty = any(row.kind in ("fact", "event") and not row.problem for row in expansions)
            is_lost = self.join == "merge_as_published" and is_empty
            return [replace(value, text=None) if is_lost else value]
        texts = [item.text or "" for item in items]
        if not self.join.startswith("split_"):
            sign = "; " if items[0].kind == "keyphrase" else " "
            if len(items) > 1:  # a single item keeps its day
                items = [replace(items[0], text=sign.join(texts), day=value.day)]
        elif items[0].kind == "summary":
            items = [
                replace(item, text=text[start:end].strip())
                for item, text in zip(items, texts, strict=True)
                for start, end in sentence_spans(text)
            ]
        if self.join.endswith("separate"):
            return [value, *items]
        if self.join.endswith("replace"):
            return items
        return [replace(value, kind="merged", text=f"{item.text} {value.text}") for item in items]

    def empty(self, rows: UnitRows, about: Record) -> Key:
        return Key.about(about, kind="value")


class _EmbedTexts(Stage):
    name = "embed"
    writes = Embedding
    # Excluded from the hash: paths and devices change no vector; see `hashed`.
    embedder: EmbedderSettings = Field(exclude=True)

    def hashed(self) -> dict[str, Any]:
        return {**super().hashed(), **self.embedder.hashed()}

    def refuse_unusable(self, place: str) -> None:
        self.embedder.refuse_unusable(place)

    @abstractmethod
    def texts(self, rows: UnitRows) -> list[tuple[str, list[Span]]]:
        """For each page, in page order, a text, and its spans that get a vector each."""

    def in_chunks(self, text: str | None) -> tuple[str, list[Span]]:
        return text or "", chunks(text or "", self.embedder.chunk_words)

    async def run(self, rows: UnitRows, ask: Ask) -> list[Embedding]:
        """Pages, gists or keys -> an Embedding per chunk or key, in page order. No calls.

        Problem: empty_input (one row without a vector for a page or gist without words).
        """
        embeddings: list[Embedding] = []
        parts: list[str] = []
        for page, (text, spans) in enumerate(self.texts(rows)):
            row = Embedding.about(rows.document, page_index=page)
            if not spans:
                embeddings.append(replace(row, problem="empty_input"))
            for index, span in enumerate(spans):
                start, end = span.start_char, span.end_char
                parts.append(text[start:end])
                embeddings.append(replace(row, chunk_index=index, start_char=start, end_char=end))
        vectors = iter(await self.embedder.embed(parts, "document"))
        return [
            row if row.problem else replace(row, embedding=tuple(next(vectors).tolist()))
            for row in embeddings
        ]


class EmbedPages(_EmbedTexts):
    """The pages' own text."""

    kind = "pages"
    version = 1
    reads = (Page,)

    def texts(self, rows: UnitRows) -> list[tuple[str, list[Span]]]:
        return [self.in_chunks(page.text) for page in rows[Page]]


class EmbedGists(_EmbedTexts):
    """The pages' gists: what ReadAgent embeds for NarrativeQA (section 4.2)."""

    kind = "gists"
    version = 1
    reads = (Gist,)

    def texts(self, rows: UnitRows) -> list[tuple[str, list[Span]]]:
        return [self.in_chunks(gist.gist) for gist in rows[Gist]]


class EmbedKeys(_EmbedTexts):
    """The keys of pages, a vector each whatever `embedder.chunk_words` says; a page's best key
    counts (LongMemEval section 5.3). The embedding model cuts what is longer than its input."""

    kind = "keys"
    version = 1
    reads = (Key,)

    def hashed(self) -> dict[str, Any]:
        model = {"embedder": {"model": self.embedder.identity()}} if self.embedder.model else {}
        return {**super().hashed(), **model}

    def texts(self, rows: UnitRows) -> list[tuple[str, list[Span]]]:
        """For each page its keys, one a line."""
        texts: list[tuple[str, list[Span]]] = []
        for _, of_page in groupby(rows[Key], lambda row: row.page_index):
            text, spans = "", list[Span]()
            for row in of_page:
                key = row.text or ""
                if num_words(key):
                    spans.append(Span(len(text), len(text) + len(key)))
                text += f"{key}\n"
            texts.append((text[:-1], spans))
        return texts


def chunks(text: str, words: int | None) -> list[Span]:
    """Consecutive spans of `words` words of `text`, the last perhaps shorter. None: one span."""
    spans = word_spans(text)
    step = words or max(1, len(spans))
    parts = [spans[start : start + step] for start in range(0, len(spans), step)]
    return [Span(part[0][0], part[-1][1]) for part in parts]
