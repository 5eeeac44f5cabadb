"""The final context within a budget of tokens, which are words here, worked by hand; and raw pages
after the gist memory: in which order, and what look-ups and answers show of them."""

from collections.abc import Sequence
from typing import Any

import pytest

from jobs.graph.resolved_run import read_run
from pipeline.core.errors import UsageError
from pipeline.core.rows import UnitRows
from stages.index.context import Context, orders_alike
from stages.read.answer_from_chats import AnswerFromChat, AnswerFromExpandedChat, AnswerFromNotes
from stages.read.answer_from_context import AnswerFromContext, AnswerFromMemory, AnswerFromPages
from stages.read.answer_kinds import AnswerFromChunks, AnswerFromText
from stages.retrieve.read_agent import ReadAgentP, ReadAgentS
from stages.tables.lookups import Dropped, Lookup, Note, Query
from stages.tables.pages import Expansion
from tests.stages.read.test_answer_from_context import COMMON, FROM_MEMORY, FROM_PAGES, one, rows
from tests.stages.read.test_chat_answers import PAGES as CHATS
from tests.support.reading import (
    Listener,
    adding,
    always,
    book,
    in_turn,
    looked_up,
    never,
    num_tokens,
    question,
    run,
)

LAYOUT: dict[str, Any] = {"layout": "appended", "appended_heading": "Raw pages:"}
ANSWER = AnswerFromMemory(**COMMON, **LAYOUT)
MEMORY = "<Page 0> bell rings <Page 1> denial <Page 2> wind blamed <Page 3> silence"
RAW_1, RAW_3 = "<Page 1> Nobody admits it.", "<Page 3> The bell is silent."
CHAT: dict[str, Any] = {**COMMON, "history": "json", "reading": "direct", "judged": "answer"}


@pytest.mark.parametrize(
    ("stage", "budget", "read", "tokens"),
    [
        # Page 3 has room beside page 2 and 0 at a budget of 15, but page 1 comes before it.
        (FROM_PAGES, 6, (2,), 6), (FROM_PAGES, 10, (2,), 6), (FROM_PAGES, 11, (0, 2), 11),
        (FROM_PAGES, 17, (0, 1, 2), 14), (FROM_PAGES, 18, (0, 1, 2, 3), 18),
        # Gists count, and a page takes its gist's place.
        (FROM_MEMORY, 6, (), 6), (FROM_MEMORY, 9, (), 6), (FROM_MEMORY, 10, (2,), 10),
        (FROM_MEMORY, 14, (0, 2), 13), (FROM_MEMORY, 18, (0, 1, 2, 3), 18),
    ],
)  # fmt: skip
def test_pages_up_to_the_first_that_would_pass_it(
    stage: AnswerFromContext, budget: int, read: tuple[int, ...], tokens: int
) -> None:
    limited = stage.model_copy(update={"budget": budget})
    note = f"no room for {4 - len(read)} of 4 pages" if len(read) < 4 else None
    answer = one(limited, rows(looked_up(2, 0, 1, 3)), always("Noon."))
    assert (answer.page_indexes, answer.num_context_tokens, answer.detail) == (read, tokens, note)


@pytest.mark.parametrize(
    ("stage", "used", "detail"),
    [
        (AnswerFromPages(**COMMON, budget=5), (2, 1),
         "budget=5: the first page has 6 tokens; raise it or make shorter pages"),
        *((AnswerFromMemory(**COMMON, budget=5), used,
           "budget=5: the context has 6 tokens without any page; raise it")
          for used in ((2, 1), ())),
        (AnswerFromText(**COMMON, keep=None, num_words=None, truncate_by="words", budget=17), (),
         "budget=17: the context has 18 tokens without any page; raise it"),
    ],
)  # fmt: skip
def test_a_budget_with_room_for_nothing_is_said_without_a_call(
    stage: AnswerFromContext, used: tuple[int, ...], detail: str
) -> None:
    (answer,), calls = run(stage, rows(looked_up(*used)), never())
    assert (answer.problem, answer.detail, calls) == ("context_overflow", detail, ())
    assert (answer.answer, answer.num_context_tokens) == (None, None)


QUERIES = [
    Query(document_id="d", question_id="q", query_index=n, kind=kind, text=text)
    for n, (kind, text) in enumerate((("span", "bell"), ("draft", "It was the wind.")))
]
FOUND = adding(rows(looked_up(2, 0, 1)), {Query: QUERIES})


def test_of_several_queries_each_ones_best_comes_first() -> None:
    """In the order 0, 3, 1, 2; a draft of four words counts, what stands around it does not."""
    second = looked_up(3, requested=(3, 0), dropped=(Dropped(0, "duplicate"),), turn=1)
    unit = adding(rows(looked_up(0, 1, 2), second), {Query: QUERIES})
    for budget, read, tokens in ((12, (0,), 9), (13, (0, 3), 13), (16, (0, 1, 3), 16)):
        answer = one(AnswerFromChunks(**COMMON, budget=budget), unit, always("Noon."))
        assert (answer.page_indexes, answer.num_context_tokens) == (read, tokens)
        assert answer.detail == f"no room for {4 - len(read)} of 4 pages"
        assert answer.num_context_words == tokens


def chats(*used: int) -> UnitRows:
    """Pages of 7, 4 and 2 words."""
    notes = [Note(document_id="d", question_id="q", page_index=n, note=note)
             for n, note in enumerate(("a cat", "three", ""))]  # fmt: skip
    facts_of = [Expansion(document_id="d", page_index=n, item_index=0, kind="fact", text=text)
                for n, text in enumerate(("has a cat", "a cat of three", None))]  # fmt: skip
    unit = book(CHATS, questions=[question()], lookups=[looked_up(*used)])
    return adding(unit, {Note: notes, Expansion: facts_of})


@pytest.mark.parametrize(
    ("stage", "tokens"),
    [
        (AnswerFromChat(**CHAT), [2, 9, 13]),
        (AnswerFromExpandedChat(**CHAT, shown="value"), [2, 9, 13]),
        (AnswerFromExpandedChat(**CHAT, shown="items"), [2, 5, 9]),
        (AnswerFromExpandedChat(**CHAT, shown="both"), [2, 12, 20]),
        (AnswerFromNotes(**CHAT, keep_empty=True), [1, 3, 4]),
    ],
)
def test_of_chats_what_was_said_counts(stage: AnswerFromContext, tokens: list[int]) -> None:
    """The pages 2, 0, 1: no headers, headings, nor the signs of JSON."""
    for left, total in zip((2, 1, 0), tokens, strict=True):
        answer = one(stage.model_copy(update={"budget": total}), chats(2, 0, 1), always("Noon."))
        assert answer.num_context_tokens == total
        assert answer.detail == (f"no room for {left} of 3 pages" if left else None)


@pytest.mark.parametrize(
    ("stage", "unit"),
    [
        (FROM_PAGES, FOUND), (AnswerFromChunks(**COMMON), FOUND),
        (AnswerFromChat(**CHAT), chats(0, 1)),
        (AnswerFromExpandedChat(**CHAT, shown="both"), chats(0, 1)),
        (AnswerFromNotes(**CHAT, keep_empty=True), chats(0, 1)),
        (AnswerFromNotes(**CHAT, keep_empty=False), chats(2, 0)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("by_budget", [True, False])
def test_nothing_is_answered_from_pages_none_of_which_has_room(
    stage: AnswerFromContext, unit: UnitRows, by_budget: bool
) -> None:
    """Not even by a draft or a note of nothing."""
    (asking,) = stage.prompts_used()
    alone = num_tokens(stage.prompt(unit.questions[0], Context())) + 50
    limited = stage.model_copy(update={"budget": 1 if by_budget else None})
    engine = always("Noon.", 10_000 if by_budget else alone)
    (answer,), _ = run(limited, unit, engine, reply_tokens={asking.name: 50})
    assert (answer.problem, answer.answer, answer.page_indexes) == ("context_overflow", None, ())
    assert answer.detail
    (answer,), _ = run(stage, unit, always("Noon."))
    assert (answer.problem, answer.answer) == (None, "Noon.")


def test_a_budget_below_a_page_is_refused_where_that_is_known() -> None:
    for method, setting, least in (("rag(retriever=bm25,", "segment_tokens", 512),
                                   ("dos_rag(retriever=bm25,", "words", 100),
                                   ("memwalker(", "segment_tokens", 1000),
                                   ("bm25(", "min_words", 280)):  # fmt: skip
        read_run([f"methods={method}budget={least})"])
        told = rf"budget={least - 1} is .* as {setting}={least}; raise"
        with pytest.raises(UsageError, match=told):
            read_run([f"methods={method}budget={least - 1})"])
    read_run(["corpus=longmemeval", "corpus.path=.", "methods=full_history(budget=1)"])


def asked(**used: Sequence[int]) -> UnitRows:
    questions = [question(name, f"Question {name}?") for name in used]
    lookups = [looked_up(*pages, question_id=name) for name, pages in used.items()]
    return rows(*lookups, questions=questions)


def shown(engine: Listener) -> list[str]:
    starts = [prompt.partition("Question")[0] for prompt in engine.prompts()]
    return [" ".join(start.partition("left out.")[2].split()) for start in starts]


def test_pages_come_first_that_save_most_words() -> None:
    cases: list[list[list[int]]] = [
        [],
        [[1, 3]],  # nothing is shared: in the order of the document
        [[2, 1], [2], [2, 0]],  # page 2 in three sets, so first in all
        [[], [1]],
        [[0, 3], [0, 3], [0, 2], [1, 2]],  # 0 before 2
        # Page 9 has more words than all others: of two sets it saves more than page 0 of three.
        [[9, 0], [9, 0], [0, 1]],
    ]
    for orders in cases:
        sets = [frozenset(pages) for pages in orders]
        order_of = orders_alike(sets, dict.fromkeys(range(9), 10) | {9: 1000})
        assert [order_of[pages] for pages in sets] == orders


def test_answers_show_the_whole_memory_and_then_the_pages_in_a_shared_order() -> None:
    engine = always("At noon.")
    answers, _ = run(ANSWER, asked(a=[3, 1], b=[1], c=[]), engine)
    assert shown(engine) == [
        f"{MEMORY} Raw pages: {RAW_1} {RAW_3}", f"{MEMORY} Raw pages: {RAW_1}", MEMORY,
    ]  # fmt: skip
    # Gists of six words, and pages of three and four; the heading does not count.
    assert [(row.num_context_words, row.num_context_tokens, row.page_indexes)
            for row in answers] == [(13, 13, (1, 3)), (9, 9, (1,)), (6, 6, ())]  # fmt: skip
    # The least important page is left out, whatever the order.
    engine = always("At dusk.")
    answers, _ = run(ANSWER.model_copy(update={"budget": 10}), asked(a=[3, 1], b=[1]), engine)
    assert shown(engine) == [f"{MEMORY} Raw pages: {RAW_3}", f"{MEMORY} Raw pages: {RAW_1}"]
    assert [row.detail for row in answers] == ["no room for 1 of 2 pages", None]


def test_sequential_look_ups_append_pages_as_they_were_read() -> None:
    stage = ReadAgentS(**COMMON, **LAYOUT, max_pages=3, answer_each_look_up=False)
    engine = in_turn("Page 3", "Page 1", "STOP")
    lookups, _ = run(stage, asked(a=[]), engine)
    raw = f"{MEMORY} Raw pages: {RAW_3}"
    assert shown(engine) == [MEMORY, raw, f"{raw} {RAW_1}"]
    # Question b alone would have page 1 before page 3; a's answer begins as its look-ups did.
    lookups.append(looked_up(1, question_id="b"))
    reader = always("At noon.")
    run(ANSWER, adding(asked(a=[], b=[]), {Lookup: lookups}), reader)
    assert shown(reader) == [f"{raw} {RAW_1}", f"{MEMORY} Raw pages: {RAW_1}"]


def test_a_parallel_look_up_leaves_room_for_gists_and_pages() -> None:
    """Within 6 + 3 words, the gists and page 1. In place there would be room for page 3, too."""
    for layout, used in (("in_place", (1, 3)), ("appended", (1,))):
        settings = {**LAYOUT, "first_page": 0, "layout": layout, "budget": 11, "max_pages": 2}
        (row,), _ = run(ReadAgentP(**settings), rows(), in_turn("Page [1, 3]"))
        assert row.used == used
