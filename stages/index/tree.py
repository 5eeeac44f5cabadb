"""Build a tree of summaries over a document's segments (MemWalker section 3, appendix A.1.1)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from pydantic import Field, PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import AccountingError, Problem
from pipeline.core.prompts import Asked
from pipeline.core.rows import Record, UnitRows
from pipeline.work.stage import Stage
from stages.prompts.memwalker.compress import CompressSummaries
from stages.prompts.memwalker.summarize import SummarizeSegment
from stages.tables.pages import Node, Page
from stages.text.words import num_words


class BuildTree(Stage):
    """Leaves are summaries of segments; up to `max_children` consecutive nodes share a parent, up
    to a single root.

    A parent's summary is those of its children, joined; only where that has more than `node_words`
    words it is compressed by a second prompt. A node without a summary is left out of its
    ancestors' and of the navigation; with `strict` all its ancestors fail instead.
    """

    name = "tree"
    version = 1
    reads = (Page,)
    writes = Node
    prompts = (SummarizeSegment, CompressSummaries)
    max_children: int = Field(ge=2)
    node_words: PositiveInt
    strict: bool

    async def run(self, rows: UnitRows, ask: Ask) -> list[Node]:
        """Pages -> Nodes by node index; all calls of a level at once.

        Problems: truncated (the text is kept), unparseable (a reply without a word); without a
        summary: context_overflow, empty_input, timeout, refused, engine_failed, upstream (no child
        has a summary, or with `strict` one has none). `detail` names the children left out.
        """
        made = self._empty(rows)
        for level in range(made[-1].level + 1 if made else 0):
            nodes = [node for node in made if node.level == level]
            done = await asyncio.gather(*(self._summarized(rows, n, made, ask) for n in nodes))
            made[nodes[0].node_index : nodes[-1].node_index + 1] = done
        return made

    def _empty(self, rows: UnitRows) -> list[Node]:
        """The nodes without their summaries."""
        found: list[Node] = []
        for level, nodes in enumerate(tree_levels(len(rows[Page]), self.max_children)):
            for children in nodes:
                parts: Sequence[Node | Page] = [found[n] for n in children]
                parts = parts or [rows[Page][len(found)]]
                node = Node.about(
                    rows.document,
                    node_index=len(found),
                    level=level,
                    children=tuple(children),
                    start_char=parts[0].start_char,
                    end_char=parts[-1].end_char,
                    page_index=None if children else len(found),
                )
                found.append(node)
        parents = {child: node.node_index for node in found for child in node.children}
        return [replace(node, parent=parents.get(node.node_index)) for node in found]

    async def _summarized(self, rows: UnitRows, node: Node, made: Sequence[Node], ask: Ask) -> Node:
        if node.page_index is not None:
            text = (rows[Page][node.page_index].text or "").strip()
            if not text:
                return replace(node, problem="empty_input")
            subject = Subject(page_index=node.page_index, turn=node.level)
            return _with_reply(node, await ask(SummarizeSegment(segment=text), subject))
        # A call is about the first segment of its node; the level tells it from others.
        first = next(p.page_index for p in rows[Page] if p.end_char > node.start_char)
        subject = Subject(page_index=first, turn=node.level)
        return await self._joined(node, [made[child] for child in node.children], subject, ask)

    async def _joined(
        self, node: Node, children: Sequence[Node], subject: Subject, ask: Ask
    ) -> Node:
        summaries = tuple(child.summary for child in children if child.summary is not None)
        lost = [str(child.node_index) for child in children if child.summary is None]
        detail = f"without the summary of {', '.join(lost)}" if lost else None
        if not summaries or (lost and self.strict):
            return replace(node, problem="upstream", detail=detail)
        text = "\n\n".join(summaries)
        node = replace(node, summary=text, num_words=num_words(text), detail=detail)
        if node.num_words <= self.node_words:
            return node
        asked = await ask(CompressSummaries(summaries=summaries), subject)
        return replace(_with_reply(node, asked), is_compressed=True)

    def failed(self, rows: UnitRows, problem: Problem, detail: str | None) -> list[Node]:
        return [replace(node, problem=problem, detail=detail) for node in self._empty(rows)]

    def check(self, rows: UnitRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless the nodes are those of the tree over these pages."""
        shape = [(node.node_index, node.children) for node in made if isinstance(node, Node)]
        if shape != [(node.node_index, node.children) for node in self._empty(rows)]:
            raise AccountingError(f"{rows.document.document_id}: nodes do not match pages")


def _with_reply(node: Node, asked: Asked[str]) -> Node:
    text = asked.raw.strip() if asked.value is not None else None
    return replace(node, summary=text, num_words=num_words(text or ""), problem=asked.problem)


Level = Sequence[Sequence[int]]
"""The children of each node of a level, by node index; leaves have none."""


def tree_levels(num_leaves: int, max_children: int) -> list[Level]:
    """The levels of a tree, leaves first and the root alone last.

    Nodes are numbered from 0 through the levels, so that a leaf has the index of its segment.
    Consecutive nodes share a parent; a level has as few parents as `max_children` (2 or more)
    allows, with numbers of children that differ by one at most: a last node with a single child
    would only repeat it. The paper does not say how the last group is filled.
    """
    levels: list[Level] = [[()] * num_leaves]
    first = 0
    while len(levels[-1]) > 1:
        below = range(first, first + len(levels[-1]))
        ends = accumulate(_group_sizes(len(below), max_children), initial=0)
        levels.append([tuple(below[start:end]) for start, end in pairwise(ends)])
        first = below.stop
    return levels


def _group_sizes(num: int, max_children: int) -> list[int]:
    groups = -(-num // max_children)
    return [num // groups + (place < num % groups) for place in range(groups)]
