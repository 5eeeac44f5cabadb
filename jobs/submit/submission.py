"""What came of sending a run, or of stopping it."""

import sys
from dataclasses import dataclass

INCOMPLETE = 4


@dataclass(frozen=True)
class Submission:
    """`exit_code` is the command's; `job` the id of whoever starts machines, or what that said."""

    run: str
    job: str
    status: str  # SENT, or as Ray calls it where the job is over: SUCCEEDED, FAILED, STOPPED
    exit_code: int


def tell(line: str) -> None:
    """A line for whoever watches, on standard error."""
    sys.stderr.write(f"gistmill: {line}\n")
