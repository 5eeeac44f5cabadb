"""The tree over a document's segments: its shape for any number of leaves, and its summaries."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.engine import Request
from pipeline.core.errors import AccountingError
from pipeline.core.rows import Record
from stages.index.tree import BuildTree, tree_levels
from stages.prompts.memwalker import CompressSummaries, SummarizeSegment, Triage
from stages.tables.pages import Node, Page
from tests.pipeline.store.test_views import rows
from tests.support.reading import Listener, always, book, never, num_tokens, run, scripted
from tests.support.runs import warehouse as by_hand

PAGES = [f"Segment {name} of the text.\n" for name in "abcdefgh"]
STANDS_IN = "no summary; what it would have been made of stands in"


@settings(max_examples=300, deadline=None)
@given(num_leaves=st.integers(1, 10_000), max_children=st.integers(2, 40))
def test_levels_shrink_to_one_root(num_leaves: int, max_children: int) -> None:
    levels = tree_levels(num_leaves, max_children)
    sizes = [len(level) for level in levels]
    assert sizes[0] == num_leaves and sizes[-1] == 1
    assert all(above == -(-below // max_children) for below, above in pairwise(sizes))
    first = 0
    for below, level in pairwise(levels):
        numbers = [len(children) for children in level]
        assert max(numbers) <= max_children and min(numbers) >= min(2, max_children - 1)
        assert max(numbers) - min(numbers) <= 1
        assert list(chain(*level)) == list(range(first, first + len(below))), "consecutive"
        first += len(below)


def tree(max_children: int = 2, node_words: int = 1000) -> BuildTree:
    return BuildTree(max_children=max_children, node_words=node_words, question_tokens=256)


def letter(request: Request) -> str:
    """A summary of one word, the segment's letter; of summaries their number."""
    fields = request.fields
    if isinstance(fields, SummarizeSegment):
        return fields.segment.split()[1]
    assert isinstance(fields, CompressSummaries)
    return f"all {len(fields.summaries)}"


def said(nodes: Sequence[Node]) -> list[str | None]:
    return [node.summary for node in nodes]


def test_parents_join_their_childrens_summaries_without_a_call() -> None:
    nodes, calls = run(tree(), book(PAGES[:3]), Listener(letter))
    assert said(nodes) == ["a", "b", "c", "a\n\nb", "c", "a\n\nb\n\nc"]
    assert [(node.level, node.children, node.num_words, node.parent) for node in nodes] == [
        (0, (), 1, 3), (0, (), 1, 3), (0, (), 1, 4),
        (1, (0, 1), 2, 5), (1, (2,), 1, 5), (2, (3, 4), 3, None),
    ]  # fmt: skip
    assert [(call.prompt, call.page_index, call.turn) for call in calls] == [
        ("summarize", n, 0) for n in range(3)
    ]


def test_what_is_over_the_limit_is_compressed_level_by_level() -> None:
    """Eight leaves, two a node: pairs have 2 words, the next would have 4, which is over 3."""
    nodes, calls = run(tree(node_words=3), book(PAGES), Listener(letter))
    assert said(nodes)[8:12] == ["a\n\nb", "c\n\nd", "e\n\nf", "g\n\nh"]
    assert said(nodes)[12:] == ["all 2", "all 2", "all 2"]
    assert [node.is_compressed for node in nodes] == [False] * 12 + [True] * 3
    failed, _ = run(tree(node_words=3), book(PAGES), Listener(
        lambda r: letter(r).removeprefix("all 2")))  # fmt: skip
    assert said(failed)[12:] == ["a\n\nb\n\nc\n\nd", "e\n\nf\n\ng\n\nh", "\n\n".join("abcdefgh")]
    lost = ("unparseable", STANDS_IN, False)
    assert [(n.problem, n.detail, n.is_compressed) for n in failed[12:]] == [lost] * 3
    compressed = [call for call in calls if call.prompt == "compress"]
    assert [(call.page_index, call.turn) for call in compressed] == [(0, 2), (0, 3), (4, 2)]


def test_a_segment_stands_in_for_a_summary_that_failed(tmp_path: Path) -> None:
    """Its text is in all nodes above it, so a walk can reach it."""
    rules = ({"match": "Segment b", "reply": ""}, {"match": "Segment c", "finish_reason": "abort"},
             {"reply": "said"})  # fmt: skip
    nodes, _ = run(tree(), book(PAGES[:4]), scripted(tmp_path, *rules))
    b, c = PAGES[1].strip(), PAGES[2].strip()
    above = [f"said\n\n{b}", f"{c}\n\nsaid"]
    assert said(nodes) == ["said", b, c, "said", *above, "\n\n".join(above)]
    assert [(node.problem, node.detail) for node in nodes] == [
        (None, None), ("unparseable", STANDS_IN), ("engine_failed", STANDS_IN), *[(None, None)] * 4,
    ]  # fmt: skip
    assert [node.why_unusable() for node in nodes] == [None] * 7


def test_a_segment_without_words_is_no_reason_to_stop() -> None:
    nodes, calls = run(tree(), book([PAGES[0], "\n", "\n", "\n"]), always("said"))
    assert [(node.summary, node.problem) for node in nodes] == [
        ("said", None), *[(None, "empty_input")] * 3, ("said", None), (None, "empty_input"),
        ("said", None),
    ]  # fmt: skip
    assert len(calls) == 1 and nodes[-1].why_unusable() is None
    nodes, _ = run(tree(), book(["\n", "\n"]), never())
    assert nodes[-1].why_unusable() == "tree: empty_input"


def test_the_share_that_no_walk_reaches_is_in_the_report(tmp_path: Path) -> None:
    """Nodes of 0.2 may lack a summary; a text that stands in for one is no loss. Leaves 0 to 3 of
    10 characters, 4 above 0 and 1, 5 above 2 and 3: without 4 half cannot be reached."""
    unit_rows = book(["A page.\n\n\n"] * 4)
    built, _ = run(tree(), unit_rows, always("said"))
    for lost, share in (({4}, 50.0), ({0, 2, 4}, 75.0), (set[int](), 0.0)):
        nodes = [replace(node, summary=None if node.node_index in lost else "said",
                         detail=STANDS_IN if node.node_index == 1 else None)
                 for node in built]  # fmt: skip
        warehouse = by_hand.Warehouse(tmp_path / str(share))
        steps = [by_hand.step("documents")]
        steps += [replace(by_hand.step(table), memory="shared") for table in ("pages", "nodes")]
        units = [by_hand.document_unit(of, "d") for of in steps]
        contents: list[Sequence[Record]] = [[unit_rows.document], unit_rows[Page], nodes]
        for of, unit, content in zip(steps, units, contents, strict=True):
            warehouse.commit(of, unit, content)
        warehouse.plan("r", *((of, [unit]) for of, unit in zip(steps, units, strict=True)))
        (row,) = rows(warehouse, "select stand_ins, unreachable from memories")
        assert row == {"stand_ins": 1, "unreachable": share}


@pytest.mark.parametrize("context_tokens", [1300, 2000, 4096])
def test_summaries_of_any_length_leave_room_for_triage(context_tokens: int) -> None:
    """At 300 words a leaf and eight children a node, as in the paper, whose window is 4,096."""
    engine = always("A sentence of five words. " * 60, context_tokens=context_tokens)
    nodes, _ = run(tree(8, 300), book(PAGES), engine)
    summaries = tuple(nodes[child].summary for child in nodes[-1].children)
    prompt = Triage(summaries, "word " * 200, reasoning=True, rejected=())
    assert num_tokens(prompt) + prompt.max_reply_tokens <= context_tokens
    cut = [node.problem == "truncated" for node in nodes[:-1]]
    assert all(cut) if context_tokens < 4096 else not any(cut)
    assert all(node.summary.endswith("words.") for node in nodes[:-1])


def test_a_failed_unit_has_a_row_for_every_node() -> None:
    rows = book(PAGES[:4])
    nodes = tree().failed(rows, "unit_failed", "why")
    tree().check(rows, nodes)
    assert {(node.problem, node.detail) for node in nodes} == {("unit_failed", "why")}
    assert nodes[-1].why_unusable() == "tree: why"
    with pytest.raises(AccountingError):
        tree().check(rows, nodes[1:])
