"""Prompts about chats: what they show, their replies without a model, and how replies are read."""

from typing import Any

import pytest

from pipeline.core.prompts import Prompt
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

SAID_AT = "2023/05/01 (Mon) 21:48"
CHAT = (
    "user: Hi there! My sister Ann gave me a mountain bike on April 3rd, 2023. "
    "Do you know a good repair shop?\n\n"
    "assistant: Congratulations! I like mountain bikes. On 2022/01/01 a shop opened in Bern.\n\n"
    "user: Thanks. Yesterday I paid 40 francs for the mountain bike. Bern is far from here. "
    "In June we will ride it to Basel."
)
EXTRACT = (ExtractSummary, ExtractKeyphrases, ExtractFacts, ExtractEvents)
ANN = "My sister Ann gave me a mountain bike on April 3rd, 2023."
PAID = "Yesterday I paid 40 francs for the mountain bike."
RIDE = "In June we will ride it to Basel."


def said(prompt: Prompt[Any]) -> Any:
    """What is read of the reply without a model."""
    return prompt.read(prompt.extractive(), False)


@pytest.mark.parametrize(
    ("prompt", "value"),
    [
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
    ],
)  # fmt: skip
def test_what_is_taken_from_chats_and_questions(prompt: Prompt[Any], value: Any) -> None:
    """Facts are what users say of themselves; events have the days that are stated."""
    assert said(prompt) == value


def test_a_summary_keyphrases_and_a_note() -> None:
    assert said(ExtractSummary(CHAT, "")).startswith(ANN)
    phrases = said(ExtractKeyphrases(CHAT, ""))
    assert "mountain bike" in phrases and 5 <= len(phrases) <= 8
    assert all(phrase in CHAT for phrase in phrases)
    note = said(NoteOnChat(CHAT, SAID_AT, "How many francs did I pay for the mountain bike?"))
    assert PAID in note and len(note.split()) <= 66


def test_an_answer_without_and_with_notes() -> None:
    chats = (Passage("text", None, CHAT), Passage("text", None, "[2023/06/01]\nuser: Bye."))
    question = "How many francs did I pay for the mountain bike?"
    plain = AnswerFromChats(chats, question, (), 12)
    assert "40 francs" in said(plain)
    assert said(plain) == AnswerQuestion(chats, question, (), 12).extractive()
    con = AnswerWithNotes(chats, question, (), 12)
    notes, answer = con.extractive().split("\nAnswer: ")
    assert said(con) == answer == said(plain)
    assert notes.startswith("Notes:\n- ") and notes.count("\n- ") == 1 and "40 francs" in notes
    options = ("12 francs", "40 francs")
    assert said(AnswerFromChats(chats, question, options, None)) == 1
    assert said(AnswerWithNotes(chats, question, options, None)) == 1


def test_the_last_answer_counts_wherever_the_reply_ends() -> None:
    con = AnswerWithNotes((), "When?", (), 5)
    reply = f"{con.expected()} " * 3
    first = reply.index("Answer: ") + len("Answer: ")
    assert all(con.read(reply[:end], True) for end in range(first + 1, len(reply)))


@pytest.mark.parametrize("chat", ["", " \n", "…", "\f[2023/05/01 (Mon) 21:48]\n"])
def test_chats_in_which_nothing_is_said(chat: str) -> None:
    for prompt in EXTRACT:
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
    ],
)  # fmt: skip
def test_lists_of_cut_replies_and_options_after_notes(
    prompt: Prompt[Any], reply: str, is_cut: bool, value: Any
) -> None:
    assert prompt.read(reply, is_cut) == value
