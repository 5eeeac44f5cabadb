"""Pages nearest to any query of a question (MemoRAG section 2.1)."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import PositiveInt

from pipeline.core.rows import Question, UnitRows
from stages.query.make_queries import searched
from stages.retrieve.look_up import lost_turn, ranked_turn, turn_row
from stages.retrieve.ranked_pages import ByBM25, ByVectors, RankedPages
from stages.tables.keys import Embedding
from stages.tables.lookups import Dropped, Lookup, Query, RankedPage
from stages.tables.pages import Page


class Search(RankedPages):
    """Base class: a turn per query, which requests its best `top_k` pages and uses those that no
    earlier query found; the others are dropped, reason duplicate. So the pages used are those of
    all queries, each once. A page without a vector, and what shares nothing with a query (score 0),
    is not found; by the question itself the latter is, as it is by the look-ups of pages.
    """

    name = "search"
    top_k: PositiveInt

    def texts(self, rows: UnitRows, question: Question) -> list[str]:
        return [query.text or "" for query in searched(rows, question)]

    def found(
        self, rows: UnitRows, question: Question, rankings: Sequence[Sequence[RankedPage]]
    ) -> list[Lookup]:
        """The turns of one question. Problem: upstream (a query without a reply)."""
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


class SearchByBM25(Search, ByBM25):
    """By BM25 over the pages."""

    kind = "bm25"
    version = 1
    reads = (Page, Query)


class SearchByVectors(Search, ByVectors):
    """By the embeddings of the pages; a page's best chunk counts."""

    kind = "dense"
    version = 1
    reads = (Embedding, Query)
