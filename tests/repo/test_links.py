"""Every relative link and anchor of README, CONTRIBUTING, CHANGELOG and docs leads somewhere."""

import re
from pathlib import Path

import pytest

from tests.support.command import ROOT
from tests.support.docs.pages import markdown_files

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^( *)```.*?^\1```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_ELSEWHERE = re.compile(r"[a-z]+:")


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    found: set[str] = set()
    fenced = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
    for heading in re.findall(r"^#+ (.*)$", fenced.sub("", text), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        again = sum(1 for one in found if re.fullmatch(rf"{re.escape(slug)}(-\d+)?", one))
        found.add(f"{slug}-{again}" if again else slug)
    return found


def dead(file: Path) -> list[str]:
    """The links of a page that lead nowhere, as they are written."""
    links = _LINK.findall(_CODE.sub("", file.read_text(encoding="utf-8")))
    return [link for link in links if not _ELSEWHERE.match(link) and _is_dead(file, link)]


def _is_dead(file: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = file.parent / path if path else file
    if not target.exists() or path.startswith("/"):
        return True
    return bool(anchor) and anchor not in anchors(target.read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", markdown_files(), ids=lambda f: f.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(file: Path) -> None:
    assert dead(file) == []
