"""Prompts about chats and those whose replies are searched for: what the extractive engine replies,
and how replies of items, days, notes and answers are read."""

from typing import Any

import pytest

from pipeline.core.prompts import Prompt
from pipeline.engines.extractive import num_tokens
from stages.prompts.answer import AnswerQuestion, Passage
from stages.prompts.longmemeval import (
    NO_RANGE,
    AnswerFromChats,
    AnswerWithNotes,
    ExtractEvents,
    ExtractFacts,
    ExtractKeyphrases,
    ExtractSummary,
    NoteOnChat,
    TimeRange,
)
from stages.prompts.memorag import (
    ChunkGist,
    ClueSpans,
    DraftAnswer,
    Hypothetical,
    KeyPoints,
    SubQuestions,
)

SAID_AT = "2023/05/01 (Mon) 21:48"
CHAT = (
    "user: Hi there! My sister Ann gave me a mountain bike on April 3rd, 2023. "
    "Do you know a good repair shop?\n\n"
    "assistant: Congratulations! I like mountain bikes. On 2022/01/01 a shop opened in Bern.\n\n"
    "user: Thanks. Yesterday I paid 40 francs for the mountain bike. Bern is far from here. "
    "In June we will ride it to Basel."
)
ANN = "My sister Ann gave me a mountain bike on April 3rd, 2023."
PAID = "Yesterday I paid 40 francs for the mountain bike."
RIDE = "In June we will ride it to Basel."
FRANCS = "How many francs did I pay for the mountain bike?"
STORY = (
    "The village wakes up slowly on a cold and rainy morning in May. "
    "The sexton rang the bell twelve times although nobody had asked him to do so. "
    "The baker sold his bread to travellers who came over the old stone bridge. "
    "Nobody admits afterwards to the mayor that they heard anything at all that night."
)


def shown(*texts: str) -> tuple[Passage, ...]:
    return tuple(Passage("text", None, text) for text in texts)


def said(prompt: Prompt[Any]) -> Any:
    """The value of the extractive engine's reply."""
    return prompt.read(prompt.extractive(), False)


@pytest.mark.parametrize(
    ("prompt", "value"),
    [
        # Facts are what users say of themselves; events have the days that are stated.
        *((ExtractFacts(start + CHAT, SAID_AT), (ANN, PAID, RIDE))
          for start in ("", "\f[2023/05/01 (Mon) 21:48]\n", "\f[2023/05/01 (Mon) 21:48]", "\n\n")),
        (ExtractFacts("I own two bikes. Is it my turn? Bikes are fun.", ""), ("I own two bikes.",)),
        (ExtractFacts("assistant: I like my bike.\n\nuser: Do you?", ""), ()),
        (ExtractEvents(CHAT, SAID_AT), (("2023/04/03", ANN), ("2023/04/30", PAID), ("", RIDE))),
        (ExtractEvents(CHAT, ""), (("2023/04/03", ANN), ("", RIDE))),
        (ExtractEvents("user: May I ask you to march on today?", SAID_AT), ()),
        (ExtractEvents("user: I moved on yesterday.", "0001/01/01"), ()),
        (NoteOnChat(CHAT, SAID_AT, "Who won the chess game?"), ""),
        (TimeRange("What did I buy?", SAID_AT), NO_RANGE),
        (TimeRange("What did I buy in May?", SAID_AT), NO_RANGE),
        (TimeRange("What on May 3rd, 2023?", SAID_AT), ("2023/05/03", "2023/05/03")),
        (TimeRange("What between 2023/05/09 and 2023/05/03?", ""), ("2023/05/03", "2023/05/09")),
        (TimeRange("What before 2023-05-03?", SAID_AT), ("", "2023/05/03")),
        (TimeRange("What have I bought since 3 May 2023?", SAID_AT), ("2023/05/03", "")),
        (TimeRange("Before 2023/05/09 but after 2023/05/03?", ""), ("2023/05/03", "2023/05/09")),
        *((SubQuestions(question, ()), parts) for question, parts in (
            ("Who rang the bell?", ("Who rang the bell?",)),
            ("Who rang the bell and who heard it?", ("Who rang the bell", "who heard it")),
            ("When? Where; by whom, and why?", ("When", "Where", "by whom", "and why?")),
            ("a, b, c, d, e and f", ("a", "b", "c", "d, e and f")),
            ("Did 1,000 people\nhear it?", ("Did 1,000 people hear it?",)),
            ("谁敲了钟？谁听到了？", ("谁敲了钟", "谁听到了")), ("", ()))),
        (Hypothetical("Who rang the bell?", ()), "rang the bell."),
        (Hypothetical("Did he ring it?", ("yes", "no")), "Did he ring it: yes or no."),
        (Hypothetical("Whoever rang it?", ()), "Whoever rang it."),
        (ChunkGist("A short one. It has two sentences."), "A short one. It has two sentences."),
    ],
)  # fmt: skip
def test_values_of_the_extractive_replies(prompt: Prompt[Any], value: Any) -> None:
    assert said(prompt) == value


def test_the_sentences_that_match_best() -> None:
    spans = said(ClueSpans(shown(STORY), "Who rang the bell?", ()))
    assert len(spans) == 3 and spans[0].startswith("The sexton rang the bell twelve times although")
    assert all(line in STORY for line in spans)
    bread = said(ClueSpans(shown(STORY), "What was sold?", ("fish", "bread")))
    assert bread[0].startswith("The baker sold his bread")
    assert said(ExtractSummary(CHAT, "")).startswith(ANN)
    phrases = said(ExtractKeyphrases(CHAT, ""))
    assert "mountain bike" in phrases and 5 <= len(phrases) <= 8
    assert all(phrase in CHAT for phrase in phrases)
    note = said(NoteOnChat(CHAT, SAID_AT, FRANCS))
    assert PAID in note and len(note.split()) <= 66


def test_key_points_come_from_all_parts() -> None:
    everyone = ["Ann", "Bob", "Cid", "Dan", "Eve", "Fay", "Gus", "Hal"]
    told = [f"{name} said many things about the bell and the rope on that day. "
            for name in everyone]  # fmt: skip
    points = said(KeyPoints(shown("".join(told[:5]), "".join(told[5:])), "", ()))
    assert [line.split()[0] for line in points] == everyone


def test_a_long_chunk_s_gist_is_a_tenth_of_it_and_fits_its_budget() -> None:
    sentence = "In year {0} the sexton {0} rang the bell of tower {0} for the whole village. "
    chunk = "".join(sentence.format(number) for number in range(200))
    gist = said(ChunkGist(chunk))
    assert 0.08 * len(chunk.split()) <= len(gist.split()) <= 0.12 * len(chunk.split())
    assert num_tokens(gist) <= ChunkGist.max_reply_tokens


def test_an_answer_without_and_with_notes() -> None:
    chats = shown(CHAT, "[2023/06/01]\nuser: Bye.")
    plain = AnswerFromChats(chats, FRANCS, (), 12)
    assert "40 francs" in said(plain)
    assert said(plain) == AnswerQuestion(chats, FRANCS, (), 12).extractive()
    con = AnswerWithNotes(chats, FRANCS, (), 12)
    notes, answer = con.extractive().split("\nAnswer: ")
    assert said(con) == answer == said(plain)
    assert notes.startswith("Notes:\n- ") and notes.count("\n- ") == 1 and "40 francs" in notes
    for prompt in (AnswerFromChats, AnswerWithNotes):
        assert said(prompt(chats, FRANCS, ("12 francs", "40 francs"), None)) == 1


@pytest.mark.parametrize("chat", ["", " \n", "…", "\f[2023/05/01 (Mon) 21:48]\n"])
def test_chats_in_which_nothing_is_said(chat: str) -> None:
    for prompt in (ExtractSummary, ExtractKeyphrases, ExtractFacts, ExtractEvents):
        extract = prompt(chat, "")
        for reply in (extract.extractive(), extract.expected()):
            assert extract.read(reply, False) is not None
    assert said(ExtractFacts(chat, "")) == said(ExtractEvents(chat, "")) == ()
    assert said(NoteOnChat(chat, "", "Who?")) == ""


FACTS = ExtractFacts("user: Hello.", "")
PHRASES = ExtractKeyphrases("user: Hello.", "")
CHOICE = AnswerWithNotes((), "When?", ("here", "there"), None)


@pytest.mark.parametrize(
    ("prompt", "reply", "is_cut", "value"),
    [
        # A bracket within the incomplete item does not end the list.
        *((FACTS, reply, True, ("a",)) for reply in (
            '["a", "see [1] an', '["a", ["b"', '["a", {"b": ["c"]', '["a", "b" or "c"]')),
        (FACTS, '["a", "see [1] an', False, None), (FACTS, "Here: [", True, None),
        (FACTS, '["a", "b"] That is a', True, ("a", "b")),
        (PHRASES, "mountain bike; flat ty", True, ("mountain bike",)),
        (PHRASES, "mountain bi", True, ("mountain bi",)),
        (CHOICE, "Notes: (A) is out.\nAnswer: (B)", False, 1),
        (CHOICE, "**Answer:** A, as said", False, 0),
        (CHOICE, "Answer: (K)", False, "out_of_range"),
        (CHOICE, "(B)", False, None), (CHOICE, "Answer: there", False, None),
        # A cut text can still be searched for.
        (ClueSpans(shown(STORY), "", ()), "1. The bell\n2. The rop", True, ("The bell",)),
        *((prompt, " The sexton ra", True, "The sexton ra")
          for prompt in (DraftAnswer(shown(STORY), "Who?", ()), Hypothetical("Who?", ()))),
    ],
)  # fmt: skip
def test_cut_replies_lists_and_options_after_notes(
    prompt: Prompt[Any], reply: str, is_cut: bool, value: Any
) -> None:
    assert prompt.read(reply, is_cut) == value


def test_the_last_answer_counts_wherever_the_reply_ends() -> None:
    con = AnswerWithNotes((), "When?", (), 5)
    reply = f"{con.expected()} " * 3
    first = reply.index("Answer: ") + len("Answer: ")
    assert all(con.read(reply[:end], True) for end in range(first + 1, len(reply)))
