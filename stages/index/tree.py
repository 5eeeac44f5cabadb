"""Build a tree of summaries over a document's segments (MemWalker section 3, appendix A.1.1)."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import Field, PositiveInt

from pipeline.ask import Ask
from pipeline.calls import Subject
from pipeline.errors import AccountingError, Problem
from pipeline.prompts import Asked, Prompt
from pipeline.rows import IndexRow, Record, UnitRows
from pipeline.stage import Stage
from pipeline.trace_lines import Line, titled
from stages.index.levels import tree_levels
from stages.index.paginate import Page
from stages.prompts.compress import CompressSummaries
from stages.prompts.summarize import SummarizeSegment
from stages.text.words import num_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(IndexRow):
    """A node of a document's tree; a tree's nodes are numbered level by level, leaves first."""

    table: ClassVar[str] = "nodes"
    key: ClassVar[tuple[str, ...]] = ("document_id", "node_index")
    drawn: ClassVar[bool] = True
    sizes: ClassVar[str | None] = """
        select memory, 'nodes per tree' as measure, 'documents' as rows_of, 70 as place,
          count(*)::double as value
        from nodes group by memory, step_id, document_id
        union all by name
        select memory, 'words per summary' as measure, 'nodes' as rows_of, 80 as place,
          num_words::double as value
        from nodes where summary is not null"""
    page_texts: ClassVar[str | None] = """
        with named as (
          select *, case when min(step_id) over trees < max(step_id) over trees
            then ' ' || step_id else '' end as tree
          from nodes window trees as (partition by memory, document_id))
        select memory, document_id, page_index, 30 as place, 'leaf of the tree' || tree as heading,
          summary as text, num_words, problem
        from named where page_index is not null
        union all by name
        select n.memory, n.document_id, min(leaf.page_index) as page_index,
          max(leaf.page_index) as last_page_index, 1000 - n.level as place,
          'node ' || n.node_index || ' of the tree' || n.tree as heading,
          any_value(n.summary) as text, any_value(n.num_words) as num_words,
          any_value(n.problem) as problem
        from named n join nodes leaf using (step_id, document_id)
        where n.page_index is null and leaf.page_index is not null
          and leaf.start_char >= n.start_char and leaf.end_char <= n.end_char
        group by all"""
    once_per_memory: ClassVar[bool] = False  # trees of several shapes rest on the same segments
    node_index: int  # of the tree's nodes, level by level, leaves first
    level: int  # of leaves 0
    parent: int | None  # node index; null: the root
    children: tuple[int, ...]  # node indexes, in document order
    start_char: int  # of what is below it, in the document's text
    end_char: int  # of what is below it, in the document's text
    page_index: int | None  # of a leaf: its segment
    summary: str | None  # what a navigator is shown; null: there is none
    num_words: int  # of the summary
    is_compressed: bool = False  # whether the children's summaries were too long together

    def lack(self) -> str | None:
        """Only a root without any child to go to: other nodes are left out where they failed."""
        is_lost = self.parent is None and self.problem in ("upstream", "unit_failed")
        return f"tree: {self.detail or self.problem}" if is_lost else None

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        of = f"of {row['children']}" if row["children"] else f"of segment {row['page_index']}"
        facts = [of, f"{row['num_words']} words", row["problem"], row["detail"]]
        return [f"<Node {row['node_index']}> ({', '.join(filter(None, facts))}) "
                f"{row['summary'] or '-'}"]  # fmt: skip

    @classmethod
    def trace_all(cls, rows: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
        """From the root down."""
        top_down = sorted(rows, key=lambda row: (-row["level"], row["node_index"]))
        return titled(f"TREE ({len(rows)} nodes)", top_down, cls.trace)


class BuildTree(Stage):
    """Leaves are summaries of segments; up to `max_children` consecutive nodes share a parent, up
    to a single root.

    A parent's summary is those of its children, joined; only where that has more than `node_words`
    words it is compressed by a second prompt. A node without a summary is left out of its
    ancestors' and of the navigation; with `strict` all its ancestors fail instead.
    """

    name: ClassVar[str] = "tree"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Page,)
    writes: ClassVar[type[Record]] = Node
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (SummarizeSegment, CompressSummaries)
    max_children: int = Field(ge=2)
    node_words: PositiveInt
    strict: bool

    async def run(self, rows: UnitRows, ask: Ask) -> list[Node]:
        """Pages -> Nodes by node index; all calls of a level at once.

        Problems: truncated (the text is kept), unparseable (a reply without a word); with a null
        summary: context_overflow, empty_input, timeout, engine_failed, upstream (no child has a
        summary, or with `strict` one has none). `detail` names the children left out.
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
                node = Node(
                    document_id=rows.document.document_id,
                    node_index=len(found),
                    level=level,
                    parent=None,
                    children=tuple(children),
                    start_char=parts[0].start_char,
                    end_char=parts[-1].end_char,
                    page_index=None if children else len(found),
                    summary=None,
                    num_words=0,
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
