"""Embeddings: every page or gist in chunks, each with its vector, whatever the page holds."""

import asyncio
import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.errors import AccountingError, Problem
from pipeline.engines.embedder import EmbedderSettings
from stages.index.search_index import EmbedGists, EmbedPages, Expand, MakeKeys, chunks
from stages.retrieve.look_up import Dense
from stages.tables.pages import Embedding, Expansion, Key
from tests.support.engines.embedding import counts
from tests.support.reading import (
    adding,
    always,
    book,
    deadline,
    given_to,
    in_turn,
    never,
    run,
    scripted,
)

PAGES = ("The bell rang and rang. ", "One candle\n\nburned. ", "Bell, book and candle lay there ")
EMBEDDER = counts("bell", "rang", "candle", chunk_words=3)
EMBED_PAGES = EmbedPages(embedder=EMBEDDER)


@pytest.mark.parametrize(
    ("stage", "texts", "chunks_of_texts"),
    [
        (EMBED_PAGES, [*PAGES, " \n"],
         [(0, 0, "The bell rang"), (0, 1, "and rang."), (1, 0, "One candle\n\nburned."),
          (2, 0, "Bell, book and"), (2, 1, "candle lay there"), (3, 0, "")]),
        (EmbedGists(embedder=EMBEDDER), ["It rang.", "A candle burned low then.", "Bell"],
         [(0, 0, "It rang."), (1, 0, "A candle burned"), (1, 1, "low then."), (2, 0, "Bell")]),
        # A page may have one vector.
        (EmbedPages(embedder=counts("bell", "rang", "candle", chunk_words=None)), PAGES,
         [(page, 0, text.strip()) for page, text in enumerate(PAGES)]),
    ],
)  # fmt: skip
def test_every_page_or_gist_is_cut_into_chunks_in_page_order(
    stage: EmbedPages | EmbedGists, texts: list[str], chunks_of_texts: list[tuple[int, int, str]]
) -> None:
    pages, gists = (PAGES, texts) if isinstance(stage, EmbedGists) else (texts, [])
    embeddings, _ = run(stage, book(pages, gists), never())
    assert [
        (row.page_index, row.chunk_index, texts[row.page_index][row.start_char : row.end_char])
        for row in embeddings
    ] == chunks_of_texts


@settings(deadline=None)
@given(st.text(st.sampled_from("ab ,.\n\t\u3000中\u00a0é"), max_size=80), st.integers(1, 7))
def test_chunks_hold_all_words_in_order_and_no_more_than_asked(text: str, words: int) -> None:
    spans = chunks(text, words)
    parts = [text[span.start_char : span.end_char] for span in spans]
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(a.end_char <= b.start_char for a, b in pairwise(spans))
    # A Chinese character is a word, and so is what stands between two of them or blanks.
    sizes = [len(re.sub("中[^\\w\\s]*", " x ", part).split()) for part in parts]
    assert all(size == words for size in sizes[:-1])
    assert all(0 < size <= words for size in sizes)


def test_what_embeddings_lack_is_reported_but_a_page_without_words_is_no_lack() -> None:
    look_up = Dense(top_k=1, embedder=EMBEDDER)
    lacks: dict[Problem, str | None] = {
        "unit_failed": "embed of page 0: unit_failed", "empty_input": None
    }  # fmt: skip
    for problem, lack in lacks.items():
        failed = EMBED_PAGES.failed(book(PAGES), problem, None)
        rows = adding(book(PAGES), {Embedding: failed})
        assert look_up.why_unusable(given_to(look_up, rows)) == lack


class Counted(EmbedderSettings):
    encoded: ClassVar[list[tuple[str, str]]] = []

    def _encode(self, texts: list[str], kind: Any) -> Any:
        self.encoded.extend((kind, text) for text in texts)
        return np.array([[float(len(text)), 1.0] for text in texts], dtype=np.float32)


def test_a_text_is_encoded_once_by_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Histories share sessions: of the second only what is new costs anything."""
    monkeypatch.setattr("pipeline.engines.embedder._VECTORS", {})
    monkeypatch.setattr("pipeline.engines.embedder._MOST_VECTORS", 3)
    Counted.encoded.clear()
    model = Counted(model="m", chunk_words=None, device="cpu", batch_size=1)

    def vectors(*texts: str, kind: Any = "document") -> list[float]:
        return [float(vector[0]) for vector in asyncio.run(model.embed(texts, kind))]

    assert vectors("a", "bb", "a") == [1, 2, 1]
    assert vectors("bb", "ccc") == [2, 3]
    assert vectors("bb", kind="query") == [2]
    assert Counted.encoded == [
        ("document", "a"), ("document", "bb"), ("document", "ccc"), ("query", "bb"),
    ]  # fmt: skip
    assert vectors("a") == [1], "forgotten, as there is room for three"
    assert Counted.encoded[4:] == [("document", "a")]


CHATS = (
    "\f[2023/05/20 (Sat) 10:00]\nuser: I have a cat.\n\nassistant: Nice.\n\n",
    "user: She is three.\n\nassistant: Young!\n\n",
    "\f[2023/05/30 (Tue) 21:48]\nuser: What is a sonnet?\n\nassistant: A poem.\n\n",
)
OWN, SHE, SONNET = VALUES = ["I have a cat.", "She is three.", "What is a sonnet?"]
DAYS = ["2023/05/20", "2023/05/20", "2023/05/30"]
CAT, CATS, THREE = "The user has a cat.", "The user likes cats.", "The cat is three."
FACTS = (json.dumps([CAT, CATS]), json.dumps([THREE]), "[]")
EVENTS = '[{"date": "2023/04/01", "event": "Got a cat."}, {"date": "?", "event": "Fed it."}]'


def stage(extracted: Any = "facts", **settings: Any) -> Expand:
    return Expand(
        extracted=extracted,
        **{"side": "user", "enabled": True, "extraction_examples": False, **settings},
    )


def expanded(engine: Any, extracted: str = "facts", **settings: Any) -> list[Expansion]:
    made, _ = run(stage(extracted, **settings), book(CHATS), engine)
    return made


def keys(found: list[Expansion], join: Any = "merge", side: Any = "user") -> list[Key]:
    rows = adding(book(CHATS), {Expansion: found})
    made, _ = run(MakeKeys(join=join, side=side), rows, never())
    return made


def test_rows_of_a_failed_unit_have_the_kind_of_others() -> None:
    for failing, kind in ((stage("facts"), "fact"), (MakeKeys(join="merge", side="user"), "value")):
        failed = failing.failed(book(CHATS), "unit_failed", None)
        assert [row.kind for row in failed] == [kind] * len(CHATS)


def shown(made: Sequence[Expansion | Key]) -> list[str]:
    return [f"{row.page_index} {row.kind} {row.text}" for row in made]


def test_the_value_alone_is_what_the_user_says() -> None:
    nothing = expanded(never(), "none")
    assert nothing == expanded(never(), enabled=False)
    assert shown(nothing) == ["0 none None", "1 none None", "2 none None"]
    values = keys(nothing)
    assert shown(values) == [f"{page} value {text}" for page, text in enumerate(VALUES)]
    assert [key.day for key in values] == DAYS
    assert keys(nothing, side="both")[1].text == "user: She is three.\n\nassistant: Young!"
    unit = book(["\f[x]\nassistant: A poem.\n\n"])  # without a user, so all that is said
    (key,), _ = run(MakeKeys(join="merge", side="user"), unit, never())
    assert (key.text, key.day) == ("assistant: A poem.", None)


def test_items_are_numbered_by_page() -> None:
    made = expanded(in_turn(*FACTS))
    assert shown(made) == [f"0 fact {CAT}", f"0 fact {CATS}", f"1 fact {THREE}", "2 fact None"]
    assert [row.item_index for row in made] == [0, 1, 0, 0]
    with pytest.raises(AccountingError, match="expansions do not match pages"):
        stage().check(book(CHATS), made[:-1])


@pytest.mark.parametrize(
    ("join", "first", "second"),
    [
        ("merge", [f"0 merged {CAT} {CATS} {OWN}"], [f"1 merged {THREE} {SHE}"]),
        ("merge_as_published", [f"0 merged {CAT} {CATS} {OWN}"], [f"1 merged {THREE} {SHE}"]),
        ("separate", [f"0 value {OWN}", f"0 fact {CAT} {CATS}"],
         [f"1 value {SHE}", f"1 fact {THREE}"]),
        ("split_separate", [f"0 value {OWN}", f"0 fact {CAT}", f"0 fact {CATS}"],
         [f"1 value {SHE}", f"1 fact {THREE}"]),
        ("split_merge", [f"0 merged {CAT} {OWN}", f"0 merged {CATS} {OWN}"],
         [f"1 merged {THREE} {SHE}"]),
        ("replace", [f"0 fact {CAT} {CATS}"], [f"1 fact {THREE}"]),
        ("split_replace", [f"0 fact {CAT}", f"0 fact {CATS}"], [f"1 fact {THREE}"]),
    ],
)  # fmt: skip
def test_joins(join: str, first: list[str], second: list[str]) -> None:
    """Of the three values the last has no facts; only the authors' join loses it."""
    third = "2 value None" if join == "merge_as_published" else f"2 value {SONNET}"
    assert shown(keys(expanded(in_turn(*FACTS)), join)) == [*first, *second, third]


@pytest.mark.parametrize(
    ("extracted", "reply", "join", "first"),
    [
        ("summary", "A cat.", "replace", ["0 summary A cat."]),
        ("summary", "A cat. A dog.", "split_replace", ["0 summary A cat.", "0 summary A dog."]),
        ("keyphrases", "cat; age", "split_separate",
         [f"0 value {OWN}", "0 keyphrase cat", "0 keyphrase age"]),
        ("keyphrases", "cat; age", "separate", [f"0 value {OWN}", "0 keyphrase cat; age"]),
    ],
)  # fmt: skip
def test_summaries_and_keyphrases(extracted: str, reply: str, join: str, first: list[str]) -> None:
    made = keys(expanded(always(reply), extracted), join)
    assert shown(made)[: len(made) // 3] == first


def test_events_have_days_of_their_own_or_their_session_s() -> None:
    for extracted, is_told in (("facts", False), ("events", True)):  # of their session's date
        engine = always("[]")
        expanded(engine, extracted)
        assert ("2023/05/30 (Tue) 21:48" in engine.prompts()[2]) == is_told
    found = expanded(always(EVENTS), "events")
    assert shown(found[:2]) == ["0 event Got a cat.", "0 event Fed it."]
    assert [row.day for row in found[:2]] == ["2023/04/01", DAYS[0]]
    split = keys(found, "split_separate")
    assert [key.day for key in split[:3]] == [DAYS[0], "2023/04/01", DAYS[0]]
    assert keys(found)[0].day == DAYS[0]


@pytest.mark.parametrize(("extracted", "num"), [("facts", 10), ("events", 10), ("summary", 0)])
def test_ten_examples_whose_replies_can_be_read(extracted: str, num: int) -> None:
    """As many as in the paper's appendix D, before the chat; each is a legal reply."""
    engine, plain = always("[]"), always("[]")
    expanded(engine, extracted, extraction_examples=True)
    expanded(plain, extracted)
    prompt: Any = engine.requests[0].fields
    for with_examples, without in zip(engine.prompts(), plain.prompts(), strict=True):
        assert with_examples.endswith(without)
        lists = re.findall(r"^\[.*\]$", with_examples.removesuffix(without), re.MULTILINE)
        assert len(lists) == num
        for reply in lists:
            assert len(prompt.read(reply, False)) == len(json.loads(reply))


def test_a_reply_that_cannot_be_read_leaves_the_value_and_none_is_a_lack(tmp_path: Path) -> None:
    rules = {"match": "She is three", "hang": True}, {"reply": "[]"}
    found, _ = run(stage(), book(CHATS), scripted(tmp_path, *rules),
                   deadline_seconds=deadline(*rules))  # fmt: skip
    assert [row.why_unusable() for row in found] == [None, "expand of page 1: timeout", None]
    found = expanded(always("no list"))
    assert shown(found) == ["0 fact None", "1 fact None", "2 fact None"]
    assert [(row.problem, row.why_unusable()) for row in found] == [("unparseable", None)] * 3
    for join in ("merge", "merge_as_published"):
        assert shown(keys(found, join)) == [f"{n} value {text}" for n, text in enumerate(VALUES)]
