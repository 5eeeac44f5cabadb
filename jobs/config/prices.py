"""Money for tokens: the option `price` of `plan`, and of `report` after the run."""

from pipeline.core.errors import UsageError


def money(price: str, prompt: float, cached: float, reply: float) -> float:
    """The price of tokens, of which `cached` are part of the prompts.

    `price`: PROMPT,REPLY or PROMPT,REPLY,CACHED of a million tokens; without CACHED a cached token
    costs as much as others. Raises UsageError for another form.
    """
    per_prompt, per_reply, *more = numbers("price", price, "PROMPT,REPLY[,CACHED]")
    of_cached = cached * (more[0] if more else per_prompt)
    return ((prompt - cached) * per_prompt + of_cached + reply * per_reply) / 1e6


def numbers(option: str, written: str, form: str) -> list[float]:
    """Two numbers, or three if the form allows a third. Raises UsageError for others."""
    try:
        found = [float(part) for part in written.split(",")]
    except ValueError:
        found = []
    if len(found) not in (2, 2 + ("[" in form)) or not all(0 <= n < float("inf") for n in found):
        unit = "tokens a second" if option == "rates" else "money a million tokens"
        raise UsageError(f"--{option} {written}: write {form} in {unit}")
    return found
