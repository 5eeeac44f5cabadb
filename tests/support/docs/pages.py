"""The README and the pages of docs: the commands they show, and what those are said to print."""

import re
from dataclasses import dataclass, field

from tests.support.command import ROOT

README = "README.md"
GENERATED = "docs/schema.md"  # by `gistmill schema --markdown`, with a test of its own
# Titles of blocks that no test runs, with what a reader has to have for them.
NEEDS = {
    "needs a GPU", "needs a server", "needs a cluster", "needs a download", "needs a notebook",
    "needs a file of yours", "takes minutes", "in a clone",
}  # fmt: skip
_FENCE = re.compile(r'(?ms)^( *)```(\w*)(?: title="([^"\n]*)")?\n(.*?)^\1```$')
_PRINTED = re.compile(r"(?ms)^<!-- printed -->\n(.*?)^<!-- end of printed -->$")


@dataclass(frozen=True)
class Fence:
    """A block of code. `title` says what it needs; empty: it runs anywhere."""

    language: str
    title: str
    code: str
    start: int


@dataclass
class Command:
    """A block of commands that runs here, and the parts of its output that the page shows."""

    code: str
    printed: list[str] = field(default_factory=list)


def page(name: str) -> str:
    """The text of a page, named by its path in the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def pages() -> list[str]:
    """The README and every page of docs that is written by hand."""
    found = sorted(file.relative_to(ROOT).as_posix() for file in (ROOT / "docs").rglob("*.md"))
    return [README, *(name for name in found if name != GENERATED)]


def fences(text: str) -> list[Fence]:
    """Its blocks of code, in their order."""
    return [Fence(m[2], m[3] or "", m[4], m.start()) for m in _FENCE.finditer(text)]


def blocks(name: str, language: str) -> list[str]:
    """The code of a page's blocks in one language, whatever they need."""
    return [fence.code for fence in fences(page(name)) if fence.language == language]


def commands(text: str) -> list[Command]:
    """The blocks of commands that run here; each with what is shown between it and the next one:
    blocks in the language `text`, and whatever is marked as printed."""
    marked = [Fence("text", "", match[1], match.start()) for match in _PRINTED.finditer(text)]
    found: list[Command] = []
    for fence in sorted([*fences(text), *marked], key=lambda fence: fence.start):
        if fence.language == "sh" and not fence.title:
            found.append(Command(fence.code))
        elif fence.language == "text":
            assert found, f"printed by no command:\n{fence.code}"
            found[-1].printed.append(fence.code)
    return found
