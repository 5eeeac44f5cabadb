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


OF_FAULTS = (
    "chaos/test_*.py", "faults/test_faults.py", "faults/test_resume.py",
    "faults/test_faulty_runs.py", "faults/test_journal_run.py", "faults/test_flaky_s3.py",
    "faults/test_flipped_bits.py",
)  # fmt: skip


def names_in(pattern: str) -> set[str]:
    files = (ROOT / "tests").glob(pattern)
    return {
        name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.M)
    }


def test_the_table_of_faults_names_the_tests_that_show_it() -> None:
    """Each row has some, that are there; and each test of a fault is in a row."""
    table = [line for line in page("docs/faults.md").splitlines() if line.startswith("| ")][1:]
    by_row = [set(re.findall(r"`(test_\w+)`", row)) for row in table]
    assert len(table) > 25 and all(by_row)
    named = set[str]().union(*by_row)
    assert named - names_in("**/test_*.py") == set()
    of_faults = set[str]().union(*map(names_in, OF_FAULTS))
    assert len(of_faults) > 30 and of_faults - named == set()


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
