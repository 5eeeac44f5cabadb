"""The overview in headless Chromium: differences to a baseline, and the causes of what failed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.command import sql, succeed
from tests.support.docs.browser import Browser
from tests.support.docs.page_views import BM25, READAGENT
from tests.support.runs.page_run import finished, write_corpus

pytestmark = pytest.mark.browser


def forest(page: Browser) -> dict[str, list[str]]:
    """The rows of the picture of differences, by the method's whole name."""
    rows: list[list[str]] = page.run(
        "return [...document.querySelectorAll('.forest tbody tr')].map((row) => "
        "[row.querySelector('[title]').title, ...[...row.cells].map((cell) => cell.innerText)])"
    )
    return {name: cells for name, *cells in rows}


def signed(text: str) -> float:
    return float(text.replace("−", "-"))


def test_differences_are_those_of_compare(page: Browser, warehouse: Path) -> None:
    measure, heading = page.run(
        "const option = document.querySelector('#filter-score').options[0];"
        "return [option.value, option.textContent]"
    )
    page.run(f"location.hash = linkWith({{ baseline: {READAGENT!r} }})")
    page.wait(f"return document.querySelector('#filter-baseline').value === {READAGENT!r}")
    said = succeed("compare", READAGENT, f"metric={measure}", f"warehouse={warehouse}", "--json")
    wanted = {row["b"]["method"]: row for row in json.loads(said)["rows"]}
    shown = forest(page)
    assert {*shown} == {*wanted} and heading in page.texts(".forest figcaption")[0]
    for method, (_, difference, _, p, won) in shown.items():
        figures = wanted[method]["figures"]  # of the baseline minus the method
        mean, low, high = (signed(text) for text in re.split(r"\n| to ", difference))
        assert mean == pytest.approx(-figures["difference"], abs=0.051)
        assert (low, high) == pytest.approx((-figures["high"], -figures["low"]), abs=0.051)
        assert float(p.strip("<")) == pytest.approx(wanted[method]["p_holm"], rel=0.05, abs=1e-3)
        assert won == f"{figures['losses']}–{figures['wins']}"


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose gists of village 2 fail, and whose look-ups for month 7 cannot be read."""
    folder = tmp_path_factory.mktemp("planted")
    write_corpus(folder / "corpus", 4)
    rules = [
        {"prompt": "gist", "match": "village 2", "reply": "", "finish_reason": "abort"},
        {"prompt": "gist", "reply": "A short gist."},
        {"prompt": "look_up_p", "match": "month 7", "reply": "nonsense without pages"},
        {"prompt": "look_up_p", "reply": "[1]"},
        {"reply": "Option (B)"},
    ]
    script = folder / "script.yaml"
    script.write_text(yaml.safe_dump({"replies": rules}))
    return finished(folder, "engine=scripted", f"engine.script={script}", "rater=none",
                    "max_problem_rate=1.0", methods=f"{READAGENT},gist_only,{BM25}")  # fmt: skip


@pytest.fixture
def failed(browser: Browser, planted: Path) -> Iterator[Browser]:
    file = planted.parent / "page.html"
    if not file.exists():
        succeed("report", f"html={file}", f"warehouse={planted}")
    browser.resize(1280, 800)
    browser.open(file.as_uri())
    yield browser
    assert browser.complaints() == []


def test_findings_about_replies_and_causes_with_all_that_they_reached_stand_once(
    failed: Browser, planted: Path
) -> None:
    report = json.loads(succeed("report", "--json", f"warehouse={planted}"))
    assert failed.texts(".findings li") == report["findings"] != []
    causes = failed.run("return (await load('index')).causes")
    assert "upstream" not in [cause["problem"] for cause in causes]
    by_name = {(cause["stage"], cause["problem"]): cause for cause in causes}
    assert len(by_name) == len(causes)
    gist = by_name["gist", "engine_failed"]
    (failures,) = sql(planted, "select count(*) as n from gists where problem is not null")
    after = sum(
        sql(planted, f"select count(*) as n from {table} where problem = 'upstream' and "
            "question_id like 'v2-%'")[0]["n"]
        for table in ("lookups", "answers", "scores")
    )  # fmt: skip
    assert (gist["num_rows"], gist["num_after"]) == (failures["n"], after)
    documents = failed.run("return (await load('index')).documents")
    assert [documents[n]["document_id"] for n in gist["documents"]] == ["village-2"]


@pytest.mark.parametrize(
    ("stage", "asked", "said"),
    [("gist", {"v2-m3", "v2-m7"}, "engine_failed"),
     ("look_up", {"v0-m7", "v1-m7", "v3-m7"}, "unparseable")],
)  # fmt: skip
def test_three_clicks_lead_from_the_run_to_what_failed(
    failed: Browser, stage: str, asked: set[str], said: str
) -> None:
    """A cause, one of the questions that it reached, and what was asked and replied there."""

    def click(css: str, then: str) -> None:
        failed.wait(f"return document.querySelector({css!r}) !== null")
        failed.run(f"document.querySelector({css!r}).click()")
        failed.wait(f"return document.querySelector({then!r}) !== null")

    rows = failed.run(
        "const found = [...document.querySelectorAll('table')].find((one) => "
        "one.caption.textContent === 'Causes of problems');"
        "return [...found.tBodies[0].rows].map((row) => [...row.cells].map((c) => c.textContent))"
    )
    problem = next(row[0] for row in rows if row[1] == stage)
    number = failed.run(
        f"return (await load('index')).causes.findIndex((one) => one.stage === '{stage}')"
    )
    assert problem.replace(" ", "_") == said
    click(f"main a[href*='cause={number}']", "body[data-view=list] tbody a")
    assert {text.split()[0] for text in failed.texts("tbody th")} == asked, "not '0 of 5'"
    click("tbody a", ".question-view")
    assert said in failed.texts(".answer h3")[0]
    click("#tab-walk", "#tab-walk[aria-selected=true]")
    assert said in failed.texts("#panel")[0]
