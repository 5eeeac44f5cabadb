"""Navigate a document's tree of summaries in search of the answer (MemWalker section 3, appendix
A.1.2)."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal

from pydantic import PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import Problem
from pipeline.core.prompts import Asked, Prompt
from pipeline.core.rows import Question, Record, UnitRows
from pipeline.work.stage import Column, Columns
from stages.index.context import Budgeted, fields_of
from stages.prompts.memwalker import (
    ANSWER,
    MAX_REPLIES,
    REVERT,
    ReadLeaf,
    Triage,
    answer_text,
    reason_of,
)
from stages.tables.lookups import Visit
from stages.tables.pages import Node, Page
from stages.text.fit_to_limit import Keep, fit_to_limit, largest_number
from stages.text.words import num_words, word_spans

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
class _Walk:
    """A walk through a tree so far; it begins at the root, the last of `nodes`."""

    nodes: Sequence[Node]
    pages: Sequence[Page]
    node: Node = field(init=False)
    visited: list[Node] = field(default_factory=list)  # each once, in the order of first visits
    rejected: set[int] = field(default_factory=set)  # node indexes
    _shown: set[tuple[type[Record], int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.go_to(self.nodes[-1].node_index)

    def go_to(self, node_index: int) -> None:
        self.node = self.nodes[node_index]
        if self.node not in self.visited:
            self.visited.append(self.node)

    def remembered(self, which: Literal["visited", "path", "none"]) -> list[Node]:
        """The nodes whose summaries are the working memory."""
        here = self.node
        before = [node for node in self.visited if node is not here and node.summary is not None]
        if which == "path":
            before = [node for node in before if node.level > here.level
                      and node.start_char <= here.start_char < node.end_char]  # fmt: skip
        return [] if which == "none" else before

    def new_words(self, shown: Iterable[tuple[Node | Page, int]]) -> int:
        """How many words are shown for the first time. `shown`: summaries and segments, each with
        the number of its words that are shown."""
        new = 0
        for row, words in shown:
            key = type(row), row.node_index if isinstance(row, Node) else row.page_index
            if words and key not in self._shown:
                self._shown.add(key)
                new += words
        return new


async def _ask_for_action(
    prompt: Triage | ReadLeaf, legal: Collection[int], row: Visit, ask: Ask
) -> tuple[Visit, Asked[Any] | None]:
    """Ask up to three times: the visit with its counts, and the first legal reply, or None."""
    problem: Problem | None = None
    for attempt in range(1, MAX_REPLIES + 1):
        subject = Subject(question_id=row.question_id, turn=row.turn, attempt=attempt)
        again: Prompt[Any] = replace(prompt, num_invalid=attempt - 1 or None)
        reply = await ask(again, subject)
        if reply.problem == "context_overflow" and attempt > 1:
            break  # no space to say what was wrong
        if not reply.has_reply:
            return replace(row, problem=reply.problem), None
        row = replace(row, num_replies=attempt)
        action = reply.value[0] if isinstance(reply.value, tuple) else reply.value
        if action in legal:
            return replace(row, chosen_by="model", reason=reason_of(reply.raw)), reply
        row = replace(row, num_invalid=attempt)
        problem = reply.problem or "unparseable"
    return replace(row, problem=problem), None


async def _with_memory(
    prompt: ReadLeaf, memory: str, room: int | None, keep: Keep, ask: Ask
) -> ReadLeaf:
    """The prompt with the words of the memory that fit, even when it is asked again."""

    async def alone(most: int) -> int:
        return await ask.part_tokens([_cut_words(memory, most, keep)])

    def shown(most: int) -> ReadLeaf:
        return replace(prompt, working_memory=_cut_words(memory, most, keep))

    async def size(most: int) -> int:
        return await ask.num_tokens(replace(shown(most), num_invalid=MAX_REPLIES - 1))

    num = len(word_spans(memory))
    if room is not None:
        num = await largest_number(room, alone, num)
    limit = ask.context_tokens - ask.max_reply_tokens(ReadLeaf)
    whole = await size(num)
    if whole > limit:
        num = await fit_to_limit(limit, size, range(num + 1), await size(0), whole)
    return shown(num)


def _cut_words(text: str, most: int, keep: Keep) -> str:
    words = word_spans(text)
    if most >= len(words):
        return text
    if not most:
        return ""
    return text[: words[most - 1][1]] if keep == "first" else text[words[-most][0] :]


class Navigate(Budgeted):
    """From the root the model enters one child after another; at a leaf it answers or reverts.

    `reasoning`: the model is asked for reasons before each action (table 3). `working_memory`: a
    leaf is shown with the summaries of all nodes visited before (section 3), of the nodes on its
    path (section 5), or of none (figure 3); if they do not fit, with their `keep_memory` words.
    Three replies in a row without a legal action end the navigation (section 3). `budget`: the most
    tokens of a segment and the working memory shown with it.

    The paper leaves the rest open. `name_rejected`: a node that was reverted from is named in
    triage and cannot be chosen again; a last child is entered without a call, and without a child
    left the navigation reverts by itself. `may_revert`: inner nodes below the root may revert, too,
    as in section 3, but not in the paper's prompts. `all_rejected`: at a root without a child left
    the navigation stops, or starts over with none rejected. It stops after `max_steps` visits in
    any case.
    """

    name = "navigate"
    version = 2
    reads = (Page, Node)
    writes = Visit
    prompts = (Triage, ReadLeaf)
    asks_in_turn = True
    report_columns: ClassVar[Columns] = {"any": COLUMNS}
    reasoning: bool
    working_memory: Literal["visited", "path", "none"]
    keep_memory: Literal["first", "last"]
    name_rejected: bool
    may_revert: bool
    all_rejected: Literal["stop", "start_over"]
    max_steps: PositiveInt
    answer_words: PositiveInt | None  # of a free-form answer; null: brief

    async def run(self, rows: UnitRows, ask: Ask) -> list[Visit]:
        """Questions -> their Visits, in question order, then by turn; sequential per question.

        Problems, of the last visit: unparseable or truncated (three replies without a legal
        action), truncated and out_of_range (of the answer, whose text is kept); context_overflow
        (also of a segment that is over the budget), timeout, refused, engine_failed (no reply);
        empty_input (a document without a segment).
        """
        walks = await asyncio.gather(*(self._walk(rows, q, ask) for q in rows.questions))
        return [visit for walk in walks for visit in walk]

    async def _walk(self, rows: UnitRows, question: Question, ask: Ask) -> list[Visit]:
        if not rows[Node]:
            return [Visit.about(question, problem="empty_input")]
        walk = _Walk(rows[Node], rows[Page])
        visits: list[Visit] = []
        while len(visits) < self.max_steps:
            node = walk.node
            row = Visit.about(
                question,
                turn=len(visits),
                node_index=node.node_index,
                depth=walk.nodes[-1].level - node.level,
                page_index=node.page_index,
                reader=ask.engine_name,
            )
            visit = self._at_inner if node.page_index is None else self._at_leaf
            visits.append(await visit(row, question, walk, ask))
            to_node = visits[-1].to_node
            if to_node is None:
                break
            walk.go_to(to_node)
        return visits

    async def _at_inner(self, row: Visit, question: Question, walk: _Walk, ask: Ask) -> Visit:
        children = [walk.nodes[index] for index in walk.node.children]
        children = [child for child in children if child.summary is not None]  # others are unseen
        taken = [n for n, child in enumerate(children) if child.node_index in walk.rejected]
        row = replace(row, rejected=tuple(children[n].node_index for n in taken))
        prompt = Triage(
            summaries=tuple(child.summary or "" for child in children),
            question=question.question,
            reasoning=self.reasoning,
            rejected=tuple(taken),
            may_revert=self.may_revert and walk.node.parent is not None,
            asked_at=question.asked_at or "",
        )
        legal = prompt.actions()
        action = legal[0] if legal else REVERT
        if len(legal) < 2:
            row = replace(row, chosen_by="rule")
        else:
            new_words = walk.new_words((child, child.num_words) for child in children)
            row = replace(row, num_new_words=new_words)
            row, reply = await _ask_for_action(prompt, legal, row, ask)
            if reply is None or reply.value is None:
                return row
            action = reply.value
        if action == REVERT:
            return self._reverted(row, walk)
        return replace(row, action="enter", to_node=children[action].node_index)

    async def _at_leaf(self, row: Visit, question: Question, walk: _Walk, ask: Ask) -> Visit:
        assert row.page_index is not None
        page = walk.pages[row.page_index]
        segment = (page.text or "").strip()
        room = None
        if self.budget is not None:
            tokens = await ask.part_tokens([segment])
            room = self.budget - tokens
            if room < 0:
                detail = f"budget={self.budget}: the segment has {tokens} tokens; raise it"
                return replace(row, problem="context_overflow", detail=detail)
        prompt = ReadLeaf(
            segment=segment,
            **fields_of(question),
            reasoning=self.reasoning,
            answer_words=self.answer_words,
        )
        remembered = walk.remembered(self.working_memory)
        memory = "\n\n".join(node.summary or "" for node in remembered)
        prompt = await _with_memory(prompt, memory, room, self.keep_memory, ask)
        shown = num_words(prompt.working_memory)
        new_words, left = walk.new_words([(page, page.num_words)]), shown
        for node in remembered if self.keep_memory == "first" else reversed(remembered):
            new_words += walk.new_words([(node, min(node.num_words, left))])
            left -= min(node.num_words, left)
        row = replace(
            row,
            num_new_words=new_words,
            num_memory_words=shown,
            is_memory_cut=prompt.working_memory != memory,
            num_context_tokens=await ask.part_tokens([segment, prompt.working_memory]),
        )
        row, reply = await _ask_for_action(prompt, (REVERT, ANSWER), row, ask)
        if reply is None or reply.value is None:
            return row
        if reply.value[0] == REVERT:
            return self._reverted(row, walk)
        option = reply.value[-1]
        is_none = option == "out_of_range"
        is_text = isinstance(option, str) and not is_none
        return replace(
            row,
            action="answer",
            answer=option if is_text else answer_text(reply.raw),
            answer_index=option if isinstance(option, int) else None,
            problem=reply.problem or ("out_of_range" if is_none else None),
        )

    def _reverted(self, row: Visit, walk: _Walk) -> Visit:
        """To the parent; from the root nowhere, or to itself."""
        to_node = walk.node.parent
        if self.name_rejected:
            walk.rejected.add(walk.node.node_index)
        if to_node is None and walk.node.children and self.all_rejected == "start_over":
            to_node = walk.node.node_index
            walk.rejected.clear()
        return replace(row, action="revert", to_node=to_node)
