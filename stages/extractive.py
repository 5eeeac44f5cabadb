"""The embedded engine: answers every prompt from its fields, by lexical rules and without a model.

It shows the pipeline on real text; it is no substitute for a model. The same request always gets
the same reply. Replies keep to the grammars that parsing.py reads.
"""

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Literal

from pydantic import PositiveInt

from pipeline.engine import EngineSettings, FinishReason, Reply, Request
from pipeline.prompts import Fields, Message
from stages.excerpts import best_sentences, gist, sentences
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
from stages.ranking import rank, relevance, terms
from stages.words import num_words, word_spans

_TOKEN = re.compile(r"\w+|[^\w\s]")
_BLOCK_TERMS = 100  # how much text before and after a label is compared
_AGREES, _AGREES_PARTLY = 0.5, 0.2  # F1 of terms
_OPTION_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class ExtractiveSettings(EngineSettings):
    """Nothing of its own."""

    name: Literal["extractive"]
    context_tokens: PositiveInt

    is_model: ClassVar[bool] = False
    is_deterministic: ClassVar[bool] = True

    def own_identity(self) -> Mapping[str, Any]:
        return {"version": ExtractiveEngine.version}

    async def start(self) -> "ExtractiveEngine":
        return ExtractiveEngine(self.context_tokens)


class ExtractiveEngine:
    """Deterministic, at once ready, on the CPU. `context_tokens` counts `count_tokens`' tokens."""

    name = "extractive"
    version = 1  # raise when its replies change

    def __init__(self, context_tokens: int = 1_000_000) -> None:
        self.context_tokens = context_tokens

    async def generate(self, request: Request) -> Reply:
        """The reply to the request's fields, cut at `max_reply_tokens` (finish_reason length).

        Raises TypeError for fields of a prompt it does not know.
        """
        started = time.perf_counter()
        text, finish_reason = _within(reply_to(request.fields), request.max_reply_tokens)
        return Reply(
            text=text,
            finish_reason=finish_reason,
            prompt_tokens=await self.count_tokens(request.messages),
            cached_tokens=0,
            reply_tokens=num_tokens(text),
            seconds=time.perf_counter() - started,
        )

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Runs of letters and digits, and signs of punctuation one by one; no chat template."""
        return sum(num_tokens(message["content"]) for message in messages)


@lru_cache(maxsize=32)  # a prompt is counted when it is admitted and again when it is answered
def num_tokens(text: str) -> int:
    """Runs of letters and digits, and signs of punctuation one by one."""
    return len(_TOKEN.findall(text))


def _within(text: str, max_tokens: int) -> tuple[str, FinishReason]:
    if num_tokens(text) <= max_tokens:
        return text, "stop"
    ends = [0, *(match.end() for match in _TOKEN.finditer(text))]
    return text[: ends[max(max_tokens, 0)]], "length"


def reply_to(fields: Fields) -> str:
    """The whole reply to a prompt's fields. Raises TypeError for an unknown prompt."""
    reply = _REPLIES.get(type(fields))
    if reply is None:
        raise TypeError(f"the extractive engine has no reply to the prompt {fields.prompt!r}")
    return reply(fields)


def _break_point(fields: BreakPoint) -> str:
    """The label with the least in common between the text before it and after it."""
    split = [terms(paragraph.text) for paragraph in fields.paragraphs]
    cohesion: dict[int, float] = {}
    for place, paragraph in enumerate(fields.paragraphs, start=1):
        after = [term for found in split[place:] for term in found][:_BLOCK_TERMS]
        before = [term for found in split[:place] for term in found][-_BLOCK_TERMS:]
        if paragraph.label is not None:
            # Nothing after it is nothing to compare: the window's end is the last resort.
            cohesion[paragraph.label] = _cosine(before, after) if after else math.inf
    if not cohesion:
        return "There is no label to break at."
    label = min(cohesion, key=lambda found: cohesion[found])
    return (
        f"Break point: <{label}>\nThe words change most from the text before it to that after it."
    )


def _shorten_page(fields: ShortenPage) -> str:
    return gist(fields.page)


def _parallel_look_up(fields: ParallelLookUp) -> str:
    best = _ranked_pages(fields.passages, fields.question, fields.options)[: fields.max_pages]
    return f"I want to look up Page {best} to answer the question."


def _sequential_look_up(fields: SequentialLookUp) -> str:
    """The best page not yet asked for; STOP where none is left that speaks of the question."""
    asked = {*fields.pages_read, *fields.refused}
    wanted = set(terms(_query(fields.question, fields.options)))
    speaking = {p.page_number for p in fields.passages if wanted & set(terms(p.text))} - asked
    ranked = _ranked_pages(fields.passages, fields.question, fields.options)
    best = next((page for page in ranked if page in speaking), None)
    return "STOP" if best is None else f"Page {best}"


def _ranked_pages(passages: Sequence[Passage], question: str, options: Sequence[str]) -> list[int]:
    numbered = [(p.page_number, p.text) for p in passages if p.page_number is not None]
    order = rank([text for _, text in numbered], _query(question, options))
    return list(dict.fromkeys(numbered[place][0] for place in order))


def _query(question: str, options: Sequence[str]) -> str:
    return "\n".join([question, *options])


def _answer(fields: AnswerQuestion) -> str:
    texts = [passage.text for passage in fields.passages]
    if fields.options:
        return f"Answer: ({_OPTION_LETTERS[_best_option(texts, fields)]})"
    found = best_sentences(texts, fields.question, fields.answer_words)
    return found or _unread(fields.question, fields.answer_words)


def _best_option(texts: Sequence[str], fields: AnswerQuestion) -> int:
    """The option that, with the question, one sentence speaks of most; else the longest."""
    options = fields.options[: len(_OPTION_LETTERS)]
    found = [sentence.text for text in texts for sentence in sentences(text)]
    match = relevance(found, fields.question)
    scores = []
    for option in options:
        # By its number of terms, or the longest option would always win.
        own = relevance(found, option) / max(1, len(terms(option)))
        scores.append(float((own + match).max(initial=0.0)) if own.any() else 0.0)
    merit = [(score, len(option)) for score, option in zip(scores, options, strict=True)]
    return merit.index(max(merit))


def _unread(question: str, answer_words: int) -> str:
    """An honest reply without a text, its question cut to fit."""
    lead = "Nothing read says:"
    words = word_spans(question)[: max(1, answer_words - num_words(lead))]
    return f"{lead} {question[: words[-1][1]].strip()}" if words else "Nothing was read."


def _strict(fields: StrictRating) -> str:
    return "YES" if _agreement(fields.answer, fields.reference) >= _AGREES else "NO"


def _permissive(fields: PermissiveRating) -> str:
    agreement = _agreement(fields.answer, fields.reference)
    if agreement >= _AGREES:
        return "Yes"
    return "Yes, partially" if agreement >= _AGREES_PARTLY else "No"


def _agreement(answer: str, reference: str) -> float:
    """F1 of the terms, 0 to 1; of all words where one of the two has only stop words."""
    made, wanted = terms(answer), terms(reference)
    if not made or not wanted:
        made, wanted = (re.findall(r"\w+", text.lower()) for text in (answer, reference))
    shared = sum((Counter(made) & Counter(wanted)).values())
    return 2 * shared / (len(made) + len(wanted)) if shared else 0.0


def _cosine(before: Sequence[str], after: Sequence[str]) -> float:
    left, right = Counter(before), Counter(after)
    product = sum(left[term] * right[term] for term in left)
    squares = sum(n * n for n in left.values()) * sum(n * n for n in right.values())
    return product / math.sqrt(squares) if squares else 0.0


_REPLIES: dict[type[Fields], Callable[[Any], str]] = {
    BreakPoint: _break_point,
    ShortenPage: _shorten_page,
    ParallelLookUp: _parallel_look_up,
    SequentialLookUp: _sequential_look_up,
    AnswerQuestion: _answer,
    StrictRating: _strict,
    PermissiveRating: _permissive,
}
