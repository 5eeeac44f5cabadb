"""Names of processes that write to a warehouse or to this machine's temporary folder."""

import os
import re
import shutil
import socket
import tempfile
import uuid
from pathlib import Path

_HOST = socket.gethostname()


def process_name() -> str:
    """The host's name and the process id: unique among the processes that write to a warehouse."""
    return f"{_HOST}-{os.getpid()}"


def has_ended(name: str) -> bool:
    """True if the named process was on this machine and no longer runs; other machines' are
    unknown."""
    host, _, pid = name.rpartition("-")
    return host == _HOST and pid.isdecimal() and not _is_running(int(pid))


def part_name(name: str) -> str:
    """A name for this process's temporary file, beside the file that it becomes."""
    return f".{name}.{process_name()}.{uuid.uuid4().hex[:8]}.part"


def is_abandoned(part: str) -> bool:
    """True if a temporary file's writer was on this machine and has ended."""
    name = re.search(rf"\.({re.escape(_HOST)}-\d+)\.[0-9a-f]{{8}}\.part$", part)
    return name is not None and has_ended(name[1])


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def own_folder(kind: str) -> Path:
    """A new temporary folder of this process, gistmill-KIND-PID-...; deletes those of processes
    that have ended."""
    start = f"gistmill-{kind}-"
    for folder in Path(tempfile.gettempdir()).glob(f"{start}*"):
        pid, _, _ = folder.name.removeprefix(start).partition("-")
        if pid.isdecimal() and not _is_running(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{start}{os.getpid()}-"))
