"""Replies in words and notations that models use, and those of real models (tests/data/SOURCES.md,
labelled before a parser sees them), each with what a person reads in it; seeded and very long ones;
and what the extractive engine replies to prompts about chats and those whose replies are queries.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pipeline.core.engine import Reply, without_thinking
from pipeline.core.prompts import PROMPTS, Prompt, Refusals
from pipeline.core.reply_forms import MOST_CHARS, plain_text, read_reply, split_reply
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
from stages.prompts.memorag import ChunkGist, ClueSpans, Hypothetical, KeyPoints, SubQuestions
from stages.prompts.memwalker import ReadLeaf
from stages.prompts.readagent_look_up import ParallelLookUp, SequentialLookUp
from stages.prompts.readagent_memory import BreakPoint, Labeled
from tests.support.command import DATA
from tests.support.engines.hostile_replies import replies
from tests.support.reading import family


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def prompt_of(name: str, fills: Mapping[str, Any]) -> Prompt[Any]:
    """`fills`: what was on offer, labels, the number of options, or pages."""
    kind, _, about = name.partition(" ")
    prompt = PROMPTS[kind].samples()[0]
    if about == "(free)":
        assert isinstance(prompt, AnswerQuestion | ReadLeaf)
        return replace(prompt, options=())
    if isinstance(prompt, AnswerQuestion | AnswerWithNotes) and "options" in fills:
        return replace(prompt, options=tuple(f"one of {n}" for n in range(fills["options"])))
    if isinstance(prompt, BreakPoint) and "labels" in fills:
        return replace(prompt, paragraphs=tuple(Labeled("A.", n) for n in fills["labels"]))
    if isinstance(prompt, ParallelLookUp) and "pages" in fills:
        gists = (Passage("gist", number, "A.") for number in range(fills["pages"]))
        return replace(prompt, passages=tuple(gists), max_pages=fills["max_pages"])
    return prompt


@pytest.mark.parametrize(
    "row",
    [*rows("replies_forms.jsonl"), *rows("replies_real.jsonl")],
    ids=lambda row: f"{row['prompt']}: {row.get('form', 'of a run')}",
)
def test_what_a_person_reads(row: dict[str, Any]) -> None:
    fills, is_cut = row.get("fills", {}), row.get("cut", False)
    prompt = prompt_of(row["prompt"], fills)
    reply = Reply(text=row["reply"], finish_reason="length" if is_cut else "stop")
    value = family().read(prompt, without_thinking(reply).text, is_cut)
    assert json.loads(json.dumps(value)) == row["person_reads"], row["reply"]  # tuples as lists
    if labels := fills.get("labels"):
        assert value is None or prompt.is_legal(value) == (value in labels)


def test_other_words_refuse_in_other_families() -> None:
    look_up, english = ParallelLookUp.samples()[0], family().refusals["look_up_p"]
    words = Refusals(negations=("keine",), needed=("seite",), enough=("genug",), alone=("nichts",))
    for reply in ("Ich brauche keine weitere Seite.", "Das ist genug.", "Nichts."):
        assert look_up.refusal(plain_text(reply), words) == ()
        assert look_up.refusal(plain_text(reply), english) is None
    assert look_up.refusal("No page is needed.", words) is None


def is_storable(value: Any) -> bool:
    """True for what rows take: text, a number of at most nine digits, tuples of these."""
    if isinstance(value, tuple):
        return all(map(is_storable, value))
    return isinstance(value, str) or (type(value) is int and abs(value) < 10**9)


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROMPTS)
def test_a_few_hundred_replies_to_every_prompt(name: str) -> None:
    samples = PROMPTS[name].samples()
    for place, sample in enumerate(samples):
        form = family().form(type(sample))
        for reply in replies(sample, 300 // len(samples) + 1):
            value = read_reply(sample, form, reply, is_cut=place % 2 == 1)
            assert value is None or is_storable(value), (reply[:300], value)


# What took minutes at this length: values that each look back over the whole reply, and runs that
# two parts of a regex can share in as many ways as the run is long.
SLOW = (
    ("look_up_p", "", "Page 1/"), ("look_up_p", "Page", "\n"), ("look_up_s", "", "Page 1/"),
    ("look_up_s", "x\n", "\n"), ("look_up_s", "Page", "\u2028 "), ("triage", "x\n", "\n"),
    ("triage", "Action: ", "\r"), ("triage", "", "Action: 1 "), ("read_leaf", "x\n", "\n \n"),
    ("read_leaf", "Action: ", "\x1f"), ("starts_chapter", "yes", "…"),
    ("starts_chapter", "no", "\r"), ("answer", "", "Answer: (A) "),
    ("break_point", "Break point: <", " "), ("break_point", "", "label "),
    ("extract_facts", "", "["), ("extract_facts", "", '["a",'),
    ("extract_events", "", '[{"event":'), ("time_range", "{", '"start": "2023/05/01", '),
    ("time_range", '{"start": ', "9"),
    ("answer_chats_con", "", "Answer:\n"), ("extract_keyphrases", "", ";"), ("note", "a", " "),
    ("clue_spans", "clue", " "), ("clue_spans", "", "1. "), ("clue_spans", "", "'"),
)  # fmt: skip
MARKS = (
    *("<think>", "</think>", "<reasoning>", "</analysis>", "<answer>", "</answer>", "<|im_end|>"),
    *("```\n", "<|channel|>", "analysisX", "assistantfinal", "[THINK]"),
)
GENEROUS_SECONDS = 60.0  # for what takes under 2 on a quiet machine


def read(prompt: Prompt[Any], reply: str) -> Any:
    return read_reply(prompt, family().form(type(prompt)), reply, is_cut=False)


@pytest.mark.sampled
def test_what_a_long_reply_says_of_a_page_is_read_near_it_up_to_a_bound() -> None:
    page_2, far = "I want to look up Page [2]", "and so on " * 100
    for prompt, reply, value in (
        (ParallelLookUp, page_2.ljust(MOST_CHARS), (2,)),
        (ParallelLookUp, page_2.ljust(MOST_CHARS + 1), None),
        (SequentialLookUp, f"I do not need {far} Page 3", 3),
        (SequentialLookUp, "I do not need Page 3", None),
    ):
        assert read(prompt.samples()[0], reply) == value, reply[:99]
    one = SequentialLookUp.samples()[0]
    assert one.read("I want to look up Page 3.\nSTOP", False) is None


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "beginning", "part"), SLOW)
def test_parsing_takes_time_by_the_length(name: str, beginning: str, part: str) -> None:
    started = time.monotonic()
    read(PROMPTS[name].samples()[0], (beginning + part * MOST_CHARS)[: MOST_CHARS - 1] + "x")
    assert time.monotonic() - started < GENEROUS_SECONDS


@pytest.mark.sampled
@pytest.mark.parametrize("mark", MARKS)
def test_taking_thinking_and_marks_off_takes_time_by_the_length(mark: str) -> None:
    """Thinking may be many times as long as what is parsed."""
    started = time.monotonic()
    for beginning in ("", *MARKS):
        split_reply(beginning + mark * (150_000 // len(mark)) + "x")
    assert time.monotonic() - started < GENEROUS_SECONDS


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
    return prompt.read(prompt.extractive(), False)


def test_values_of_the_extractive_replies() -> None:
    values: list[tuple[Prompt[Any], Any]] = [
        # Facts are what users say of themselves; events have the days that are stated.
        *((ExtractFacts(start + CHAT, SAID_AT), (ANN, PAID, RIDE))
          for start in ("", "\f[2023/05/01 (Mon) 21:48]\n", "\f[2023/05/01 (Mon) 21:48]", "\n\n")),
        (ExtractFacts("I own two bikes. Is it my turn? Bikes are fun.", ""), ("I own two bikes.",)),
        (ExtractFacts("assistant: I like my bike.\n\nuser: Do you?", ""), ()),
        (ExtractEvents(CHAT, SAID_AT), (("2023/04/03", ANN), ("2023/04/30", PAID), ("", RIDE))),
        (ExtractEvents(CHAT, ""), (("2023/04/03", ANN), ("", RIDE))),
        (ExtractEvents("user: May I ask you to march on today?", SAID_AT), ()),
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
    ]  # fmt: skip
    assert [(prompt, said(prompt)) for prompt, _ in values] == values


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


def test_key_points_come_from_all_parts_and_a_long_gist_is_a_tenth_of_its_chunk() -> None:
    everyone = ["Ann", "Bob", "Cid", "Dan", "Eve", "Fay", "Gus", "Hal"]
    told = [f"{name} said many things about the bell and the rope on that day. "
            for name in everyone]  # fmt: skip
    points = said(KeyPoints(shown("".join(told[:5]), "".join(told[5:])), "", ()))
    assert [line.split()[0] for line in points] == everyone
    chunk = "".join(f"In year {n} the sexton rang the bell of tower {n}. " for n in range(300))
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
