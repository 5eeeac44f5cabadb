"""The table `nodes`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.rows import IndexRow
from pipeline.core.trace_lines import Line, titled


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(IndexRow):
    """A node of a document's tree; a tree's nodes are numbered level by level, leaves first."""

    table: ClassVar[str] = "nodes"
    key: ClassVar[tuple[str, ...]] = ("document_id", "node_index")
    drawn: ClassVar[bool] = True
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

    def why_unusable(self) -> str | None:
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
