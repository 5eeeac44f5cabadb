"""Pages nearest to any query of a question (MemoRAG section 2.1)."""

from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import replace

from pydantic import Field, PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.rows import Question, UnitRows
from pipeline.engines.embedder import EmbedderSettings
from stages.query.make_queries import searched
from stages.retrieve.look_up import LookUp, lost_turn, ranked_turn, turn_row
from stages.retrieve.ranked_pages import by_bm25, nearest
from stages.tables.keys import Embedding
from stages.tables.lookups import Dropped, Lookup, Query, RankedPage
from stages.tables.pages import Page
from stages.text.ranking import Ranking


class Search(LookUp):
    """Base class: a turn per query, which requests its best `top_k` pages and uses those that no
    earlier query found; the others are dropped, reason duplicate. So the pages used are those of
    all queries, each once. A page without a vector, and what shares nothing with a query (score 0),
    is not found; by the question itself the latter is, as it is by the look-ups of pages.
    """

    name = "search"
    top_k: PositiveInt

    def found(
        self, rows: UnitRows, question: Question, rankings: Sequence[Sequence[RankedPage]]
    ) -> list[Lookup]:
        """The turns of one question; `rankings`: the pages of each query, best first."""
        if lost := lost_turn(question, rows.of(Query, question)):
            return [lost]
        made: list[Lookup] = []
        seen: set[int] = set()
        for query, ranking in zip(searched(rows, question), rankings, strict=True):
            turn = ranked_turn(question, _matching(query, ranking), self.top_k)
            pages = turn.requested
            made.append(
                replace(
                    turn,
                    turn=len(made),
                    query_index=query.query_index,
                    used=tuple(page for page in pages if page not in seen),
                    dropped=tuple(Dropped(page, "duplicate") for page in pages if page in seen),
                )
            )
            seen.update(pages)
        return made or [turn_row(question)]


def _matching(query: Query, ranking: Sequence[RankedPage]) -> list[RankedPage]:
    has_vector = [page for page in ranking if page.score is not None]
    return has_vector if query.kind == "question" else [page for page in has_vector if page.score]


class SearchByBM25(Search):
    """By BM25 over the pages; `bm25` as for the look-up of that name."""

    kind = "bm25"
    version = 1
    reads = (Page, Query)
    bm25: Ranking

    async def run(self, rows: UnitRows, ask: Ask) -> list[Lookup]:
        """Questions -> their turns. No calls. Problem: upstream (a query without a reply)."""
        return await to_thread(self._run, rows)  # as the look-up of that name

    def _run(self, rows: UnitRows) -> list[Lookup]:
        made: list[Lookup] = []
        for question in rows.questions:
            texts = [query.text or "" for query in searched(rows, question)]
            rankings = [by_bm25(self.bm25, rows[Page], text) for text in texts]
            made += self.found(rows, question, rankings)
        return made


class SearchByVectors(Search):
    """By the embeddings of the pages, made once for all questions; a page's best chunk counts."""

    kind = "dense"
    version = 1
    reads = (Embedding, Query)
    # Not hashed here: the step of the embeddings names the model.
    embedder: EmbedderSettings = Field(exclude=True)

    async def run(self, rows: UnitRows, ask: Ask) -> list[Lookup]:
        """Questions -> their turns. No calls. Problem: upstream (a query without a reply)."""
        texts = [[row.text or "" for row in searched(rows, q)] for q in rows.questions]
        vectors = await self.embedder.embed([text for own in texts for text in own], "query")
        rankings = iter(nearest(rows[Embedding], vectors) if len(vectors) else [])
        made: list[Lookup] = []
        for question, own in zip(rows.questions, texts, strict=True):
            made += self.found(rows, question, [next(rankings) for _ in own])
        return made
