"""Navigate a document's tree of summaries in search of the answer (MemWalker section 3, appendix
A.1.2)."""

import asyncio
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.prompts import Asked
from pipeline.core.rows import Question, UnitRows
from pipeline.work.stage import Columns
from stages.index.budget import Budgeted
from stages.prompts.memwalker import ANSWER, REVERT, LeafReply, ReadLeaf, Triage, answer_text
from stages.retrieve.walk import COLUMNS, Walk, ask_for_action, with_memory, within_tokens
from stages.tables.lookups import Visit
from stages.tables.pages import Node, Page
from stages.text.words import num_words


class Navigate(Budgeted):
    """From the root the model enters one child after another; at a leaf it answers or reverts.

    `reasoning`: it is asked for reasons before each action (table 3). `working_memory`: a leaf is
    shown with the summaries of the nodes visited before (section 3), those on its path alone
    (section 5), or none (figure 3); where these do not fit, the `keep_memory` words of them. The
    paper leaves open, and these settings decide: with `name_rejected` a node once reverted from is
    named in triage and cannot be chosen again, and where one child is left it is entered without a
    call, where none is, the navigation reverts by itself; `may_revert`: inner nodes below the root
    may revert, too, as section 3 has it and the prompts do not; `all_rejected`: from a root without
    a child left the navigation stops, or starts over with none rejected; it stops after `max_steps`
    visits in any case. Three replies in a row without a legal action end it (section 3). `budget`:
    the most tokens of a segment and the working memory shown with it.
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
        return [visit for visits in walks for visit in visits]

    async def _walk(self, rows: UnitRows, question: Question, ask: Ask) -> list[Visit]:
        if not rows[Node]:
            return [Visit.about(question, problem="empty_input")]
        walk = Walk(rows[Node], rows[Page])
        made: list[Visit] = []
        while len(made) < self.max_steps:
            row = _visit(question, len(made), walk, ask.engine_name)
            is_leaf = walk.node.page_index is not None
            visit = self._at_leaf if is_leaf else self._at_inner
            made.append(await visit(row, question, walk, ask))
            to_node = made[-1].to_node
            if to_node is None:
                break
            walk.go_to(to_node)
        return made

    async def _at_inner(self, row: Visit, question: Question, walk: Walk, ask: Ask) -> Visit:
        """Enter a child, or revert."""
        children = walk.children()
        taken = [n for n, child in enumerate(children) if child.node_index in walk.rejected]
        row = replace(row, rejected=tuple(children[place].node_index for place in taken))
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
            row = replace(row, num_new_words=walk.new_words())
            row, asked = await ask_for_action(prompt, legal, row, ask)
            if asked is None or asked.value is None:
                return row
            action = asked.value
        if action == REVERT:
            return self._reverted(row, walk)
        return replace(row, action="enter", to_node=children[action].node_index)

    async def _at_leaf(self, row: Visit, question: Question, walk: Walk, ask: Ask) -> Visit:
        """Answer, or revert."""
        prompt = ReadLeaf(
            segment=(walk.segment().text or "").strip(),
            question=question.question,
            options=question.options,
            reasoning=self.reasoning,
            answer_words=self.answer_words,
            asked_at=question.asked_at or "",
        )
        remembered = walk.remembered(self.working_memory)
        memory = "\n\n".join(node.summary or "" for node in remembered)
        most = memory
        if self.budget is not None:
            tokens = await ask.part_tokens([prompt.segment])
            if tokens > self.budget:
                detail = f"budget={self.budget}: the segment has {tokens} tokens; raise it"
                return replace(row, problem="context_overflow", detail=detail)
            most = await within_tokens(memory, self.budget - tokens, self.keep_memory, ask)
        prompt = await with_memory(prompt, most, self.keep_memory, ask)
        shown = num_words(prompt.working_memory)
        row = replace(
            row,
            num_new_words=walk.new_words()
            + walk.new_in_memory(remembered, shown, self.keep_memory),
            num_memory_words=shown,
            is_memory_cut=prompt.working_memory != memory,
            num_context_tokens=await ask.part_tokens([prompt.segment, prompt.working_memory]),
        )
        row, asked = await ask_for_action(prompt, (REVERT, ANSWER), row, ask)
        if asked is None or asked.value is None:
            return row
        if asked.value[0] == REVERT:
            return self._reverted(row, walk)
        return _answered(row, asked)

    def _reverted(self, row: Visit, walk: Walk) -> Visit:
        """To the parent; from the root nowhere, or to itself."""
        to_node = walk.node.parent
        if self.name_rejected:
            walk.rejected.add(walk.node.node_index)
        if to_node is None and walk.node.children and self.all_rejected == "start_over":
            to_node = walk.node.node_index
            walk.rejected.clear()
        return replace(row, action="revert", to_node=to_node)


def _answered(row: Visit, asked: Asked[LeafReply]) -> Visit:
    option = asked.value[-1] if asked.value else None
    is_none = option == "out_of_range"
    is_text = isinstance(option, str) and not is_none
    return replace(
        row,
        action="answer",
        answer=str(option) if is_text else answer_text(asked.raw),
        answer_index=option if isinstance(option, int) else None,
        problem=asked.problem or ("out_of_range" if is_none else None),
    )


def _visit(question: Question, turn: int, walk: Walk, reader: str) -> Visit:
    return Visit.about(
        question,
        turn=turn,
        node_index=walk.node.node_index,
        depth=walk.depth(),
        page_index=walk.node.page_index,
        reader=reader,
    )
