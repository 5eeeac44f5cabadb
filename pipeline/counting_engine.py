"""An engine that only counts: what a run will send and what may come back, without any model.

It replies from a request's fields as a model might, always legally, in one of three tempers:

least    the last label, so that pages are few; gists and answers of a word; nothing is looked up
likely   the label in the middle; gists, answers and look-ups as `Habits` says
most     the first label; gists and answers as long as they may be; all pages that may be looked up,
         the longest, after a page that is not there wherever that is asked about once more

`most` has no end to its context, so that nothing is left out for want of room; a prompt that would
not fit counts as one that fills the context, which its call's tokens show.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from stages.fields import (
    AnswerQuestion,
    BreakPoint,
    ParallelLookUp,
    Passage,
    PermissiveRating,
    SequentialLookUp,
    ShortenPage,
    StrictRating,
)
from stages.token_counts import TokenCounts

from pipeline.engine import Reply, Request
from pipeline.prompts import Message

Temper = Literal["least", "likely", "most"]
TEMPERS: tuple[Temper, ...] = ("least", "likely", "most")
NO_LIMIT = 10**12  # tokens
_PIECE_CHARS, _BLOCK_TOKENS = 64, 16  # a block is cached whole or not at all
_LIST_TOKENS = 16  # a list of pages may be written in more tokens than ours


@dataclass(frozen=True)
class Habits:
    """What is likely of a model. `reply_tokens` by prompt; those of a prompt that is not named
    follow from the text the reply would have."""

    gist_share: float = 0.15  # of a page's words
    pages_share: float = 0.5  # of the pages that may be looked up at once
    pages_in_turn: int = 3  # before a look-up, page by page, stops
    reply_tokens: Mapping[str, int] = field(
        default_factory=lambda: {
            "break_point": 24, "look_up_p": 24, "look_up_s": 8, "rate_strict": 2,
            "rate_permissive": 3,
        }
    )  # fmt: skip


class PlanningEngine:
    """`context_tokens` is the real engine's, thinking left out; null: not known, so no limit.

    `thinking_tokens` may come before each reply. `has_cache`: prompts that begin as earlier ones
    did are not worked out again; its room is taken to be enough.
    """

    name = "plan"

    def __init__(
        self,
        temper: Temper,
        habits: Habits,
        counts: TokenCounts,
        context_tokens: int | None,
        thinking_tokens: int = 0,
        has_cache: bool = True,
    ) -> None:
        self.context_tokens = NO_LIMIT if temper == "most" else context_tokens or NO_LIMIT
        self._real_context = context_tokens or NO_LIMIT
        self._temper = temper
        self._habits = habits
        self._counts = counts
        self._thinking_tokens = thinking_tokens
        self._prefixes = Prefixes() if has_cache else None
        self._last: tuple[Sequence[Message], int] = ((), 0)

    async def generate(self, request: Request) -> Reply:
        text = _TEXTS[type(request.fields)](request, self._temper, self._habits, self._counts)
        prompt, reply = self._num_tokens(request.messages), self._reply_tokens(request, text)
        tokens = min(prompt, self._real_context - request.max_reply_tokens)
        clipped = tokens < prompt
        return Reply(
            text=text,
            finish_reason="stop",
            prompt_tokens=tokens,
            cached_tokens=self._cached(request.messages, tokens),
            # Filled up to the last token, so that a clipped one can be told from one that fits.
            reply_tokens=request.max_reply_tokens if clipped else reply,
        )

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return self._num_tokens(messages)

    def _num_tokens(self, messages: Sequence[Message]) -> int:
        if messages is not self._last[0]:  # counted when it is admitted and when it is answered
            self._last = (messages, self._counts.of(messages))
        return self._last[1]

    def _cached(self, messages: Sequence[Message], tokens: int) -> int:
        if self._prefixes is None:
            return 0
        text = "\n".join(message["content"] for message in messages)
        return int(tokens * self._prefixes.share(text)) // _BLOCK_TOKENS * _BLOCK_TOKENS

    def _reply_tokens(self, request: Request, text: str) -> int:
        """Thinking among them, half of what there may be where that is likely."""
        legal, own = request.constraint, self._counts.of_text(text)
        budget = request.max_reply_tokens
        if self._temper == "least":
            return 1
        if self._temper == "likely":
            usual = None if legal else self._habits.reply_tokens.get(request.prompt)
            return min(budget, own if usual is None else usual) + self._thinking_tokens // 2
        if legal and legal.choices:
            budget = max(self._counts.of_text(choice) for choice in legal.choices) + 1
        elif legal:
            budget = min(budget, 2 * own + _LIST_TOKENS)
        return budget + self._thinking_tokens


class Prefixes:
    """The beginnings of all prompts so far."""

    def __init__(self) -> None:
        self._known: set[int] = set()

    def share(self, text: str) -> float:
        """How much of the text an earlier one began with, 0 to 1; from now on it is one."""
        found, before, is_known = 0, 0, True
        for end in range(_PIECE_CHARS, len(text) + 1, _PIECE_CHARS):
            before = hash((before, text[end - _PIECE_CHARS : end]))
            is_known = is_known and before in self._known
            if is_known:
                found = end
            else:
                self._known.add(before)
        return found / len(text) if text else 0.0


def _break_point(request: Request, temper: Temper, habits: Habits, counts: TokenCounts) -> str:
    fields: Any = request.fields
    labels = [part.label for part in fields.paragraphs if part.label is not None]
    place = {"least": -1, "likely": len(labels) // 2, "most": 0}[temper]
    return f"Break point: <{labels[place]}>"


def _gist(request: Request, temper: Temper, habits: Habits, counts: TokenCounts) -> str:
    fields: Any = request.fields
    page: str = fields.page
    if temper == "least":
        return page.split()[0]
    most = request.max_reply_tokens
    usual = habits.reply_tokens.get("gist", round(habits.gist_share * counts.of_text(page)))
    return _of_length(page, most if temper == "most" else min(most, max(1, usual)), counts)


def _of_length(text: str, num_tokens: int, counts: TokenCounts) -> str:
    """Of about so many tokens, the text's own words over and over."""
    num_chars = round(num_tokens * len(text) / max(1, counts.of_text(text))) + 1
    return (f"{text} " * (num_chars // (len(text) + 1) + 1))[:num_chars]


def _look_up_p(request: Request, temper: Temper, habits: Habits, counts: TokenCounts) -> str:
    fields: Any = request.fields
    numbers = _longest_first(fields.passages)
    if temper == "least":
        numbers = []
    elif temper == "likely":
        wanted = max(1, round(fields.max_pages * habits.pages_share))
        numbers = sorted(numbers)[:: max(1, len(numbers) // wanted)][:wanted]
    listed = ", ".join(map(str, numbers[: fields.max_pages]))
    return f"I want to look up Page [{listed}]"


def _look_up_s(request: Request, temper: Temper, habits: Habits, counts: TokenCounts) -> str:
    fields: Any = request.fields
    taken = {*fields.pages_read, *fields.refused}
    left = [number for number in _longest_first(fields.passages) if number not in taken]
    is_over = len(fields.pages_read) >= habits.pages_in_turn or not left
    if temper == "least" or (temper == "likely" and is_over):
        return "STOP"
    if temper == "likely":
        return f"Page {sorted(left)[len(left) // 2]}"
    if request.constraint is None and (request.attempt == 1 or not left):
        return "Page 999999999"  # not there, so it is asked about once more
    return f"Page {left[0]}" if left else "STOP"


def _longest_first(passages: Sequence[Passage]) -> list[int]:
    """The numbers of the pages that are gists; a long gist is likely that of a long page."""
    gists = [passage for passage in passages if passage.kind == "gist"]
    ranked = sorted(gists, key=lambda passage: -len(passage.text))
    return [passage.page_number for passage in ranked if passage.page_number is not None]


def _answer(request: Request, temper: Temper, habits: Habits, counts: TokenCounts) -> str:
    fields: Any = request.fields
    if fields.options:
        return "Answer: (A)"
    if temper == "least":
        return "Nobody."
    if temper == "likely":
        usual = habits.reply_tokens.get("answer")
        text = " ".join(["answer"] * fields.answer_words)
        return text if usual is None else _of_length(text, usual, counts)
    return _of_length("A word of an answer.", request.max_reply_tokens, counts)


def _strict(request: Request, temper: Temper, habits: Habits, counts: TokenCounts) -> str:
    return "NO"


def _permissive(request: Request, temper: Temper, habits: Habits, counts: TokenCounts) -> str:
    return "Yes, partially"


_TEXTS: Mapping[type, Callable[[Request, Temper, Habits, TokenCounts], str]] = {
    BreakPoint: _break_point,
    ShortenPage: _gist,
    ParallelLookUp: _look_up_p,
    SequentialLookUp: _look_up_s,
    AnswerQuestion: _answer,
    StrictRating: _strict,
    PermissiveRating: _permissive,
}
