"""Replies of prompts about chats: what is read of them is known before they are decorated."""

import json
import re
from datetime import date, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages.prompts.chat_keys import ExtractEvents, ExtractFacts, ExtractKeyphrases, ExtractSummary
from stages.prompts.chat_reading import NO_RANGE, AnswerWithNotes, NoteOnChat, TimeRange

pytestmark = pytest.mark.sampled

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


_WORDS = [
    "The",
    "user",
    "owns",
    "3.5",
    "O'Brien",
    '"no"',
    "[sic]",
    "{x}",
    "café",
    "钟",
    "a\\b",
    "]",
]
_BEFORE = ["", "Sure! ", "Here is what I found [1]:\n\n", "(see [2] and [x])\n", "# JSON\n"]
_AFTER = ["", "\nThat is all [3].", "\n\nI left out what is {unclear}.", "\n- end"]
_FENCES = [("", ""), ("```json\n", "\n```"), ("```\n", "\n```"), ("~~~json\n", "\n~~~")]
_WAYS = ["%Y/%m/%d", "%Y-%m-%d", "%B %d, %Y", "%Y/%m/%d (%a)", "%Y/%m/%d (%a) %H:%M", "%d %b %Y"]


def _text(draw: Random) -> str:
    return " ".join(draw.choices(_WORDS, k=draw.randrange(1, 9)))


def _dumped(draw: Random, value: Any) -> str:
    return json.dumps(
        value, ensure_ascii=draw.random() < 0.5, indent=draw.choice([None, None, 0, 2])
    )


def _decorated(draw: Random, text: str) -> str:
    opening, closing = draw.choice(_FENCES)
    return f"{draw.choice(_BEFORE)}{opening}{text}{closing}{draw.choice(_AFTER)}"


def _dated(draw: Random) -> tuple[dict[str, Any], tuple[str, str]]:
    """An event and what is to be read of it."""
    day = date(1990, 1, 1) + timedelta(draw.randrange(20_000))
    text, way = _text(draw), draw.choice([*_WAYS, "%B %Y", "around %Y", "some day"])
    known = day.strftime("%Y/%m/%d") if way in _WAYS else ""
    return {"date": day.strftime(way), "event": text}, (known, text)


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=True))
def test_lists_are_read_however_they_are_written(draw: Random) -> None:
    for _ in range(10):
        facts = [_text(draw) for _ in range(draw.randrange(6))]
        reply = _decorated(draw, _dumped(draw, facts))
        assert FACTS.read(reply, False) == FACTS.read(reply, True) == tuple(facts), reply
        dated = [_dated(draw) for _ in range(draw.randrange(5))]
        reply = _decorated(draw, _dumped(draw, [item for item, _ in dated]))
        assert EVENTS.read(reply, False) == tuple(event for _, event in dated), reply


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=True))
def test_a_cut_list_keeps_its_whole_items(draw: Random) -> None:
    for _ in range(5):
        facts = [_text(draw) for _ in range(draw.randrange(1, 6))]
        reply, ends = draw.choice(_BEFORE) + draw.choice(["```json\n[", "[", "[\n "]), []
        for fact in facts:
            reply += json.dumps(fact, ensure_ascii=draw.random() < 0.5)
            ends.append(len(reply))
            reply += draw.choice([",", ", ", ",\n  "]) if len(ends) < len(facts) else "]"
        cut = draw.randrange(len(reply) + 1)
        whole = tuple(fact for fact, end in zip(facts, ends, strict=True) if end <= cut)
        assert FACTS.read(reply[:cut], True) == (whole or None), reply[:cut]


@settings(max_examples=200, deadline=None)
@given(st.randoms(use_true_random=True))
def test_ranges_are_read_however_they_are_written(draw: Random) -> None:
    for _ in range(5):
        days = sorted(date(1990, 1, 1) + timedelta(draw.randrange(20_000)) for _ in range(2))
        said = [draw.choice([day, day, None]) for day in days]
        value = {key: day and day.strftime(draw.choice(_WAYS))
                 for key, day in zip(("start", "end"), said, strict=True)}  # fmt: skip
        expected = tuple(day.strftime("%Y/%m/%d") if day else "" for day in said)
        assert RANGE.read(_decorated(draw, _dumped(draw, value)), False) == expected
        assert (
            RANGE.read(_decorated(draw, draw.choice(["N/A", "n/a", "**N/A**"])), False) == NO_RANGE
        )


_PHRASES = st.sampled_from(["mountain bike", "café au lait", "O'Brien", "3.5 km", "钟声"])
_LABELS = st.sampled_from(["", "Keyphrases: ", "**Keywords:** ", "Here are the keyphrases:\n"])


@settings(max_examples=200, deadline=None)
@given(st.lists(_PHRASES, min_size=1), st.sampled_from(["; ", ";", " ; ", ";\n", "\n"]), _LABELS)
def test_keyphrases_are_read_however_they_are_listed(
    phrases: list[str], sign: str, label: str
) -> None:
    assert PHRASES.read(label + sign.join(phrases), False) == tuple(phrases)
    cut = PHRASES.read(f"{label}{sign.join(phrases)}{sign}last o", True)
    assert cut == tuple(phrases)


_PIECES = st.sampled_from(
    [*'[]{}",:;\\/*#`\n 7', '["', '"]', '{"date": "2023/05/30", "event": "a"}', '{"start":',
     '"2023/05/01"', "N/A", "empty", "Answer:", "\\u", "\\ud83d", "null", "NaN", "\x00", "\ud800"]
)  # fmt: skip
_DAY = re.compile(r"\d{4}/\d\d/\d\d")


@pytest.mark.slow
@settings(max_examples=3_000, deadline=None)
@given(st.text() | st.lists(_PIECES).map("".join), st.booleans())
@example("[" * 100_000, True)
@example('["' * 100_000, True)
@example('["a",' * 100_000, False)
@example('[{"event":' * 100_000, True)
@example('{"start":' * 100_000, False)
@example("{" + '"start": "2023/05/01", ' * 50_000 + "}", False)
@example('{"start": ' + "9" * 10_000 + "}", False)
@example("Answer:\n" * 50_000, False)
@example("\n" * 200_000, False)
@example(";" * 100_000, True)
@example("a" + " " * 200_000 + "b", False)
@example('["a"' + " " * 200_000 + "b", False)
@example("note" + " " * 200_000 + "b", False)
def test_nothing_raises_and_values_are_what_they_are_said_to_be(reply: str, is_cut: bool) -> None:
    facts, events = FACTS.read(reply, is_cut), EVENTS.read(reply, is_cut)
    for fact in facts or ():
        assert fact and fact == " ".join(fact.split()) and fact.encode()
    for day, event in events or ():
        assert event and event.encode() and (not day or _DAY.fullmatch(day))
    limits = RANGE.read(reply, is_cut)
    assert limits is None or all(not day or _DAY.fullmatch(day) for day in limits)
    assert all(PHRASES.read(reply, is_cut) or ("none",))
    assert NOTE.read(reply, is_cut) in (None, "", reply.strip())
    assert ExtractSummary("", "").read(reply, is_cut) == (reply.strip() or None)
    answer = FREE.read(reply, is_cut)
    assert answer is None or (isinstance(answer, str) and answer in reply)
    assert CHOICE.read(reply, is_cut) in (None, 0, 1, "out_of_range")
