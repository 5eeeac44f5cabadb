"""The docs list all that there is: stages, methods, tables and views."""

import re
import tomllib

import yaml

from pipeline.core.registry import load_plugins
from pipeline.core.settings import CONF
from pipeline.work.stage import STAGES
from tests.support.command import ROOT
from tests.support.docs.pages import GENERATED, page


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
    cited = yaml.safe_load(page("CITATION.cff"))
    project = tomllib.loads(page("pyproject.toml"))["project"]
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert cited["cff-version"] == "1.2.0"
    assert (cited["version"], cited["license"]) == (project["version"], project["license"])
    assert [author["name"] for author in cited["authors"]] == [
        author["name"] for author in project["authors"]
    ]
    assert (ROOT / "LICENSE").read_text().split("\n")[1].strip() == "Apache License"
