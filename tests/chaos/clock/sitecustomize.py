"""With this folder in PYTHONPATH a process's clock jumps by an hour, forward or back, every 2 s."""

import time

_real = time.time
_JUMPS = (0.0, 3600.0, -3600.0)


def _jumping() -> float:
    return _real() + _JUMPS[int(time.monotonic() / 2) % len(_JUMPS)]


time.time = _jumping
