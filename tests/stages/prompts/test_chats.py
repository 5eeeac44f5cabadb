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
from tests.support.reading import FAMILIES, family

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


def rendered(prompt: Prompt[Any], name: str = "generic") -> str:
    (message,) = family(name).render(prompt)
    return message["content"]


def said(prompt: Prompt[Any]) -> Any:
    """What is read of the reply without a model."""
    return prompt.read(prompt.extractive(), False)


@pytest.mark.parametrize("name", FAMILIES)
def test_prompts_of_a_chat_begin_with_it(name: str) -> None:
    """So that an engine's prefix cache serves them all."""
    prompts: list[Prompt[Any]] = [prompt(CHAT, SAID_AT) for prompt in EXTRACT]
    prompts += [NoteOnChat(CHAT, SAID_AT, "Who?"), NoteOnChat(CHAT, SAID_AT, "When?", SAID_AT)]
    texts = [rendered(prompt, name) for prompt in prompts]
    start = texts[0][: texts[0].index(CHAT) + len(CHAT)]
    assert SAID_AT in start and len(set(texts)) == len(texts)
    assert all(text.startswith(f"{start}\n\n") for text in texts)


def test_facts_are_what_users_say_of_themselves() -> None:
    assert said(ExtractFacts(CHAT, SAID_AT)) == (ANN, PAID, RIDE)
    header = "\f[2023/05/01 (Mon) 21:48]\n"
    for start in (header, header.strip() + "\n", "\n\n"):
        assert said(ExtractFacts(start + CHAT, SAID_AT)) == (ANN, PAID, RIDE)
    assert said(ExtractFacts("I own two bikes. Is it my turn? Bikes are fun.", "")) == (
        "I own two bikes.",
    )
    assert said(ExtractFacts("assistant: I like my bike.\n\nuser: Do you?", "")) == ()


def test_events_have_the_days_that_are_stated() -> None:
    events = said(ExtractEvents(CHAT, SAID_AT))
    assert events == (("2023/04/03", ANN), ("2023/04/30", PAID), ("", RIDE))
    assert said(ExtractEvents(CHAT, "")) == (("2023/04/03", ANN), ("", RIDE))
    assert said(ExtractEvents("user: May I ask you to march on today?", SAID_AT)) == ()
    assert said(ExtractEvents("user: I moved on yesterday.", "0001/01/01")) == ()


def test_a_summary_and_keyphrases() -> None:
    assert said(ExtractSummary(CHAT, "")).startswith(ANN)
    phrases = said(ExtractKeyphrases(CHAT, ""))
    assert "mountain bike" in phrases and 5 <= len(phrases) <= 8
    assert all(phrase in CHAT for phrase in phrases)


def test_a_note_has_the_sentences_that_match() -> None:
    note = said(NoteOnChat(CHAT, SAID_AT, "How many francs did I pay for the mountain bike?"))
    assert PAID in note and len(note.split()) <= 66
    assert said(NoteOnChat(CHAT, SAID_AT, "Who won the chess game?")) == ""


@pytest.mark.parametrize(
    ("question", "limits"),
    [
        ("What did I buy?", NO_RANGE),
        ("What did I buy in May?", NO_RANGE),
        ("What did I buy on May 3rd, 2023?", ("2023/05/03", "2023/05/03")),
        ("What between 2023/05/09 and 2023/05/03?", ("2023/05/03", "2023/05/09")),
        ("What before 2023-05-03?", ("", "2023/05/03")),
        ("What have I bought since 3 May 2023?", ("2023/05/03", "")),
        ("What before 2023/05/09 but after 2023/05/03?", ("2023/05/03", "2023/05/09")),
    ],
)
def test_the_days_that_a_question_states(question: str, limits: tuple[str, str]) -> None:
    assert said(TimeRange(question, SAID_AT)) == limits


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


FACTS, CHOICE = (
    ExtractFacts("user: Hello.", ""),
    AnswerWithNotes((), "When?", ("here", "there"), None),
)


def test_facts_of_a_cut_reply() -> None:
    """A bracket within the incomplete item does not end the list."""
    for reply in ('["a", "see [1] an', '["a", ["b"', '["a", {"b": ["c"]', '["a", "b" or "c"]'):
        assert FACTS.read(reply, True) == ("a",)
    assert FACTS.read('["a", "see [1] an', False) is None
    assert FACTS.read("Here: [", True) is None
    assert FACTS.read('["a", "b"] That is a', True) == ("a", "b")


def test_the_last_keyphrase_of_a_cut_reply() -> None:
    phrases = ExtractKeyphrases("user: Hello.", "")
    assert phrases.read("mountain bike; flat ty", True) == ("mountain bike",)
    assert phrases.read("mountain bi", True) == ("mountain bi",)


def test_an_option_after_notes() -> None:
    assert CHOICE.read("Notes: (A) is out.\nAnswer: (B)", False) == 1
    assert CHOICE.read("**Answer:** A, as said", False) == 0
    assert CHOICE.read("Answer: (K)", False) == "out_of_range"
    assert CHOICE.read("(B)", False) is None
    assert CHOICE.read("Answer: there", False) is None
