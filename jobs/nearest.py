"""What a message says of a name that does not exist: the names most like it."""

import difflib
from collections.abc import Collection

_MOST = 3


def nearest(wanted: str, names: Collection[str]) -> str:
    """`did you mean a or b?`, or all names, where they are few or none is like it."""
    near = difflib.get_close_matches(wanted, names, n=_MOST, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"there are {', '.join(sorted(names)) or 'none'}"
