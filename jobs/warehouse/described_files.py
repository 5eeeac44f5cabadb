"""The YAML files of `conf`, ours and those of plugins, as `gistmill schema` prints them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs.graph.read_run import GROUPS
from jobs.output.cells import Part, Verbatim

Rows = list[dict[str, Any]]


def conf_files(folders: Sequence[Path]) -> Rows:
    """A row per method, family and choice of a config group in these folders: name, kind, file."""
    return [
        {"name": name, "is": kind, "file": str(file)}
        for folder in folders
        for kind, name, file in _files(folder)
    ]


def _files(folder: Path) -> Iterator[tuple[str, str, Path]]:
    for group in ("method", *GROUPS):
        yield from ((group, file.stem, file) for file in sorted(folder.glob(f"{group}/*.yaml")))
    families = sorted(folder.glob("prompts/*/family.yaml"))
    yield from (("family", file.parent.name, file) for file in families)


def described_files(files: Rows, name: str) -> Rows:
    """The rows of the files of this name, with their text."""
    own = [row for row in files if row["name"] == name]
    return [{**row, "text": Path(row["file"]).read_text(encoding="utf-8")} for row in own]


def file_parts(found: Mapping[str, Any]) -> Iterator[Part]:
    """One line, then the file's text."""
    yield f"{found['name']}, {found['is']} of {found['file']}:"
    yield Verbatim(found["text"])
