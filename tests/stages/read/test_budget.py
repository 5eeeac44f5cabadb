"""The final context within a budget of tokens, which are words here, worked by hand."""

from typing import Any

import pytest

from pipeline.core.errors import UsageError
from pipeline.core.rows import UnitRows
from pipeline.work.stage import Stage
from stages.index.context import Context
from stages.index.paginate import PaginateByModel, PaginateByTokens, PaginateChat, PaginateUniform
from stages.read.answer_from_chats import AnswerFromChat, AnswerFromExpandedChat, AnswerFromNotes
from stages.read.answer_from_context import AnswerFromContext, AnswerFromMemory, AnswerFromPages
from stages.read.answer_kinds import AnswerFromChunks, AnswerFromText, AnswerFromTruncatedText
from stages.tables.answers import Answer
from stages.tables.keys import Expansion
from stages.tables.lookups import Dropped, Note, Query
from tests.stages.read.test_answer_from_context import COMMON, FROM_MEMORY, FROM_PAGES, PAGES, rows
from tests.support.reading import adding, always, book, looked_up, never, num_tokens, question, run

CHAT: dict[str, Any] = {**COMMON, "history": "json", "reading": "direct", "judged": "answer"}


def one(stage: AnswerFromContext, unit: UnitRows) -> Answer:
    (answer,), calls = run(stage, unit, always("Noon.", 10_000))
    assert isinstance(answer, Answer) and len(calls) == (answer.problem is None)
    return answer


def facts(answer: Answer) -> tuple[Any, ...]:
    return answer.page_indexes, answer.num_context_tokens, answer.detail


@pytest.mark.parametrize(
    ("stage", "budget", "read", "tokens"),
    [
        # Page 3 has room beside page 2 and 0 at a budget of 15, but page 1 comes before it.
        (FROM_PAGES, 6, (2,), 6), (FROM_PAGES, 10, (2,), 6), (FROM_PAGES, 11, (0, 2), 11),
        (FROM_PAGES, 13, (0, 2), 11), (FROM_PAGES, 14, (0, 1, 2), 14),
        (FROM_PAGES, 17, (0, 1, 2), 14), (FROM_PAGES, 18, (0, 1, 2, 3), 18),
        # Gists count, and a page takes its gist's place.
        (FROM_MEMORY, 6, (), 6), (FROM_MEMORY, 9, (), 6), (FROM_MEMORY, 10, (2,), 10),
        (FROM_MEMORY, 13, (0, 2), 13), (FROM_MEMORY, 14, (0, 2), 13),
        (FROM_MEMORY, 15, (0, 1, 2), 15), (FROM_MEMORY, 18, (0, 1, 2, 3), 18),
    ],
)  # fmt: skip
def test_pages_up_to_the_first_that_would_pass_it(
    stage: AnswerFromContext, budget: int, read: tuple[int, ...], tokens: int
) -> None:
    limited = stage.model_copy(update={"budget": budget})
    note = f"no room for {4 - len(read)} of 4 pages" if len(read) < 4 else None
    assert facts(one(limited, rows(looked_up(2, 0, 1, 3)))) == (read, tokens, note)


def test_a_text_is_cut_at_it() -> None:
    whole = "".join(PAGES)
    for keep, words in (("first", whole.split()[:7]), ("last", whole.split()[-7:])):
        stage = AnswerFromTruncatedText.model_validate({**COMMON, "keep": keep, "budget": 7})
        answer = one(stage, rows(looked_up()))
        (span,) = answer.context_spans
        assert whole[span.start_char : span.end_char].split() == words
        assert answer.num_context_tokens == 7


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


@pytest.mark.parametrize(
    ("budget", "read", "tokens"),
    [(9, (0,), 9), (12, (0,), 9), (13, (0, 3), 13), (15, (0, 3), 13), (16, (0, 1, 3), 16)],
)
def test_of_several_queries_each_ones_best_comes_first(
    budget: int, read: tuple[int, ...], tokens: int
) -> None:
    """In the order 0, 3, 1, 2; a draft of four words counts, what stands around it does not."""
    lookups = (
        looked_up(0, 1, 2),
        looked_up(3, requested=(3, 0), dropped=(Dropped(0, "duplicate"),), turn=1),
    )
    unit = adding(rows(*lookups), {Query: QUERIES})
    answer = one(AnswerFromChunks(**COMMON, budget=budget), unit)
    assert facts(answer) == (read, tokens, f"no room for {4 - len(read)} of 4 pages")
    assert answer.num_context_words == tokens


CHATS = (  # 2 + 3 words without headers, 4, 2
    '\f[2023/05/20 (Sat) 10:00]\nuser: Hello.\n\nassistant: Nice cat.\n\n',
    "user: She is three.\n\n",
    "\f[2023/05/30 (Tue) 21:48]\nuser: Bye.\n\n",
)  # fmt: skip
NOTES = ("a cat", "three", "")


def chats(*used: int) -> UnitRows:
    notes = [Note(document_id="d", question_id="q", page_index=n, note=note)
             for n, note in enumerate(NOTES)]  # fmt: skip
    facts_of = [Expansion(document_id="d", page_index=n, item_index=0, kind="fact", text=text)
                for n, text in enumerate(("has a cat", "a cat of three", None))]  # fmt: skip
    unit = book(CHATS, questions=[question()], lookups=[looked_up(*used)])
    return adding(unit, {Note: notes, Expansion: facts_of})


@pytest.mark.parametrize(
    ("stage", "tokens"),
    [
        (AnswerFromChat(**CHAT), [2, 7, 11]),
        (AnswerFromExpandedChat(**CHAT, shown="value"), [2, 7, 11]),
        (AnswerFromExpandedChat(**CHAT, shown="items"), [2, 5, 9]),
        (AnswerFromExpandedChat(**CHAT, shown="both"), [2, 10, 18]),
        (AnswerFromNotes(**CHAT, keep_empty=True), [1, 3, 4]),
    ],
)
def test_of_chats_what_was_said_counts(stage: AnswerFromContext, tokens: list[int]) -> None:
    """The pages 2, 0, 1: no headers, headings, nor the signs of JSON."""
    for left, total in zip((2, 1, 0), tokens, strict=True):
        answer = one(stage.model_copy(update={"budget": total}), chats(2, 0, 1))
        assert answer.num_context_tokens == total
        assert answer.detail == (f"no room for {left} of 3 pages" if left else None)


FOUND = adding(rows(looked_up(2, 0, 1)), {Query: QUERIES})


@pytest.mark.parametrize(
    ("stage", "unit"),
    [
        (FROM_PAGES, FOUND),
        (AnswerFromChunks(**COMMON), FOUND),
        (AnswerFromChat(**CHAT), chats(0, 1)),
        (AnswerFromExpandedChat(**CHAT, shown="both"), chats(0, 1)),
        (AnswerFromNotes(**CHAT, keep_empty=True), chats(0, 1)),
        (AnswerFromNotes(**CHAT, keep_empty=False), chats(2, 0)),
    ],
)
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


@pytest.mark.parametrize(
    ("pages", "least", "setting"),
    [
        (PaginateByTokens(page_breaks=False, segment_tokens=512), 512, "segment_tokens"),
        (PaginateUniform(paragraphs="lines", page_breaks=False, words=100, max_words=100), 100,
         "words"),
        (PaginateByModel(paragraphs="lines", page_breaks=False, min_words=280, max_words=600,
                         tail_words=350, preceding_words=0, following="nothing",
                         label_rule="within_limits"), 280, "min_words"),
    ],
)  # fmt: skip
def test_a_budget_below_a_page_is_refused_where_that_is_known(
    pages: Stage, least: int, setting: str
) -> None:
    def refuse(budget: int | None, pages: Stage = pages) -> None:
        AnswerFromPages(**COMMON, budget=budget).refuse_upstream("rag", [pages])

    refuse(None)
    refuse(least)
    refuse(1, PaginateChat(value="round"))
    with pytest.raises(UsageError, match=f"rag: budget={least - 1} is .* as {setting}={least}; "):
        refuse(least - 1)
