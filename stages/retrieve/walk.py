"""The state of a walk through a tree, and the columns of its measures (MemWalker section 5)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pipeline.work.stage import Column
from stages.tables.nodes import Node
from stages.tables.pages import Page

COLUMNS = (
    Column("valid_actions", "valid %", 22, has_interval=False),
    Column("stray", "stray %", 23, has_interval=False),
    Column("recovery", "recovery %", 24, has_interval=False),
    Column("text_read", "text read %", 25, has_interval=False),
    Column("text_read_right", "text read % if right", 26, has_interval=False),
    Column("steps", "steps", 27, has_interval=False),
    Column("depth", "depth", 28, has_interval=False),
)


@dataclass
class Walk:
    """A walk through a tree so far; it begins at the root, the last of `nodes`."""

    nodes: Sequence[Node]
    pages: Sequence[Page]
    node: Node = field(init=False)
    visited: list[Node] = field(default_factory=list)  # each once, in the order of first visits
    rejected: set[int] = field(default_factory=set)  # node indexes
    _shown: set[tuple[str, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.go_to(self.nodes[-1].node_index)

    def go_to(self, node_index: int) -> None:
        """Visit a node."""
        self.node = self.nodes[node_index]
        if self.node not in self.visited:
            self.visited.append(self.node)

    def children(self) -> list[Node]:
        """The children of the node that can be shown: those with a summary."""
        found = [self.nodes[index] for index in self.node.children]
        return [child for child in found if child.summary is not None]

    def segment(self) -> Page:
        """The segment of the leaf visited."""
        assert self.node.page_index is not None
        return self.pages[self.node.page_index]

    def depth(self) -> int:
        """Levels of the node below the root."""
        return self.nodes[-1].level - self.node.level

    def memory(self) -> str:
        """The summaries of the nodes visited before this one."""
        before = [node for node in self.visited if node is not self.node]
        return "\n\n".join(node.summary for node in before if node.summary is not None)

    def new_words(self) -> int:
        """The words of what is shown at the node, children or segment, and never was before."""
        if self.node.page_index is not None:
            shown = [("segment", self.node.page_index, self.segment().num_words)]
        else:
            shown = [("node", node.node_index, node.num_words) for node in self.children()]
        new = [(kind, index, words) for kind, index, words in shown
               if (kind, index) not in self._shown]  # fmt: skip
        self._shown.update((kind, index) for kind, index, _ in new)
        return sum(words for _, _, words in new)
