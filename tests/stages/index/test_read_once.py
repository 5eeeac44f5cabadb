"""One conversation for several windows and the gists of their pages: what each prompt shows, and
that pages are those of single windows for the same replies."""

import random
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.engine import Request
from pipeline.core.errors import UsageError
from pipeline.core.rows import UnitRows
from stages.index.gist_pages import FollowUpGists
from stages.index.paginate import Following, LabelRule, PaginateByModel, PaginateInConversations
from stages.prompts.readagent_memory import PageEnd
from stages.tables.pages import Page
from tests.support.reading import Listener, adding, always, document, in_turn, run

WINDOW: dict[str, Any] = {
    "page_breaks": False, "paragraphs": "lines", "min_words": 4, "max_words": 8,
    "preceding_words": 0, "following": "nothing", "label_rule": "within_limits",
}  # fmt: skip
# Five paragraphs of two words: a window holds four, a page has two, three or four.
FIVE = UnitRows(document=document("a b\nc d\ne f\ng h\ni j\n"))
TEN = UnitRows(document=document("".join(f"{a} {a}\n" for a in "abcdefghij")))


def conversation(pages: int = 9, tail_words: int = 0, **changed: Any) -> PaginateInConversations:
    values = {**WINDOW, "tail_words": tail_words, **changed}
    return PaginateInConversations(**values, pages_per_conversation=pages)


def follow_ups(pages: int = 9, **changed: Any) -> FollowUpGists:
    return FollowUpGists(**{**WINDOW, **changed}, pages_per_conversation=pages)


def turns(request: Request) -> list[str]:
    """The messages without our instructions: each paragraph, label and reply in its turn."""
    shown = re.compile(r"^(?:\w \w|(?:Break point: )?<(?!57)\d+>)$", re.MULTILINE)
    return [" ".join(shown.findall(message["content"])) for message in request.messages]


def test_the_next_window_and_gists_show_only_what_is_new() -> None:
    engine = in_turn("Break point: <2>\nBecause the subject changes.", "<5>")
    pages, calls = run(conversation(), FIVE, engine)
    assert [page.text for page in pages] == ["a b\nc d\n", "e f\ng h\ni j\n"]
    assert [call.prompt for call in calls] == ["break_point", "break_point_follow_up"]
    first, second = engine.requests
    assert turns(first) == ["a b c d <2> e f <3> g h <4>"]
    # The reply is shown without its reason; <3> is too near to <2>, <4> has been shown.
    assert turns(second) == [*turns(first), "Break point: <2>", "i j <5>"]
    asked = second.messages[-1]["content"]
    assert "starts right after <2>" in asked and "numbers from <4> to <5>" in asked
    # Gists follow in the conversation of their page.
    gist_engine = in_turn("one", "two")
    gists, calls = run(follow_ups(), adding(FIVE, {Page: pages}), gist_engine)
    assert [gist.gist for gist in gists] == ["one", "two"]
    assert [(call.prompt, call.page_index) for call in calls] == [
        ("gist_follow_up", 0), ("gist_follow_up", 1),
    ]  # fmt: skip
    of_first, of_second = gist_engine.requests
    assert turns(of_first) == [*turns(first), "Break point: <2>", ""]
    assert turns(of_second) == [*turns(second), "Break point: <5>", ""]
    assert "from where this page starts to <5>" in of_second.messages[-1]["content"]


def test_a_page_that_nobody_was_asked_about_is_shortened_by_itself() -> None:
    pages, _ = run(conversation(tail_words=7), FIVE, in_turn("<2>"))
    assert [page.chosen_by for page in pages] == ["model", "end"]
    engine = in_turn("one", "two")
    _, calls = run(follow_ups(), adding(FIVE, {Page: pages}), engine)
    assert [call.prompt for call in calls] == ["gist_follow_up", "gist"]
    assert turns(engine.requests[1]) == ["e f g h i j"]


def test_a_conversation_has_a_number_of_pages() -> None:
    sent = []
    for stage in (conversation(2), conversation(1), PaginateByModel(**WINDOW, tail_words=0)):
        engine = in_turn("<2>", "<4>", "<6>", "<8>")
        run(stage, TEN, engine)
        sent.append([request.messages for request in engine.requests])
    assert [len(messages) for messages in sent[0]] == [1, 3, 1, 3]
    assert sent[1] == sent[2]


def test_what_does_not_fit_the_context_begins_anew() -> None:
    budgets = {"break_point": 1, "break_point_follow_up": 1, "gist_follow_up": 1, "gist": 1}
    engine = in_turn("<2>", "<5>", context_tokens=120)
    pages, calls = run(conversation(), FIVE, engine, reply_tokens=budgets)
    assert [call.prompt for call in calls] == ["break_point", "break_point"]
    engine = always("short", context_tokens=120)
    gists, calls = run(follow_ups(), adding(FIVE, {Page: pages}), engine, reply_tokens=budgets)
    assert [(call.prompt, call.problem) for call in calls] == [("gist", None)] * 2
    assert all(gist.gist == "short" for gist in gists)


def test_nothing_follows_a_question_without_a_reply() -> None:
    lost = Listener(lambda request: "<4>", finish_reason="abort")
    pages, _ = run(conversation(), TEN, lost)
    chosen_by = [(page.chosen_by, page.problem) for page in pages]
    assert chosen_by == [*[("fallback", "engine_failed")] * 2, ("rule", None)]
    assert all(len(request.messages) == 1 for request in lost.requests)
    _, calls = run(follow_ups(), adding(TEN, {Page: pages}), always("short"))
    assert {call.prompt for call in calls} == {"gist"}


def by_labels(request: Request) -> str:
    draw = random.Random(f"{labels(request)}")
    return f"<{draw.choice([*labels(request), 0])}>"


def labels(request: Request) -> list[int]:
    assert isinstance(request.fields, PageEnd)
    return request.fields.labels()


@given(
    paragraphs=st.lists(st.integers(0, 9), max_size=40),
    limits=st.tuples(st.integers(1, 12), st.integers(0, 12), st.integers(0, 20)),
    preceding=st.none() | st.integers(0, 5),
    following=st.sampled_from(["nothing", "ellipsis", "paragraph"]),
    rule=st.sampled_from(["within_limits", "notebook"]),
    pages=st.integers(1, 5),
    breaks=st.sets(st.integers(1, 39), max_size=3),
    ends=st.sampled_from(["any", "pauses"]),
)
@pytest.mark.sampled
def test_equal_replies_give_equal_pages_and_each_label_is_shown_once(
    paragraphs: Sequence[int], limits: tuple[int, int, int], preceding: int | None,
    following: Following, rule: LabelRule, pages: int, breaks: set[int], ends: str,
) -> None:  # fmt: skip
    least, more, tail = limits
    lines = [" ".join(f"p{i}w{n}" for n in range(size)) for i, size in enumerate(paragraphs)]
    text = "".join(("\f" if i in breaks else "") + line + "\n" for i, line in enumerate(lines))
    rows = UnitRows(document=document(text))
    values = {
        **WINDOW, "page_breaks": True, "min_words": least, "max_words": least + more,
        "preceding_words": preceding, "following": following, "label_rule": rule,
        "page_ends": ends,
    }  # fmt: skip
    alone = Listener(by_labels)
    expected, _ = run(PaginateByModel(**values, tail_words=tail), rows, alone)
    together = Listener(by_labels)
    same, _ = run(conversation(pages, tail, **values), rows, together)
    assert same == expected
    assert [*map(labels, together.requests)] == [*map(labels, alone.requests)]
    gists = always("short")
    run(follow_ups(pages, **values), adding(rows, {Page: expected}), gists)
    began = [r.messages[:-2] for r in gists.requests if r.prompt == "gist_follow_up"]
    assert sorted(began, key=str) == sorted((r.messages for r in together.requests), key=str)
    for request in together.requests:
        shown = [turn["content"] for turn in request.messages if turn["role"] == "user"]
        in_prompt = re.findall(r"^<(\d+)>$", "\n".join(shown), re.MULTILINE)
        assert len(in_prompt) == len({*in_prompt})
        assert {*map(str, labels(request))} <= {*in_prompt}


def test_the_pages_must_be_of_the_same_conversations() -> None:
    follow_ups().refuse_upstream("here", [conversation()])
    for stage in (conversation(max_words=9), PaginateByModel(**WINDOW, tail_words=0)):
        with pytest.raises(UsageError, match=r"^here: needs pages of paginate \(kind conversation"):
            follow_ups().refuse_upstream("here", [stage])
