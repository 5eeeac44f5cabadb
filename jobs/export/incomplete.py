"""Exports say so where the run they are of is not complete."""

from collections.abc import Callable, Mapping


def warn_incomplete(run: str, inputs: Mapping[str, int], warn: Callable[[str], None]) -> None:
    """Give `warn` a line where some of the run's `inputs` are not done."""
    if inputs["not_done"]:
        warn(
            f"INCOMPLETE: {inputs['not_done']} of {inputs['planned']} inputs of run={run} are not "
            "done, and not in what is exported; the same gistmill run goes on with them"
        )
