"""Replies with an item per line: what is read of them is known before they are decorated."""

from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages.prompts.replies import parse_lines

pytestmark = pytest.mark.sampled


@pytest.mark.parametrize(
    ("reply", "lines"),
    [
        ("Lily Potter’s sacrifice\nThe Weasley Family",
         ("Lily Potter’s sacrifice", "The Weasley Family")),
        ("1. one\n2) two\n(3) three\n- four\n* five\n• six",
         ("one", "two", "three", "four", "five", "six")),
        ("1、甲\n（2）乙\n三、丙\n4．丁\n⑤戊", ("甲", "乙", "丙", "丁", "戊")),
        ("Clue 1: a b\nClues #2: c\nSurrogate question 3: d?\nQuery: e\nQuestion 4 - f",
         ("a b", "c", "d?", "e", "f")),
        ("线索1：爱的主题\n问题 2：谁敲了钟？\n子问题三：何时？",
         ("爱的主题", "谁敲了钟？", "何时？")),
        ("**Clue 1:** a\n**Clue 2**: b\n**Clue 3: c**\n- **4.** d\n### e",
         ("a", "b", "c", "d", "e")),
        ('"a b"\n“c d”,\n\'Lily\'s\'\n「戊」\n`f`\n1. "g."',
         ("a b", "c d", "Lily's", "戊", "f", "g.")),
        ("Here are the clues:\n\na\n\n  b  \n", ("a", "b")),
        ("以下是线索：\n甲", ("甲",)),
        ("**Clues**\n\nClue 1\na\n## Clue 2:\nb", ("a", "b")),
        ("1. He turned and said:\n2. Nothing", ("He turned and said:", "Nothing")),
        ("a\r\nb\u2028c\x85d", ("a", "b", "c", "d")),
        # as written
        ("3.5 million heard it\n-5 degrees\n1984 was cold",
         ("3.5 million heard it", "-5 degrees", "1984 was cold")),
        ('*He* and *she*\n"Yes" and "no"\nthe *bell*',
         ("*He* and *she*", '"Yes" and "no"', "the *bell*")),
        ("Clues 3-5 show  it\nquestion of honour", ("Clues 3-5 show  it", "question of honour")),
        ("same\nsame", ("same", "same")),
        # lists of strings
        ('["a b", "c, d"]', ("a b", "c, d")),
        ('```json\n["a",\n "b"]\n```', ("a", "b")),
        ('[\n  "a",\n  "b"\n]', ("a", "b")),
        ("Clues:\n['a', 'b']", ("a", "b")),
        ('["a \\"b\\" c"]', ('"a \\"b\\" c"',)),
        ('{"clues": ["a"]}', ('{"clues": ["a"]}',)),
        # none
        ("NONE", ()), ("none.", ()), ("**N/A**", ()), ("无。", ()), ("1. None", ()), ("[]", ()),
        ("Here are the clues:\nNONE", ()),
        ("Clue 1: the bell\nClue 2: none", ("the bell",)),
        # nothing
        ("", None), (" \n\n", None), ("1.\n2.\n---\n***", None), ("Here are the clues:", None),
        ("Questions:\n", None), ("```\n```", None), ("…！？", None),
    ],
)  # fmt: skip
def test_what_lines_say(reply: str, lines: tuple[str, ...] | None) -> None:
    assert parse_lines(reply, is_cut=False) == lines


@pytest.mark.parametrize(
    ("reply", "lines"),
    [
        ("a b\nc d\ne f", ("a b", "c d")),
        ("a b\nc d\n", ("a b", "c d")),  # the cut came after a line
        ("1. a\n2. b\n3.", ("a", "b")),
        ("Who rang?\nNobody admits it.", ("Who rang?", "Nobody admits it.")),  # whole
        ("谁敲的钟？\n没有人承认。", ("谁敲的钟？", "没有人承认。")),
        ("the only o", ("the only o",)),
        ("Here are the clues:\n1. the only o", ("the only o",)),
        ('["a", "b", "c', ("a", "b")),
        ('[\n"a",\n"b', ("a",)),
        ("NONE\nThe text sa", ()),
        ("NONE", ()),
        ("Clu", ("Clu",)),
        ("", None),
        ("Clue 1:", None),
    ],
)
def test_the_last_line_of_a_cut_reply(reply: str, lines: tuple[str, ...] | None) -> None:
    assert parse_lines(reply, is_cut=True) == lines


_FIRST = ["The", "Lily", "Who", "12th", "O'Brien", "Harry's", "naïve", "Ärzte", "1984"]
_INNER = [
    *("the", "3.5", "(1)", "1.", "-", "–", "*noon*", '"yes"', "so:", "a;b", "[3]", "C#", "none"),
    *("_x_", "d’or"),
]
_LAST = ["bell", "sexton?", "family.", "him!", "7"]
_SIGNS = "钟声响了没有人承认村庄醒来，：“”、3（）"
_MARKS = ["{}. ", "{}) ", "({}) ", "{}、", "（{}）", "- ", "* ", "• ", "[{}] ", "+ ", "一、"]
_LABELS = [
    *("Clue {}: ", "Clues #{}: ", "Surrogate question {}: ", "QUESTION {}: ", "Query: ", "Clue: "),
    *("**Clue {}:** ", "**Clue {}**: ", "*Span {}:* ", "Key point {}. ", "Sub-question {}: "),
    *("线索{}：", "问题 {}：", "**要点{}：**", "替代问题："),
]
_WRAPS = [
    *(('"', '"'), ("“", "”"), ("'", "'"), ("‘", "’"), ("「", "」"), ("«", "»")),
    *(("**", "**"), ("*", "*"), ("__", "__"), ("`", "`")),
]
_INTRODUCTIONS = ["Here are the clues:", "**Sure! Clues:**", "以下是线索：", "## 线索"]


def _clue(draw: Random) -> str:
    """A line in English or Chinese with what could be taken for marks inside."""
    if draw.random() < 0.3:
        inner = "".join(draw.choices(_SIGNS, k=draw.randrange(12)))
        return f"{draw.choice('钟村她谁')}{inner}{draw.choice('响。？3')}"
    inner = " ".join(draw.choices(_INNER, k=draw.randrange(1, 6)))
    return f"{draw.choice(_FIRST)} {inner} {draw.choice(_LAST)}"


def _listed(draw: Random, number: int, clue: str) -> str:
    """The clue as an item of a list."""
    opening, closing = draw.choice(_WRAPS)
    apart = clue.replace("O'B", "").replace("y's", "").replace("d’o", "")
    if draw.random() < 0.5 and opening not in apart and closing not in apart:
        clue = f"{opening}{clue}{closing}{draw.choice(['', ',', ';'])}"
    mark, label = (draw.choice(some) if draw.random() < 0.5 else "" for some in (_MARKS, _LABELS))
    space = draw.choice(["", " ", "\t"])
    return f"{space}{mark.format(number)}{label.format(number)}{clue}{space}"


def _reply(draw: Random, lines: list[str]) -> str:
    if draw.random() < 0.5:
        lines = [draw.choice(_INTRODUCTIONS), *lines]
    if draw.random() < 0.3:
        lines = ["```text", *lines, "```"]
    return draw.choice(["\n", "\n\n", "\r\n", "\n---\n", "\n \n"]).join(lines)


@pytest.mark.slow
@settings(max_examples=1_000, deadline=None)
@given(st.randoms(use_true_random=True))
def test_clues_are_read_however_they_are_listed(draw: Random) -> None:
    for _ in range(10):
        clues = [_clue(draw) for _ in range(draw.randrange(1, 6))]
        lines = [_listed(draw, number, clue) for number, clue in enumerate(clues, 1)]
        reply = _reply(draw, lines)
        assert parse_lines(reply, is_cut=False) == tuple(clues), reply


@settings(max_examples=500, deadline=None)
@given(st.randoms(use_true_random=True))
def test_a_cut_reply_loses_only_its_last_line(draw: Random) -> None:
    clues = [_clue(draw) for _ in range(draw.randrange(2, 6))]
    *whole, last = (_listed(draw, number, clue) for number, clue in enumerate(clues, 1))
    reply = "\n".join([*whole, last[: draw.randrange(1, len(last))]])
    lines = parse_lines(reply, is_cut=True) or ()
    is_kept = len(lines) == len(clues) and lines[-1].endswith(
        (".", "!", "?", "。", "？", "！", "…")
    )
    assert (lines[:-1] if is_kept else lines) == tuple(clues[:-1]), reply


_PIECES = st.sampled_from(
    [*"1:：*_\"'“”[]()、٣一无钟,\n\r \t\\\x00", "Clue", "**", "NONE", "- ", "# ", "> ", "```"]
)


@pytest.mark.slow
@settings(max_examples=3_000, deadline=None)
@given(st.text() | st.lists(_PIECES).map("".join), st.booleans())
@example("x" * 1_000_000, True)
@example(" " * 100_000 + "clue" + " " * 100_000 + ":", False)
@example("1. " * 100_000, False)
@example('["' * 100_000, False)
@example('["a",' + " " * 100_000 + "x", True)
@example("clue\n" * 5_000 + "end", True)
@example("'" * 100_000, False)
@example("\ud800", False)
def test_nothing_raises_and_nothing_is_made_up(reply: str, is_cut: bool) -> None:
    lines = parse_lines(reply, is_cut)
    assert all(line and line in reply for line in lines or ())
    assert all(any(char.isalnum() for char in line) for line in lines or ())
