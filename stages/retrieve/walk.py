"""The state of a walk through a tree, the columns of its measures (MemWalker section 5), and asking
for an action at a node until one is legal, with as much working memory as fits."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import Problem
from pipeline.core.prompts import Asked, Prompt
from pipeline.work.stage import Column
from stages.prompts.memwalker import MAX_REPLIES, ReadLeaf, Triage, reason_of
from stages.tables.lookups import Visit
from stages.tables.pages import Node, Page
from stages.text.fit_to_limit import Keep, fit_to_limit, largest_number
from stages.text.words import word_spans

_column = partial(Column, has_interval=False)
COLUMNS = (  # MemWalker section 5
    _column("valid_actions", "valid %", 22, about="share of replies that name a legal action"),
    _column("stray", "stray %", 23, about="share of walks that go back at least once (MemWalker)"),
    _column("recovery", "recovery %", 24, about="share of right answers, of those walks"),
    _column(
        "text_read", "text read %", 25,
        about="words of the document that stand in the nodes on the walk, as a share of all",
    ),
    _column("text_read_right", "text read % if right", 26, about="the same, of right answers"),
    _column("steps", "steps", 27, about="nodes that are visited, each visit counted"),
    _column("depth", "depth", 28, about="levels below the root, of the deepest node visited"),
)  # fmt: skip


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

    def remembered(self, which: Literal["visited", "path", "none"]) -> list[Node]:
        """The nodes whose summaries are the working memory: those visited before this one, or of
        these its ancestors."""
        before = [node for node in self.visited if node is not self.node]
        if which == "path":
            before = [node for node in before if _is_above(node, self.node)]
        return [] if which == "none" else [node for node in before if node.summary is not None]

    def new_in_memory(self, remembered: Sequence[Node], num_shown: int, keep: Keep) -> int:
        """The words of the working memory that never were shown before, of which the first or last
        `num_shown` fitted: a root's summary is shown nowhere else."""
        new = 0
        for node in remembered if keep == "first" else reversed(remembered):
            shown = min(node.num_words, num_shown)
            num_shown -= shown
            if shown and ("node", node.node_index) not in self._shown:
                self._shown.add(("node", node.node_index))
                new += shown
        return new

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


def _is_above(node: Node, other: Node) -> bool:
    is_around = node.start_char <= other.start_char and other.end_char <= node.end_char
    return node.level > other.level and is_around


async def ask_for_action(
    prompt: Triage | ReadLeaf, legal: Collection[int], row: Visit, ask: Ask
) -> tuple[Visit, Asked[Any] | None]:
    """The first reply with a legal action of at most three, and the visit with what it took; None
    where there is none, or no reply."""
    problem: Problem | None = None
    for attempt in range(1, MAX_REPLIES + 1):
        subject = Subject(question_id=row.question_id, turn=row.turn, attempt=attempt)
        again: Prompt[Any] = replace(prompt, num_invalid=attempt - 1 or None)
        asked = await ask(again, subject)
        if asked.problem == "context_overflow" and attempt > 1:
            break  # no space to say what was wrong
        if not asked.has_reply:
            return replace(row, problem=asked.problem), None
        row = replace(row, num_replies=attempt)
        action = asked.value[0] if isinstance(asked.value, tuple) else asked.value
        if action in legal:
            reason = reason_of(asked.raw)
            return replace(row, chosen_by="model", reason=reason), asked
        row = replace(row, num_invalid=attempt)
        problem = asked.problem or "unparseable"
    return replace(row, problem=problem), None


async def with_memory(prompt: ReadLeaf, memory: str, keep: Keep, ask: Ask) -> ReadLeaf:
    """The prompt with as many words of the working memory as fit, even when asked again."""

    def shown(most: int) -> ReadLeaf:
        return replace(prompt, working_memory=cut_words(memory, most, keep))

    async def size(most: int) -> int:
        return await ask.num_tokens(replace(shown(most), num_invalid=MAX_REPLIES - 1))

    limit, num = ask.context_tokens - ask.max_reply_tokens(ReadLeaf), len(word_spans(memory))
    whole = await size(num)
    if whole <= limit:
        return shown(num)
    return shown(await fit_to_limit(limit, size, range(num + 1), await size(0), whole))


async def within_tokens(memory: str, limit: int, keep: Keep, ask: Ask) -> str:
    """As many words of the working memory as have no more than `limit` tokens."""

    async def size(most: int) -> int:
        return await ask.part_tokens([cut_words(memory, most, keep)])

    return cut_words(memory, await largest_number(limit, size, len(word_spans(memory))), keep)


def cut_words(text: str, most: int, keep: Keep) -> str:
    """The first or last `most` words of a text."""
    words = word_spans(text)
    if most >= len(words):
        return text
    if not most:
        return ""
    return text[: words[most - 1][1]] if keep == "first" else text[words[-most][0] :]
