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


def test_budgets_as_published() -> None:
    """Appendix D and the authors' scripts, but of the time range."""
    prompts: tuple[type[Prompt[Any]], ...] = (
        *EXTRACT,
        NoteOnChat,
        AnswerFromChats,
        AnswerWithNotes,
    )
    assert [prompt.max_reply_tokens for prompt in prompts] == [500, 100, 2000, 2000, 500, 500, 800]
    assert [prompt.is_whole for prompt in prompts] == [False] * 4 + [True] * 3


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


FACTS, EVENTS = ExtractFacts("user: Hello.", ""), ExtractEvents("user: Hello.", "")
PHRASES, RANGE = ExtractKeyphrases("user: Hello.", ""), TimeRange("When?")
NOTE = NoteOnChat("user: Hello.", "", "When?")
FREE = AnswerWithNotes((), "When?", (), None)
CHOICE = AnswerWithNotes((), "When?", ("here", "there"), None)


@pytest.mark.parametrize(
    ("reply", "facts"),
    [
        ('["a b", "c"]', ("a b", "c")),
        ('```json\n[\n  "a b",\n  "c"\n]\n```', ("a b", "c")),
        ('~~~\n["a"]\n~~~', ("a",)),
        ('{"facts": ["a", "b"]}', ("a", "b")),
        ('Sure [1], here they are:\n["a"]\nThat is all [2].', ("a",)),
        ('["a", "b",]', ("a", "b")),
        ('["it is [not] {so}", "a\\"b\\""]', ("it is [not] {so}", 'a"b"')),
        ('["over\ntwo  lines"]', ("over two lines",)),
        ('["Z\\u00fcrich", "\\ud83d\\ude00", "\\ud83d"]', ("Zürich", "😀", "\ufffd")),
        # no facts
        ("[]", ()), ("```json\n[ ]\n```", ()), ("There are none:\n\n[\n]", ()),
        # what is no string is left out
        ('["a", null, 7, true, 1.5, "", " \\n", ["b"], {"fact": "c"}]', ("a",)),
        ('[["a"], ["b"]]', None), ('[{"fact": "a"}]', None), ('[""]', None),
        # unreadable
        ("", None), ("none", None), ("- a\n- b", None), ("['a', 'b']", None), ("[1, 2]", None),
        ('["a" "b"]', None), ('["He said "hi" to me.", "b"]', None), ('["a", b, "c"]', None),
        ('["a"]\n["b"]', None), ('["a"]\nor none: []', None), ('"a", "b"', None), ("[a, b]", None),
        # cut, though no one says so
        ('["a", "b', ("a",)), ('["a", "b"', ("a", "b")), ('["a",', ("a",)), ('["a', None),
        ('["a", "b\\', ("a",)), ('["a", "b\\u00f', ("a",)), ("[", None),
    ],
)  # fmt: skip
def test_facts(reply: str, facts: tuple[str, ...] | None) -> None:
    assert FACTS.read(reply, False) == facts


def test_facts_of_a_cut_reply() -> None:
    """A bracket within the incomplete item does not end the list."""
    for reply in ('["a", "see [1] an', '["a", ["b"', '["a", {"b": ["c"]', '["a", "b" or "c"]'):
        assert FACTS.read(reply, True) == ("a",)
    assert FACTS.read('["a", "see [1] an', False) is None
    assert FACTS.read("Here: [", True) is None
    assert FACTS.read('["a", "b"] That is a', True) == ("a", "b")


@pytest.mark.parametrize(
    ("reply", "events"),
    [
        ('[{"date": "2023/05/30", "event": "a b"}]', (("2023/05/30", "a b"),)),
        ('```json\n[{"event": "a", "date": "2023-05-30"}]\n```', (("2023/05/30", "a"),)),
        ('[{"date": "2023/5/3", "event": "a"}, {"date": "May 30, 2023", "event": "b"}]',
         (("2023/05/03", "a"), ("2023/05/30", "b"))),
        ('[{"date": "13/05/2023", "event": "a"}]', (("2023/05/13", "a"),)),
        # no single day
        ('[{"date": "03/05/2023", "event": "a"}]', (("", "a"),)),
        ('[{"date": "2023/05", "event": "a"}, {"date": "last Sunday", "event": "b"}]',
         (("", "a"), ("", "b"))),
        ('[{"date": null, "event": "a"}, {"event": "b"}, {"date": 20230530, "event": "c"}]',
         (("", "a"), ("", "b"), ("", "c"))),
        # no events
        ("[]", ()),
        ('[{"date": "2023/05/30", "event": "a"}, {"date": "2023/05/31"}, "b", null, [], {},'
         ' {"date": "2023/05/31", "event": ""}, {"date": "2023/05/31", "event": ["c"]}]',
         (("2023/05/30", "a"),)),
        ('[{"day": "2023/05/30", "what": "a"}]', None), ('["2023/05/30: a"]', None),
        ('[[{"date": "2023/05/30", "event": "a"}]]', None),
        ('{"date": "2023/05/30", "event": "a"}', None), ("2023/05/30: a", None), ("", None),
        # cut
        ('[{"date": "2023/05/30", "event": "a"}, {"date": "2023/05/3', (("2023/05/30", "a"),)),
        ('[{"date": "2023/05/30", "event": "a"}', (("2023/05/30", "a"),)),
        ('[{"date": "2023/05/30", "event": "a"', None),
    ],
)  # fmt: skip
def test_events(reply: str, events: tuple[tuple[str, str], ...] | None) -> None:
    assert EVENTS.read(reply, False) == events


@pytest.mark.parametrize(
    ("reply", "limits"),
    [
        ('{"start": "2023/05/01", "end": "2023/05/31"}', ("2023/05/01", "2023/05/31")),
        ('```json\n{"start": "2023-5-1", "end": "May 31, 2023"}\n```',
         ("2023/05/01", "2023/05/31")),
        ('[{"start": "2023/05/01", "end": "2023/05/02"}]', ("2023/05/01", "2023/05/02")),
        ('{"end": "2023/05/31"}', ("", "2023/05/31")),
        ('{"start": "2023/05/01"}', ("2023/05/01", "")),
        ('{"start": null, "end": "2023/05/31"}', ("", "2023/05/31")),
        ('{"start": "2023/05/01", "end": "N/A"}', ("2023/05/01", "")),
        ('{"start": "", "end": null}', NO_RANGE),
        ("N/A", NO_RANGE), ("**n/a**", NO_RANGE), ('"N/A"', NO_RANGE),
        ("The question names no time, so: N/A.", NO_RANGE),
        # unreadable
        ('{"start": "2023/05/31", "end": "2023/05/01"}', None),
        ('{"start": "2023/05", "end": "2023/05/31"}', None),
        ('{"start": "03/05/2023", "end": "2023/05/31"}', None),
        ('{"start": "last week", "end": "2023/05/31"}', None),
        ('N/A, or maybe {"start": "2023/05/01", "end": "2023/05/31"}', None),
        ('{"start": "2023/05/01"} or {"start": "2023/05/02"}', None),
        ("{}", None), ('{"from": "2023/05/01"}', None), ("2023/05/01 to 2023/05/31", None),
        ('{"start": "2023/05/01", "end": "2023/0', None), ("", None), ("none of them", None),
        ('{"start": "N/A", "end": "2023/05/3', None), ("A/B", None), ("a N/Angle", None),
    ],
)  # fmt: skip
def test_time_ranges(reply: str, limits: tuple[str, str] | None) -> None:
    assert RANGE.read(reply, False) == limits


@pytest.mark.parametrize(
    ("reply", "phrases"),
    [
        ("mountain bike; flat tyre;repair", ("mountain bike", "flat tyre", "repair")),
        ("**Keyphrases:** bike ; tyre ;", ("bike", "tyre")),
        ("Here are the key phrases of the session:\n\nbike; tyre", ("bike", "tyre")),
        ("- bike\n- tyre\n", ("bike", "tyre")),
        ("1. bike; 2. tyre", ("bike", "tyre")),
        ("```\nbike; tyre\n```", ("bike", "tyre")),
        ('["bike", "tyre"]', ("bike", "tyre")),
        ("自行车；轮胎", ("自行车", "轮胎")),
        ("bike, tyre", ("bike, tyre",)),  # as written: no semicolon says where one ends
        ("NONE", ()), ("Keyphrases: none", ()),
        ("", None), (";;", None), ("Keyphrases:", None),
    ],
)  # fmt: skip
def test_keyphrases(reply: str, phrases: tuple[str, ...] | None) -> None:
    assert PHRASES.read(reply, False) == phrases


def test_the_last_keyphrase_of_a_cut_reply() -> None:
    assert PHRASES.read("mountain bike; flat ty", True) == ("mountain bike",)
    assert PHRASES.read("mountain bi", True) == ("mountain bi",)


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        (" On May 3 the user paid. ", "On May 3 the user paid."),
        ("empty", ""), ("Empty.", ""), ("**empty**", ""), ("Note: empty", ""), ('"empty"', ""),
        ("None.", ""), ("N/A", ""),
        ("The fridge was empty.", "The fridge was empty."),
        ("empty fridge", "empty fridge"), ("Nothing in it says so.", "Nothing in it says so."),
        ("", None), (" \n", None),
    ],
)  # fmt: skip
def test_notes(reply: str, note: str | None) -> None:
    assert NOTE.read(reply, False) == NOTE.read(reply, True) == note


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Notes: 40 and 12 francs.\nAnswer: 52 francs", "52 francs"),
        ("Notes: 40.\n\n### Answer\n52 francs", "52 francs"),
        ("- a note\n**Final answer**\n\n52 francs", "52 francs"),
        ("### Final answer:\n52 francs,\nall told.\n", "52 francs,\nall told."),
        ("So the answer: **52** francs", "**52** francs"),
        ("Answer: 40\nWait, there is more.\nAnswer: 52", "52"),
        ("Answer: 52\nAnswer:", "52"),
        ("Notes: their answer: 40.\nANSWER： 52", "52"),
        # what is the answer would be a guess
        ("It was 52 francs.", None), ("Notes: the answer: 52", None), ("Answer:", None),
        ("Answer: **", None), ("The answer is 52.", None), ("", None),
    ],
)  # fmt: skip
def test_answers_after_notes(reply: str, answer: str | None) -> None:
    assert FREE.read(reply, False) == FREE.read(reply, True) == answer


def test_an_option_after_notes() -> None:
    assert CHOICE.read("Notes: (A) is out.\nAnswer: (B)", False) == 1
    assert CHOICE.read("**Answer:** A, as said", False) == 0
    assert CHOICE.read("Answer: (K)", False) == "out_of_range"
    assert CHOICE.read("(B)", False) is None
    assert CHOICE.read("Answer: there", False) is None
