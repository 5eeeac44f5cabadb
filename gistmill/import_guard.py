"""Refuse to start where a folder of a user's own hides one of gistmill's packages.

`pipeline`, `stages` and `jobs` are names that a user's project may have, too; whichever Python
finds first is imported, and the other's modules are missing.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

_PACKAGES = ("pipeline", "stages", "jobs")
_BAD_USAGE = 2


def refuse_shadowed() -> None:
    """Raise ImportError, a single line that names the folder; in the command exit with code 2."""
    ours = Path(__file__).resolve().parents[1]
    for name in _PACKAGES:
        place = _place(name)
        if place is not None and place != ours / name:
            line = (
                f"{place} hides gistmill's own package {name!r}; rename it, or start Python from "
                f"another folder and without it in PYTHONPATH"
            )
            if is_command():
                sys.stderr.write(f"gistmill: {line}\n")
                raise SystemExit(_BAD_USAGE)
            raise ImportError(line)


def is_command() -> bool:
    """True in `gistmill` and in `python -m gistmill`."""
    is_module = "-m" in sys.orig_argv[:-1] and sys.argv[0] == "-m"
    if is_module:
        return sys.orig_argv[sys.orig_argv.index("-m") + 1] == "gistmill"
    return Path(sys.argv[0]).name == "gistmill"


def _place(name: str) -> Path | None:
    """The folder or file that `import name` finds, or has found."""
    spec = find_spec(name)
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    return Path(folders[0] if folders else spec.origin or name).resolve()
