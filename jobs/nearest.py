"""What a message says of a name that does not exist: the names most like it."""

import difflib
from collections.abc import Collection

_MOST = 3


def nearest(wanted: str, names: Collection[str]) -> str:
    """`did you mean a or b?`, or all names where none is like it. Of a method with arguments the
    name before the bracket counts, too."""
    beginnings = {name.partition("(")[0]: name for name in reversed(sorted(names))}
    near = difflib.get_close_matches(wanted, {*names, *beginnings}, n=_MOST, cutoff=0.5)
    if near:
        found = dict.fromkeys(beginnings.get(name, name) for name in near)
        return f"did you mean {' or '.join(found)}?"
    return f"there are {', '.join(sorted(names)) or 'none'}"
