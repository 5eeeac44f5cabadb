"""The name of this process in what it writes to a warehouse."""

import os
import socket


def process_name() -> str:
    """The host's name and the process id, which together identify this process among all that write
    to a warehouse."""
    return f"{socket.gethostname()}-{os.getpid()}"
