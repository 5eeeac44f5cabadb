"""RAPTOR, collapsed tree (Sarthi et al. 2024, arXiv 2401.18059): chunks are summarized in clusters,
level by level; the nodes of all levels that are most like the question are read.

Likeness is BM25 on stems. The paper has embeddings, and soft clusters by Gaussian mixtures; here a
node is in one cluster, that of the first node left with those most like it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from pydantic import Field, PositiveInt

from gistmill.plugin import (
    AnswerFromContext,
    Ask,
    Context,
    IndexRow,
    Page,
    Passage,
    Prompt,
    Question,
    Stage,
    Subject,
    UnitRows,
    best_sentences,
    num_words,
    ranking,
    raw_pages,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RaptorNode(IndexRow):
    """A node of the tree: a chunk, or the summary of a cluster of nodes."""

    table = "raptor_nodes"
    key = ("document_id", "node_index")
    once_per_memory = False  # trees of other clusters may rest on the same chunks
    node_index: int  # chunks first, as pages, then level by level
    level: int  # of chunks 0
    children: tuple[int, ...]  # node indexes
    text: str  # "": a summary without a reply, which is not read

    def why_unusable(self) -> str | None:
        return None if self.level else IndexRow.why_unusable(self)


@dataclass(frozen=True)
class SummarizeCluster(Prompt[str]):
    """Summarize the texts of a cluster, joined. The value is the summary."""

    name = "raptor_summary"
    version = 1
    max_reply_tokens = 512
    is_whole = True
    segment: str

    def extractive(self) -> str:
        return best_sentences([self.segment], self.segment, max(12, num_words(self.segment) // 7))

    def expected(self) -> str:
        return self.segment[: max(1, len(self.segment) // 7)]

    @classmethod
    def samples(cls) -> tuple["SummarizeCluster", ...]:
        return (cls("The bell {{ rings }}.\n\n{% twice %} <3>"),)


class BuildRaptor(Stage):
    """Clusters of up to `cluster_size` nodes are summarized, until one node is left."""

    name = "raptor_tree"
    version = 1
    reads = (Page,)
    writes = RaptorNode
    prompts = (SummarizeCluster,)
    cluster_size: int = Field(ge=2)

    async def run(self, rows: UnitRows, ask: Ask) -> list[RaptorNode]:
        """Pages -> RaptorNodes; the calls of a level at once. Problems: those of `Asked`."""
        pages = [(page, {"node_index": page.page_index, "text": page.text}) for page in rows[Page]]
        made = level = [RaptorNode.about(page, **values) for page, values in pages]
        while len(level) > 1:
            clusters = await asyncio.to_thread(_clusters, level, self.cluster_size)
            new = (_node(cluster, len(made) + n, ask) for n, cluster in enumerate(clusters))
            level = await asyncio.gather(*new)
            made, level = [*made, *level], [node for node in level if node.text]
        return made


async def _node(cluster: Sequence[RaptorNode], index: int, ask: Ask) -> RaptorNode:
    prompt = SummarizeCluster("\n\n".join(node.text for node in cluster))
    asked = await ask(prompt, Subject(turn=index))
    own = {"node_index": index, "level": 1 + cluster[0].level, "text": asked.value or ""}
    children = tuple(node.node_index for node in cluster)
    return RaptorNode.about(cluster[0], **own, children=children, problem=asked.problem)


def _clusters(level: Sequence[RaptorNode], size: int) -> list[list[RaptorNode]]:
    left, found = list(level), []
    while left:
        order = ranking("plus_on_stems", [node.text for node in left[1:]], left[0].text)
        found.append([left[0], *(left[1 + index] for index, _ in order[: size - 1])])
        left = [node for node in left if node not in found[-1]]
    return found


class AnswerFromNodes(AnswerFromContext):
    """From the nodes most like the question, up to `node_words` words; at least from one."""

    kind = "raptor"
    version = 1
    reads = (Page, RaptorNode)
    node_words: PositiveInt

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        nodes = [node for node in rows[RaptorNode] if node.text]
        order = ranking("plus_on_stems", [node.text for node in nodes], question.question)
        best = [nodes[index] for index, _ in order]
        totals = list(accumulate(num_words(node.text) for node in best))
        read = best[: max(1, sum(total <= self.node_words for total in totals))]
        raw = raw_pages(rows, [n.node_index for n in read if not n.level], self.first_page)
        passages = tuple(Passage("text", None, node.text) for node in read)
        return replace(raw, passages=passages, num_words=totals[len(read) - 1] if read else 0)
