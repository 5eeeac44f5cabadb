"""The papers that methods are from: BibTeX entries in `papers.bib` of a `conf` folder, by key."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.methods import Method

_ENTRY = re.compile(r"^@\w+\{([^,\s]+),.*?^\}", re.MULTILINE | re.DOTALL)


def papers_of(methods: Iterable[Method], folders: Sequence[Path]) -> dict[str, str]:
    """The entries of the papers that these methods name, by key, in their order.

    `folders`: `conf` folders. Raises UsageError for a key without an entry.
    """
    known = _entries(folders)
    found: dict[str, str] = {}
    for method in methods:
        for key in method.papers:
            if key not in known:
                raise UsageError(
                    f"{method.file}: papers: no entry {key!r} in papers.bib; there are "
                    f"{', '.join(known)}"
                )
            found[key] = known[key]
    return found


def _entries(folders: Sequence[Path]) -> Mapping[str, str]:
    files = [file for folder in folders if (file := folder / "papers.bib").is_file()]
    texts = [file.read_text(encoding="utf-8") for file in files]
    return {found[1]: found[0] for text in texts for found in _ENTRY.finditer(text)}
