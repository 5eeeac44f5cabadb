"""A metric of a user's own."""

from gistmill.plugin import metric

from .letters import same


@metric("first_letter", version=1)
def first_letter(answer: str, reference: str) -> float:
    """100 where answer and reference begin with the same letter, else 0."""
    return 100.0 * same(answer, reference)
