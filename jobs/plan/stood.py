"""The calls that stood before a plan was made, so that a report compares only what came after."""

from collections.abc import Mapping, Sequence

from pipeline.place import AnyPath, place
from pipeline.steps import Step
from pipeline.store import connect, query

_COUNTED = ("calls", "prompt_tokens", "cached_tokens", "reply_tokens")


def stood(
    warehouse: AnyPath, steps: Sequence[Step], done: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, int]]:
    """Calls and tokens by step, of those of its units that are `done`."""
    asking = [step.id for step in steps if step.prompts and done.get(step.id)]
    if not asking or not list(place(warehouse).glob("runs/*/units.parquet")):
        return {}  # without any run DuckDB has nothing to open
    names = ", ".join(f"'{step_id}'" for step_id in asking)
    with connect(warehouse) as connection:
        rows = query(
            connection,
            f"""select step_id, unit, count(*) as calls, sum(prompt_tokens)::bigint as
            prompt_tokens, sum(cached_tokens)::bigint as cached_tokens,
            sum(reply_tokens)::bigint as reply_tokens
            from raw_calls where not is_shared and step_id in ({names}) group by all""",
        )
    units = {step_id: set(done[step_id]) for step_id in asking}
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        if row["unit"] in units[row["step_id"]]:
            own = found.setdefault(row["step_id"], dict.fromkeys(_COUNTED, 0))
            for name in _COUNTED:
                own[name] += row[name]
    return found
