"""Lines about a model's replies that are unhealthy as a whole, even if each can be read, by the
numbers of a run: the view `reply_health`."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pipeline.core.prompts import PROMPTS

_UNREAD = 0.3  # the highest healthy share of replies that cannot be read or were not on offer
_TRUNCATED = 0.2
_EXAMPLE = 0.2  # beyond the share that would be equal to it by chance
_COMMONEST, _LEAST_REPLIES = 0.7, 20
_FEW = 3  # of so few legal replies, such as verdicts, one may be right most of the time
_LETTER, _LEAST_CHOICES = 0.7, 10
_COPIED, _TINY = 0.5, 0.1
_SHOWN_CHARS = 60  # of a reply
_ADVICE = "a larger model or another prompt family may help"

Row = Mapping[str, Any]


def findings(row: Row, may_constrain: bool) -> dict[str, str]:
    """Lines about a row of the view `reply_health`, by the bound that it exceeds. `may_constrain`:
    the engine takes constraints, and replies were free."""
    who = row["stage"] + (f" ({row['method']})" if row.get("method") else "")
    who += f", repeat {row['repeat']}" if row.get("repeat") else ""
    lines = dict(_of_replies(row, may_constrain) if row["replies"] else ())
    choices, letters = row.get("choices") or 0, row.get("letters") or {}
    letter = max(letters, key=lambda name: letters[name], default="")
    right = (row.get("right_letters") or {}).get(letter, 0.0)
    if choices >= _LEAST_CHOICES and letters[letter] > _LETTER >= right:
        number = f"{letters[letter] * choices:.0f} of {choices} choices"
        lines["letters"] = f"{number} are {letter}, which is right {100 * right:.0f}%; {_ADVICE}"
    if (share := row.get("copied_share") or 0.0) > _COPIED:
        what = "the shortened texts copy more than 80% of their page's words in order"
        lines["copies"] = f"{100 * share:.0f}% of {what}; {_ADVICE}"
    if (share := row.get("tiny_share") or 0.0) > _TINY:
        what = "the shortened texts have under 3% of their page's words"
        lines["tiny"] = f"{100 * share:.0f}% of {what}; {_ADVICE}"
    return {name: f"{who}: {line}" for name, line in lines.items()}


def _of_replies(row: Row, may_constrain: bool) -> Iterator[tuple[str, str]]:
    replies, prompt = row["replies"], row["prompt"]
    may_be_constrained, num_choices = _legal_replies(prompt)

    def of(number: float) -> str:
        return f"{number:.0f} of {replies} replies to {prompt}"

    if (bad := row["unread"] + row["illegal"]) > _UNREAD * replies:
        is_free = may_constrain and may_be_constrained
        advice = "reply_format=constrained allows no other" if is_free else _ADVICE
        what = f"{row['unread']} cannot be read, {row['illegal']} name what was not on offer"
        yield "unread", f"{of(bad)} are of no use ({what}); {advice}"
    if row["truncated"] > _TRUNCATED * replies:
        yield "truncated", f"{of(row['truncated'])} were cut; raise reply_tokens.{prompt}="
    by_chance = 1 / num_choices if num_choices else 0.0
    if (share := row["example_share"]) > _EXAMPLE + by_chance:
        yield "example", f"{of(share * replies)} repeat an example of the prompt; {_ADVICE}"
    is_open = num_choices is None or num_choices > _FEW
    share, is_enough = row["commonest_share"], replies >= _LEAST_REPLIES
    if share > _COMMONEST and is_enough and is_open and not row.get("choices"):
        shown = " ".join(row["commonest"].split())[:_SHOWN_CHARS]
        yield "commonest", f"{of(share * replies)} are {shown!r}; {_ADVICE}"


@cache
def _legal_replies(prompt: str) -> tuple[bool, int | None]:
    """By a prompt's samples: whether its replies may be constrained, and the number of legal ones,
    None if requests differ in it. (False, None) if the prompt's plugin is not loaded."""
    if (cls := PROMPTS.get(prompt)) is None or cls.form is None:
        return False, None
    legal = [legal for sample in cls.samples() if (legal := sample.legal(cls.form))]
    choices = {constraint.choices for constraint in legal}
    return bool(legal), len(choices.pop()) or None if len(choices) == 1 else None
