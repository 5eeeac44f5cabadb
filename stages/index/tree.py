"""Build a tree of summaries over a document's segments (MemWalker section 3, appendix A.1.1)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, groupby, pairwise

from pydantic import Field, NonNegativeInt, PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import AccountingError, Problem
from pipeline.core.rows import Record, UnitRows
from pipeline.work.stage import Stage
from stages.prompts.memwalker import MAX_REPLIES, CompressSummaries, SummarizeSegment, Triage
from stages.tables.pages import Node, Page
from stages.text.fit_to_limit import first_segment
from stages.text.words import num_words


class BuildTree(Stage):
    """Leaves are summaries of segments; up to `max_children` consecutive nodes share a parent, up
    to a single root.

    A parent's summary is the summaries of its children, joined. If that has more than `node_words`
    words, or more tokens than its share of a triage prompt with `question_tokens` for the question,
    it is compressed by a second prompt. A reply longer than that share is cut, so that
    `max_children` summaries fit the context. If no reply has a word, the text that was to be
    summarized stands in, up to that share: no text is out of reach.
    """

    name = "tree"
    version = 2
    reads = (Page,)
    writes = Node
    prompts = (SummarizeSegment, CompressSummaries)
    leaves_room_for = (Triage,)
    max_children: int = Field(ge=2)
    node_words: PositiveInt
    question_tokens: NonNegativeInt

    async def run(self, rows: UnitRows, ask: Ask) -> list[Node]:
        """Pages -> Nodes by node index; all calls of a level at once.

        Problems: truncated (at its share or by the reply budget); with the unsummarized text as the
        summary: unparseable (a reply without a word), context_overflow, timeout, refused,
        engine_failed; without a summary: empty_input (no word in the segment, or below the node).
        """
        tree = self._empty(rows)
        # Of `max_children` summaries each may have so many tokens for triage to fit.
        prompt = Triage(
            ("",) * self.max_children, "", reasoning=True, rejected=(), may_revert=True,
            num_invalid=MAX_REPLIES,
        )  # fmt: skip
        taken = await ask.num_tokens(prompt) + ask.max_reply_tokens(Triage) + self.question_tokens
        share = max(1, (ask.context_tokens - taken) // self.max_children)
        for _, level in groupby(list(tree), lambda node: node.level):
            nodes = await asyncio.gather(
                *(self._summarized(rows, node, tree, share, ask) for node in level)
            )
            tree[nodes[0].node_index : nodes[-1].node_index + 1] = nodes
        return tree

    def _empty(self, rows: UnitRows) -> list[Node]:
        nodes: list[Node] = []
        for level, groups in enumerate(tree_levels(len(rows[Page]), self.max_children)):
            for children in groups:
                parts: Sequence[Node | Page] = [nodes[n] for n in children]
                parts = parts or [rows[Page][len(nodes)]]
                node = Node.about(
                    rows.document,
                    node_index=len(nodes),
                    level=level,
                    children=tuple(children),
                    start_char=parts[0].start_char,
                    end_char=parts[-1].end_char,
                    page_index=None if children else len(nodes),
                )
                nodes.append(node)
        parents = {child: node.node_index for node in nodes for child in node.children}
        return [replace(node, parent=parents.get(node.node_index)) for node in nodes]

    async def _summarized(
        self, rows: UnitRows, node: Node, tree: Sequence[Node], share: int, ask: Ask
    ) -> Node:
        is_leaf = node.page_index is not None
        if node.page_index is not None:
            text = (rows[Page][node.page_index].text or "").strip()
            parts = [text] if num_words(text) else []
        else:
            children = [tree[child].summary for child in node.children]
            parts = [summary for summary in children if summary is not None]
        if not parts:
            return replace(node, problem="empty_input")
        whole = "\n\n".join(parts)
        is_short = not is_leaf and num_words(whole) <= self.node_words
        if is_short and await ask.text_tokens(whole) <= share:
            return replace(node, summary=whole, num_words=num_words(whole))
        prompt = SummarizeSegment(parts[0]) if is_leaf else CompressSummaries(tuple(parts))
        # A call is about the first segment of its node; the level tells it from others.
        first = next(p.page_index for p in rows[Page] if p.end_char > node.start_char)
        reply = await ask(prompt, Subject(page_index=first, turn=node.level))
        said = reply.raw.strip() if reply.value is not None else ""
        text = await first_segment(said or whole, share, ask.text_tokens)
        is_cut = said and text != said
        return replace(
            node,
            summary=text,
            num_words=num_words(text),
            problem="truncated" if is_cut else reply.problem,
            is_compressed=bool(said) and not is_leaf,
            detail=None if said else "no summary; what it would have been made of stands in",
        )

    def failed(self, rows: UnitRows, problem: Problem, detail: str | None) -> list[Node]:
        return [replace(node, problem=problem, detail=detail) for node in self._empty(rows)]

    def check(self, rows: UnitRows, records: Sequence[Record]) -> None:
        """Raise AccountingError unless the nodes form the tree over these pages."""
        shape = [(node.node_index, node.children) for node in records if isinstance(node, Node)]
        if shape != [(node.node_index, node.children) for node in self._empty(rows)]:
            raise AccountingError(f"{rows.document.document_id}: nodes do not match pages")


def tree_levels(num_leaves: int, max_children: int) -> list[Sequence[Sequence[int]]]:
    """The levels of a tree, leaves first and the root alone last: of each node its children.

    Nodes are numbered from 0 through the levels, so a leaf has the index of its segment.
    Consecutive nodes share a parent. A level has as few parents as `max_children` (2 or more)
    allows, with numbers of children that differ by at most one: the paper leaves open how the last
    group is filled, and a node with a single child would only repeat it.
    """
    levels: list[Sequence[Sequence[int]]] = [[()] * num_leaves]
    first = 0
    while len(levels[-1]) > 1:
        below = range(first, first + len(levels[-1]))
        groups = -(-len(below) // max_children)
        sizes = (len(below) // groups + (n < len(below) % groups) for n in range(groups))
        ends = accumulate(sizes, initial=0)
        levels.append([tuple(below[start:end]) for start, end in pairwise(ends)])
        first = below.stop
    return levels
