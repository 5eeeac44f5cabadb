"""The names of memories, and the SQL condition that a memory is the run's own."""

SHARED = "shared"  # the name of the run's own memory; with other settings: shared [memory=uniform]
WHOLE_TEXT = "text"  # that of rows made from the document itself, without pages


def of_repeat(memory: str, repeat: int) -> str:
    """The name of a memory in a repeat, if each repeat has one of its own."""
    return f"{memory} (repeat {repeat})" if repeat else memory


def is_shared_sql(column: str) -> str:
    """The SQL condition that a memory is the run's own, in whichever repeat."""
    others = " or ".join(f"starts_with({column}, '{SHARED} {sign}')" for sign in ("(repeat ", "["))
    return f"({column} = '{SHARED}' or {others})"
