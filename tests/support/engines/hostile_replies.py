"""Replies that no model should give: a prompt's legal ones, mutated. Seeded, so that a failure is
found again."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from pipeline.core.prompts import Prompt
from tests.support.reading import family

DIGITS = [
    str.maketrans("0123456789", signs)
    for signs in ("٠١٢٣٤٥٦٧٨٩", "０１２３４５６７８９", "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗")
]
HOMOGLYPHS = str.maketrans("<>[]()AaEeo:", "‹›［］（）ΑаЕеο：")
JUNK = [
    "\0", "\x1b[2J", "\u200b", "\u202e", "\ud800", "\udfff", "\ufeff", "\r", "\u2028", " ", "\n",
    "not ", "No. ", "yes ", "or ", "1", "-", "<", "[", "{", '"', "```json\n", "</think>", "<think>",
    "9" * 400, "1e400", "NaN", "Infinity", "null", "true",
]  # fmt: skip
WHOLE = [
    "", " \n\t", "\0", "\ud800", "[" * 10_000, '{"a":' * 10_000, '["' * 5_000, "9" * 20_000,
    str(10**400), "x" * 20_000, "[NaN, Infinity, -Infinity]", '{"start": NaN, "end": 1e999}',
    '[{"event": 7}, {"event": null}, "x", 10, []]', '{"event": {"event": "x"}}', "null", "[]",
    "[1, 2, 3]", "\u202e]7 ,2[ egaP", "I want to look up Page [-1, 10000000000]",
    "Page 99999999999", "Action: -3", "Action: 999999999", "Action: -2\nAnswer: (Z)", "Answer: (Z)",
    "Answer: (A) or (B)", "Break point: <999999999>", "Break point: <-1>", "yes and no", "Yes. No.",
    "NO\n\nFinal verdict: YES", '{"start": "9999/99/99", "end": "2023/02/30"}',
    '{"start": "2024/01/01", "end": "2023/01/01"}',
]  # fmt: skip


def legal_replies(prompt: Prompt[Any]) -> list[str]:
    """What the prompt's own module replies, its form with every value, the first and the last of
    the legal choices, and free text of nine times the usual length."""
    form = family().form(type(prompt))
    filled = [form.replace("{}", text) for text in prompt.form_values] if form else []
    legal = prompt.legal(form) if form else None
    extremes = [legal.choices[0], legal.choices[-1]] if legal and legal.choices else []
    long = [] if form else [" ".join([prompt.expected()] * 9)]
    return [prompt.extractive(), prompt.expected(), *extremes, *long, *filled]


def spoiled(reply: str, others: list[str], rng: random.Random) -> str:
    """The reply after one to three mutations."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        reply = _mutated(reply, others, rng)[:30_000]
    return reply


def _mutated(reply: str, others: list[str], rng: random.Random) -> str:
    at, to = sorted((rng.randint(0, len(reply)), rng.randint(0, len(reply))))
    junk = rng.choice(JUNK)
    changes: list[Callable[[], str]] = [
        lambda: reply[:at],  # cut
        lambda: reply[at:],
        lambda: reply[:at] + reply[to:],
        lambda: reply[:at] + junk + reply[at:],
        lambda: reply[:at] + junk * 50 + reply[to:],
        lambda: f"{reply}{junk}{reply}",
        lambda: f"{reply}\n{rng.choice(others)}",  # may contradict itself
        lambda: f"Not {reply}",
        lambda: f"```json\n{reply}\n```",
        lambda: json.dumps({"answer": reply, "a": [reply]}),
        lambda: reply.translate(rng.choice(DIGITS)),
        lambda: reply.translate(HOMOGLYPHS),
        lambda: reply.upper() if rng.random() < 0.5 else reply[::-1],
        lambda: "".join(rng.sample(reply[:200], len(reply[:200]))),
    ]
    return rng.choice(changes)()


def replies(prompt: Prompt[Any], number: int) -> Iterator[str]:
    rng, legal = random.Random(f"{prompt.name} {number}"), legal_replies(prompt)
    yield from WHOLE[:number]
    for _ in range(number - len(WHOLE)):
        reply = rng.choice([*legal, *WHOLE]) if rng.random() < 0.9 else rng.choice(JUNK)
        yield spoiled(reply, legal, rng)
