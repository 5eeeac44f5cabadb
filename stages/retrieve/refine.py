"""RQ-RAG's loop of retrieving and refining, by a prompt (arXiv 2404.00610, section 2.3)."""

import asyncio
from abc import abstractmethod
from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import replace

from pydantic import Field, PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.rows import Question, UnitRows
from pipeline.engines.embedder import EmbedderSettings
from pipeline.work.stage import Stage
from stages.index.context import raw_pages
from stages.prompts.memorag import ACTIONS, Action, RefineQuery
from stages.retrieve.look_up import (
    RANKS_KEPT,
    LookUp,
    by_bm25,
    each_page_once,
    lost_turn,
    nearest,
    turn_row,
)
from stages.tables.keys import Embedding
from stages.tables.lookups import Lookup, RankedPage, Refinement
from stages.tables.pages import Page
from stages.text.ranking import Ranking


class Refine(Stage):
    """Base class: a question has a trajectory for each of the paper's actions on it, rewrite,
    decompose and disambiguate. Each searches for the query that the action gives, is shown the best
    `top_k` pages of every query so far, and is asked for the next query, until these are enough or
    after `steps` queries.

    The paper's trained model may take any action at every step; here the first steps take one each,
    so there are 3 trajectories, not 3 to the power of the steps.
    """

    name = "refine"
    writes = Refinement
    prompts = (RefineQuery,)
    asks_in_turn = True
    top_k: PositiveInt
    steps: PositiveInt

    async def run(self, rows: UnitRows, ask: Ask) -> list[Refinement]:
        """Questions -> their Refinements, in question order, then by trajectory and step; calls of
        a trajectory are sequential. Problems: truncated, unparseable (the trajectory ends there);
        context_overflow, after which a later step ends it, too; timeout, refused, engine_failed.
        """
        made = await asyncio.gather(*(self._question(rows, q, ask) for q in rows.questions))
        return [row for found in made for row in found]

    async def _question(self, rows: UnitRows, question: Question, ask: Ask) -> list[Refinement]:
        walks = (self._trajectory(rows, question, n, ask) for n in range(len(ACTIONS)))
        found = [row for rows_of in await asyncio.gather(*walks) for row in rows_of]
        return [replace(row, turn=turn) for turn, row in enumerate(found)]

    async def _trajectory(
        self, rows: UnitRows, question: Question, number: int, ask: Ask
    ) -> list[Refinement]:
        made: list[Refinement] = []
        for step in range(self.steps):
            action = ACTIONS[number] if step == 0 else None
            prompt = self._prompt(rows, question, made, action)
            turn = number * self.steps + step
            asked = await ask(prompt, Subject(question_id=question.question_id, turn=turn))
            row = Refinement.about(question, turn=turn, trajectory=number, action=action)
            row = replace(row, text=asked.value, problem=asked.problem)
            seen = {page for one in made for page in one.used}
            ranked = await self.search(rows, asked.value) if asked.value else []
            best = [page.page_index for page in ranked[: self.top_k]]
            used = tuple(page for page in best if page not in seen)
            made.append(replace(row, ranked=tuple(ranked[:RANKS_KEPT]), used=used))
            if not asked.value:
                break
        return made

    def _prompt(
        self,
        rows: UnitRows,
        question: Question,
        made: Sequence[Refinement],
        action: Action | None,
    ) -> RefineQuery:
        used = [page for row in made for page in row.used]
        passages = raw_pages(rows, used, first_page=0).passages
        return RefineQuery(
            passages=tuple(replace(passage, page_number=None) for passage in passages),
            question=question.question,
            options=question.options,
            queries=tuple(row.text for row in made if row.text),
            action=action,
            asked_at=question.asked_at or "",
        )

    @abstractmethod
    async def search(self, rows: UnitRows, query: str) -> list[RankedPage]:
        """The pages, best first; without those that nothing speaks for."""


class RefineByBM25(Refine):
    """By BM25 over the pages; `bm25` as for the look-up of that name."""

    kind = "bm25"
    version = 2
    reads = (Page,)
    bm25: Ranking

    async def search(self, rows: UnitRows, query: str) -> list[RankedPage]:
        found = await to_thread(by_bm25, self.bm25, rows[Page], query)
        return [page for page in found if page.score]


class RefineByVectors(Refine):
    """By the embeddings of the pages."""

    kind = "dense"
    version = 1
    reads = (Page, Embedding)
    # Not hashed here: the step of the embeddings names the model.
    embedder: EmbedderSettings = Field(exclude=True)

    async def search(self, rows: UnitRows, query: str) -> list[RankedPage]:
        asked = await self.embedder.embed([query], "query")
        (found,) = await to_thread(nearest, rows[Embedding], asked)
        return [page for page in found if page.score is not None]


def needed_steps(steps: Sequence[Refinement]) -> list[Refinement]:
    """Those without which a question cannot be answered: a trajectory that outgrows the context
    after its first step has found pages."""
    return [step for step in steps if step.action or step.problem != "context_overflow"]


class RefinedLookUp(LookUp):
    """A turn for each query of a refine stage; a page that an earlier one found is used once. No
    calls."""

    kind = "refined"
    version = 1
    reads = (Refinement,)

    async def turns(self, rows: UnitRows, question: Question, ask: Ask) -> list[Lookup]:
        """Problem: upstream (a query without a reply)."""
        steps = rows.of(Refinement, question)
        if lost := lost_turn(question, needed_steps(steps)):
            return [lost]
        empty = turn_row(question)
        turns = (replace(empty, requested=s.used, ranked=s.ranked) for s in steps if s.text)
        return each_page_once(question, turns)
