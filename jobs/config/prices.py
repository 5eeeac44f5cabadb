"""Prices and rates as options of a command: `--price` of `plan` and `report`, `--rates` of
`plan`."""

from pydantic import ValidationError

from pipeline.core.engine import Price
from pipeline.core.errors import UsageError


def price_of(written: str) -> Price:
    """The price that `--price PROMPT,REPLY[,CACHED]` gives. Raises UsageError for another form."""
    prompt, reply, *cached = numbers("price", written, "PROMPT,REPLY[,CACHED]")
    try:
        return Price(input=prompt, output=reply, cached_input=cached[0] if cached else None)
    except ValidationError as error:
        raise UsageError(f"--price {written}: {error.errors()[0]['msg']}") from None


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
