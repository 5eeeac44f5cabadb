"""Embeddings: every page or gist in chunks, each with its vector, whatever the page holds."""

import asyncio
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.errors import AccountingError, Problem
from pipeline.engines.embedder import EmbedderSettings
from stages.index.search_index import EmbedGists, EmbedPages, Expand, MakeKeys, chunks
from stages.retrieve.look_up import Dense
from stages.tables.keys import Embedding, Expansion, Key
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
    ],
)  # fmt: skip
def test_every_page_or_gist_is_cut_into_chunks_in_page_order(
    stage: EmbedPages | EmbedGists, texts: list[str], chunks_of_texts: list[tuple[int, int, str]]
) -> None:
    pages, gists = (texts, []) if stage is EMBED_PAGES else (PAGES, texts)
    embeddings, calls = run(stage, book(pages, gists), never())
    assert calls == ()
    assert [
        (row.page_index, row.chunk_index, texts[row.page_index][row.start_char : row.end_char])
        for row in embeddings
    ] == chunks_of_texts


@pytest.mark.parametrize(
    ("chunk_words", "vectors"),
    [
        (3, [(2**-0.5, 2**-0.5, 0.0), (2 / 5**0.5, 1 / 5**0.5, 0.0), (0.0, 0.0, 1.0)]),
        (None, [(3 / 14**0.5, 2 / 14**0.5, 1 / 14**0.5)]),  # a page may have one vector
    ],
)
def test_a_chunk_has_the_vector_of_its_own_words(
    chunk_words: int | None, vectors: list[tuple[float, ...]]
) -> None:
    stage = EmbedPages(embedder=counts("bell", "rang", "candle", chunk_words=chunk_words))
    made, _ = run(stage, book(["bell rang x bell bell rang candle "]), never())
    assert [row.embedding for row in made] == [pytest.approx(of, abs=1e-6) for of in vectors]
    assert [row.problem for row in made] == [None] * len(vectors)


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


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        ("unit_failed", "embed of page 0: unit_failed"),
        ("empty_input", None),  # a page without words is no reason to skip the others
    ],
)
def test_what_embeddings_lack_is_reported_for_every_question(
    problem: Problem, reason: str | None
) -> None:
    look_up, rows = Dense(top_k=1, embedder=EMBEDDER), book(PAGES)
    rows = adding(rows, {Embedding: EMBED_PAGES.failed(rows, problem, None)})
    assert look_up.why_unusable(given_to(look_up, rows)) == reason


class Counted(EmbedderSettings):
    """Notes every text that the model would have to encode."""

    def _encode(self, texts: list[str], kind: Any) -> Any:
        ENCODED.extend((kind, text) for text in texts)
        return np.array([[float(len(text)), 1.0] for text in texts], dtype=np.float32)


ENCODED: list[tuple[str, str]] = []


def test_a_text_is_encoded_once_by_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Histories share sessions: of the second only what is new costs anything."""
    monkeypatch.setattr("pipeline.engines.embedder._VECTORS", {})
    monkeypatch.setattr("pipeline.engines.embedder._MOST_VECTORS", 3)
    ENCODED.clear()
    model = Counted(model="m", chunk_words=None, device="cpu", batch_size=1)

    def vectors(*texts: str, kind: Any = "document") -> list[float]:
        return [float(vector[0]) for vector in asyncio.run(model.embed(texts, kind))]

    assert vectors("a", "bb", "a") == [1, 2, 1]
    assert vectors("bb", "ccc") == [2, 3]
    assert vectors("bb", kind="query") == [2]
    assert ENCODED == [
        ("document", "a"), ("document", "bb"), ("document", "ccc"), ("query", "bb"),
    ]  # fmt: skip
    assert vectors("a") == [1], "forgotten, as there is room for three"
    assert ENCODED[4:] == [("document", "a")]


CHATS = (
    "\f[2023/05/20 (Sat) 10:00]\nuser: I have a cat.\n\nassistant: Nice.\n\n",
    "user: She is three.\n\nassistant: Young!\n\n",
    "\f[2023/05/30 (Tue) 21:48]\nuser: What is a sonnet?\n\nassistant: A poem.\n\n",
)
VALUES = ["I have a cat.", "She is three.", "What is a sonnet?"]
DAYS = ["2023/05/20", "2023/05/20", "2023/05/30"]
FACTS = ('["The user has a cat.", "The user likes cats."]', '["The cat is three."]', "[]")
EVENTS = json.dumps(
    [{"date": "2023/04/01", "event": "Got a cat."}, {"date": "?", "event": "Fed it."}]
)


def stage(extracted: Any = "facts", **settings: Any) -> Expand:
    return Expand(
        extracted=extracted,
        **{"side": "user", "enabled": True, "extraction_examples": False, **settings},
    )


def expanded(engine: Any, extracted: str = "facts", **settings: Any) -> list[Expansion]:
    made, _ = run(stage(extracted, **settings), book(CHATS), engine)
    return made


def keys(found: list[Expansion], join: Any = "merge", side: Any = "user") -> list[Key]:
    made, calls = run(
        MakeKeys(join=join, side=side), adding(book(CHATS), {Expansion: found}), never()
    )
    assert calls == ()
    return made


def test_the_value_alone_is_what_the_user_says() -> None:
    nothing = expanded(never(), "none")
    assert nothing == expanded(never(), enabled=False)
    assert [(row.page_index, row.kind, row.text) for row in nothing] == [
        (page, "none", None) for page in range(3)
    ]
    values = keys(nothing)
    assert [(key.page_index, key.key_index, key.kind, key.text) for key in values] == [
        (page, 0, "value", text) for page, text in enumerate(VALUES)
    ]
    assert [key.day for key in values] == DAYS
    assert keys(nothing, side="both")[1].text == "user: She is three.\n\nassistant: Young!"
    unit = book(["\f[x]\nassistant: A poem.\n\n"])  # without a user, so all that is said
    (key,), _ = run(MakeKeys(join="merge", side="user"), unit, never())
    assert (key.text, key.day) == ("assistant: A poem.", None)


def test_items_are_numbered_by_page() -> None:
    made = expanded(in_turn(*FACTS))
    assert [(row.page_index, row.item_index, row.kind, row.text) for row in made] == [
        (0, 0, "fact", "The user has a cat."),
        (0, 1, "fact", "The user likes cats."),
        (1, 0, "fact", "The cat is three."),
        (2, 0, "fact", None),
    ]
    for wrong in (made[:-1], [*made[:1], replace(made[1], item_index=2), *made[2:]]):
        with pytest.raises(AccountingError, match="expansions do not match pages"):
            stage().check(book(CHATS), wrong)


CAT, CATS, THREE = "The user has a cat.", "The user likes cats.", "The cat is three."
OWN, SHE, SONNET = VALUES


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        ("merge", [f"0 merged {CAT} {CATS} {OWN}", f"1 merged {THREE} {SHE}", f"2 value {SONNET}"]),
        ("merge_as_published",
         [f"0 merged {CAT} {CATS} {OWN}", f"1 merged {THREE} {SHE}", "2 value None"]),
        ("separate", [f"0 value {OWN}", f"0 fact {CAT} {CATS}", f"1 value {SHE}", f"1 fact {THREE}",
                      f"2 value {SONNET}"]),
        ("split_separate", [f"0 value {OWN}", f"0 fact {CAT}", f"0 fact {CATS}", f"1 value {SHE}",
                            f"1 fact {THREE}", f"2 value {SONNET}"]),
        ("split_merge", [f"0 merged {CAT} {OWN}", f"0 merged {CATS} {OWN}",
                         f"1 merged {THREE} {SHE}", f"2 value {SONNET}"]),
        ("replace", [f"0 fact {CAT} {CATS}", f"1 fact {THREE}", f"2 value {SONNET}"]),
        ("split_replace",
         [f"0 fact {CAT}", f"0 fact {CATS}", f"1 fact {THREE}", f"2 value {SONNET}"]),
    ],
)  # fmt: skip
def test_joins(join: str, expected: list[str]) -> None:
    """Of the three values the last has no facts; only the authors' join loses it."""
    made = keys(expanded(in_turn(*FACTS)), join)
    assert [f"{key.page_index} {key.kind} {key.text}" for key in made] == expected


@pytest.mark.parametrize(
    ("extracted", "reply", "join", "expected"),
    [
        ("summary", "A cat.", "replace", ["summary A cat."]),
        ("summary", "A cat. It is three.", "split_replace",
         ["summary A cat.", "summary It is three."]),
        ("keyphrases", "cat; age", "split_separate",
         [f"value {OWN}", "keyphrase cat", "keyphrase age"]),
        ("keyphrases", "cat; age", "separate", [f"value {OWN}", "keyphrase cat; age"]),
    ],
)  # fmt: skip
def test_summaries_and_keyphrases(
    extracted: str, reply: str, join: str, expected: list[str]
) -> None:
    first = [key for key in keys(expanded(always(reply), extracted), join) if key.page_index == 0]
    assert [f"{key.kind} {key.text}" for key in first] == expected


def test_events_have_days_of_their_own_or_their_session_s() -> None:
    for extracted, is_told in (("facts", False), ("events", True)):  # of their session's date
        engine = always("[]")
        expanded(engine, extracted)
        assert ("2023/05/30 (Tue) 21:48" in engine.prompts()[2]) == is_told
    found = expanded(always(EVENTS), "events")
    assert [(row.kind, row.text, row.day) for row in found[:2]] == [
        ("event", "Got a cat.", "2023/04/01"), ("event", "Fed it.", DAYS[0]),
    ]  # fmt: skip
    split = keys(found, "split_separate")
    assert [key.day for key in split[:3]] == [DAYS[0], "2023/04/01", DAYS[0]]
    assert keys(found)[0].day == DAYS[0]


@pytest.mark.parametrize(("extracted", "num"), [("facts", 10), ("events", 10), ("summary", 0)])
def test_ten_examples_whose_replies_can_be_read(extracted: str, num: int) -> None:
    """As many as in the paper's appendix D, before the chat; each is a legal reply."""
    engine = always("[]")
    expanded(engine, extracted, extraction_examples=True)
    plain = always("[]")
    expanded(plain, extracted)
    for with_examples, without in zip(engine.prompts(), plain.prompts(), strict=True):
        assert with_examples.endswith(without)
        lists = re.findall(r"^\[.*\]$", with_examples.removesuffix(without), re.MULTILINE)
        assert len(lists) == num
        for reply in lists:
            fields = engine.requests[0].fields
            assert fields is not None
            read = fields.read(reply, False)
            assert read is not None and len(read) == len(json.loads(reply))


def test_a_reply_that_cannot_be_read_leaves_the_value_and_none_is_a_lack(tmp_path: Path) -> None:
    rules = {"match": "She is three", "hang": True}, {"reply": "[]"}
    found, _ = run(stage(), book(CHATS), scripted(tmp_path, *rules),
                   deadline_seconds=deadline(*rules))  # fmt: skip
    assert [row.why_unusable() for row in found] == [None, "expand of page 1: timeout", None]
    found = expanded(always("no list"))
    assert [(row.text, row.problem, row.why_unusable()) for row in found] == [
        (None, "unparseable", None)
    ] * 3
    for join in ("merge", "merge_as_published"):
        assert [(key.kind, key.text) for key in keys(found, join)] == [
            ("value", text) for text in VALUES
        ]
