"""The end of this process where nothing can be raised: a signal, a Ray that was killed."""

import os
from contextlib import suppress
from typing import NoReturn

INCOMPLETE = 4
_stderr = 2
with suppress(OSError):  # a process may have none
    _stderr = os.dup(2)  # which is silenced while Ray starts


def end_process(line: str) -> NoReturn:
    """End this process at once: `line` on standard error, exit code 4. What is left behind is as
    after a crash."""
    with suppress(OSError):
        os.write(_stderr, f"gistmill: {line}\n".encode())
    os._exit(INCOMPLETE)
