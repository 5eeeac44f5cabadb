"""The picture of docs/architecture.md has the folders and floors of test_imports.py."""

import re

from tests.repo.test_imports import FLOORS
from tests.support.docs.pages import blocks

PACKAGES = ("jobs", "stages", "pipeline")
_ROW = re.compile(r'^ {4}\w+\["([^"]*)"\]$', re.MULTILINE)


def floors_of(package: str) -> list[set[str]]:
    """Its folders floor by floor, the highest first; a folder in a folder counts as the outer."""
    highest = {
        name.split(".")[1]: floor
        for floor, names in enumerate(FLOORS)
        for name in names
        if name.startswith(f"{package}.")
    }
    return [
        {name for name, own in highest.items() if own == floor}
        for floor in sorted({*highest.values()}, reverse=True)
    ]


def drawn(picture: str) -> dict[str, list[set[str]]]:
    """The folders of each package in the picture, row by row from the top."""
    parts = re.findall(r"^  subgraph (\w+)\[.*?\]\n(.*?)^  end$", picture, re.DOTALL | re.MULTILINE)
    return {name: [set(row.split("<br>")) for row in _ROW.findall(part)] for name, part in parts}


def test_the_picture_has_the_floors() -> None:
    picture = blocks("docs/architecture.md", "mermaid")[0]
    assert drawn(picture) == {package: floors_of(package) for package in PACKAGES}
