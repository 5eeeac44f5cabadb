"""Ask for an action at a node until one is legal, with as much working memory as fits."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import Problem
from pipeline.core.prompts import Asked, Prompt
from stages.prompts.memwalker.actions import MAX_REPLIES, reason_of
from stages.prompts.memwalker.read_leaf import ReadLeaf
from stages.prompts.memwalker.triage import Triage
from stages.tables.visits import Visit
from stages.text.fit_to_limit import Keep, fit_to_limit
from stages.text.words import word_spans


async def ask_for_action(
    prompt: Triage | ReadLeaf, legal: Collection[int], row: Visit, ask: Ask
) -> tuple[Visit, Asked[Any] | None]:
    """The first reply with a legal action of at most three, and the visit with what it took; None
    where there is none, or no reply."""
    problem: Problem | None = None
    for attempt in range(1, MAX_REPLIES + 1):
        subject = Subject(question_id=row.question_id, turn=row.turn, attempt=attempt)
        again: Prompt[Any] = replace(prompt, num_invalid=attempt - 1 or None)
        asked = await ask(again, subject)
        if asked.problem == "context_overflow" and attempt > 1:
            break  # no space to say what was wrong
        if not asked.has_reply:
            return replace(row, problem=asked.problem), None
        row = replace(row, num_replies=attempt)
        action = asked.value[0] if isinstance(asked.value, tuple) else asked.value
        if action in legal:
            return replace(row, chosen_by="model", reason=reason_of(asked.raw)), asked
        row = replace(row, num_invalid=attempt)
        problem = asked.problem or "unparseable"
    return replace(row, problem=problem), None


async def with_memory(prompt: ReadLeaf, memory: str, keep: Keep, ask: Ask) -> ReadLeaf:
    """The prompt with as many words of the working memory as fit, even when asked again."""

    def shown(most: int) -> ReadLeaf:
        return replace(prompt, working_memory=cut_words(memory, most, keep))

    async def size(most: int) -> int:
        return await ask.num_tokens(replace(shown(most), num_invalid=MAX_REPLIES - 1))

    limit, num = ask.context_tokens - ask.max_reply_tokens(ReadLeaf), len(word_spans(memory))
    whole = await size(num)
    if whole <= limit:
        return shown(num)
    return shown(await fit_to_limit(limit, size, range(num + 1), await size(0), whole))


def cut_words(text: str, most: int, keep: Keep) -> str:
    """The first or last `most` words of a text."""
    words = word_spans(text)
    if most >= len(words):
        return text
    if not most:
        return ""
    return text[: words[most - 1][1]] if keep == "first" else text[words[-most][0] :]
