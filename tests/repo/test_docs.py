"""The docs list all that there is, and every relative link and anchor leads somewhere."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from pipeline.core.registry import load_plugins
from pipeline.core.settings import CONF
from pipeline.work.stage import STAGES
from tests.support.command import ROOT
from tests.support.docs.pages import GENERATED, page

FILES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
FILES += sorted((ROOT / "docs").rglob("*.md"))
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^( *)```.*?^\1```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def first_cells(text: str) -> set[str]:
    """The names in code in the first column of all tables of a page."""
    rows = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)", row)}


def test_every_stage_and_method_is_in_a_table() -> None:
    load_plugins([])
    ours = {stage.name for stage in STAGES.values() if stage.__module__.startswith("stages.")}
    methods = {file.stem for file in (CONF / "method").glob("*.yaml")}
    assert len(ours) > 10 and len(methods) > 20
    assert first_cells(page("docs/methods/index.md")) == ours | methods


def test_every_table_and_view_is_in_the_cookbook() -> None:
    names = set(re.findall(r"^### (\w+)$", page(GENERATED), re.MULTILINE))
    assert len(names) > 40
    assert first_cells(page("docs/sql.md")) == names


def test_the_citation_is_of_this_version() -> None:
    cited, project = yaml.safe_load(page("CITATION.cff")), tomllib.loads(page("pyproject.toml"))
    for key in ("version", "license"):
        assert cited[key] == project["project"][key]


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    found: set[str] = set()
    fenced = r"(?ms)^```.*?^```$"
    for heading in re.findall(r"^#+ (.*)$", re.sub(fenced, "", text), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        again = sum(1 for one in found if re.fullmatch(rf"{re.escape(slug)}(-\d+)?", one))
        found.add(f"{slug}-{again}" if again else slug)
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(file: Path) -> None:
    links = _LINK.findall(_CODE.sub("", file.read_text(encoding="utf-8")))
    for link in (link for link in links if not re.match("[a-z]+:", link)):
        path, _, anchor = link.partition("#")
        target = file.parent / path if path else file
        assert target.exists() and not path.startswith("/"), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link
