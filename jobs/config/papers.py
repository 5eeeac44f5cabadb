"""The papers of methods and corpora: BibTeX entries in `papers.bib` of a `conf` folder, by key."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pipeline.core.errors import UsageError

_ENTRY = re.compile(r"^@\w+\{([^,\s]+),.*?^\}", re.MULTILINE | re.DOTALL)


def papers_of(
    named: Iterable[tuple[str, Sequence[str]]], folders: Sequence[Path]
) -> dict[str, str]:
    """The entries of the papers that are `named`, by key, in that order.

    `named`: the origin of keys (a file or config key), and the keys. `folders`: `conf` folders.
    Raises UsageError for a key without an entry.
    """
    known = _entries(folders)
    found: dict[str, str] = {}
    for who, keys in named:
        for key in keys:
            if key not in known:
                raise UsageError(
                    f"{who}: papers: no entry {key!r} in papers.bib; there are {', '.join(known)}"
                )
            found[key] = known[key]
    return found


def _entries(folders: Sequence[Path]) -> Mapping[str, str]:
    files = [file for folder in folders if (file := folder / "papers.bib").is_file()]
    texts = [file.read_text(encoding="utf-8") for file in files]
    return {found[1]: found[0] for text in texts for found in _ENTRY.finditer(text)}
