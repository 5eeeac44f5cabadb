"""Ctrl-C and SIGTERM end a command in one line, from its first moment on.

SIGTERM ends the process without raising: what a handler raises may hit a library while it holds a
lock. A run whose workers are at work ends gracefully instead (graceful_stop.py).
"""

import signal
from types import FrameType

from pipeline.core.errors import end_process

INTERRUPTED = "interrupted; run the same command to resume"


def interruptible() -> None:
    """Let both signals end this process; for one that is still importing modules."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` has it
            signal.signal(number, end)


def raise_at_ctrl_c() -> None:
    """Let Ctrl-C raise KeyboardInterrupt, for verbs that do more than end."""
    if signal.getsignal(signal.SIGINT) is end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end(number: int, frame: FrameType | None) -> None:
    end_process(INTERRUPTED)
