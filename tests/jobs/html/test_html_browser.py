"""The page of a finished run in headless Chromium, from a file; and that axe-core finds nothing in
any of its views, light or dark, wide or narrow."""

import struct
from importlib.resources import files
from itertools import combinations
from pathlib import Path

import pytest

import gistmill as library
from tests.jobs.html.test_html import Served
from tests.support.command import sql, succeed
from tests.support.docs import picture
from tests.support.docs.browser import Browser
from tests.support.docs.page_views import BM25, READAGENT, named, question

pytestmark = pytest.mark.browser

WIDTHS = (1280, 390)
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]  # of axe's rules
_NULLS = (  # texts that are a value which should have been left out
    "return [...document.querySelectorAll('main *')].flatMap((e) => [...e.childNodes])"
    ".filter((n) => n.nodeType === 3 && ['null', 'undefined', 'false'].includes(n.data)).length"
)


def test_the_picture_of_the_readme_can_be_made_again(warehouse: Path, tmp_path: Path) -> None:
    run_page, made = tmp_path / "page.html", tmp_path / "made.png"
    succeed("report", f"html={run_page}", f"warehouse={warehouse}")
    picture.photograph(run_page, made)
    assert picture.PICTURE.stat().st_size < picture.MOST_BYTES
    for file in (made, picture.PICTURE):  # a PNG's first chunk has its width and height
        head = file.read_bytes()[:24]
        assert head.startswith(b"\x89PNG")
        assert struct.unpack(">II", head[16:]) == picture.SIZE


@pytest.mark.parametrize("width", WIDTHS)
def test_no_view_is_wider_than_the_window(page: Browser, width: int, tmp_path: Path) -> None:
    walk, clues = named(page, "memwalker"), named(page, "memorag")
    page.resize(width)
    views = ["", "#view=questions", "#view=documents", "#document=village-3",
             *(question("v1-m3", method, tab=tab) for method in (READAGENT, walk, clues)
               for tab in ("memory", "walk", "calls"))]  # fmt: skip
    for view in views:
        if view:
            page.go(view)
            page.unfold("main details")
        assert page.overflow() == 0, view
        assert page.run(_NULLS) == 0, view
        assert len(page.texts("main .note")) == (0 if view else 1), "that the engine is no model"


def test_the_scores_are_those_of_the_report_with_their_intervals(
    page: Browser, warehouse: Path
) -> None:
    rows = sql(warehouse, "select avg(value) as mean from measures where measure = 'accuracy' "
               f"and method = '{BM25}'")  # fmt: skip
    headings = page.texts("table .sort")
    cells = page.run(
        "const rows = [...document.querySelectorAll('table tbody tr')];"
        f"const row = rows.find((row) => row.querySelector('a')?.title === '{BM25}');"
        "return [...row.cells].map((cell) => cell.innerText)"
    )
    assert cells[0] == "BM25", "the only one of its name, as a paper prints it"
    mean, interval = cells[headings.index("Accuracy")].split("\n")
    assert mean.split()[0] == f"{rows[0]['mean']:.1f}"
    low, high = interval.split("–")
    assert float(low) <= rows[0]["mean"] <= float(high)


def test_a_click_on_a_heading_sorts_by_number(page: Browser) -> None:
    column = page.texts(".scores .sort").index("Words read")
    cells = f".scores tbody td:nth-child({column + 1})"
    values = [float(text.replace(",", "")) for text in page.texts(cells)[:4]]
    assert values != sorted(values)
    heading = page.all(".scores .sort")[column]
    for is_descending in (False, True):
        heading.click()
        sorted_by = "descending" if is_descending else "ascending"
        page.wait(f"return document.querySelector('th[aria-sort={sorted_by}]') !== null")
        found = [float(text.replace(",", "")) for text in page.texts(cells)[:4]]
        assert found == sorted(values, reverse=is_descending)


def test_what_could_not_be_fetched_is_asked_for_again(browser: Browser, warehouse: Path) -> None:
    with Served(warehouse) as served:
        browser.open(served.address)
        browser.run("window.kept = fetch; window.fetch = () => Promise.reject(new Error('gone'))")
        browser.go("#question=v1-m3")
        assert browser.texts("main .note") == ["gone"]
        browser.run("window.fetch = window.kept")
        browser.go("#view=documents")
        browser.go("#question=v1-m3")
        assert browser.texts("main h2")[0] == "v1-m3"
        assert len(browser.complaints()) == 1


def test_score_against_tokens_is_drawn_for_the_chosen_score(page: Browser) -> None:
    assert len(page.all(".drawn svg g.method")) == 4
    heading = page.texts(".drawn svg title")[0]
    measures = page.texts("#filter-score option")
    page.choose(
        "score", page.run("return document.querySelector('#filter-score').options[1].value")
    )
    assert heading.startswith(f"night: {measures[0]} against tokens")
    assert page.texts(".drawn svg title")[0].startswith(f"night: {measures[1]} against tokens")
    boxes = page.run(
        "return [...document.querySelectorAll('.drawn .label')].map((label) => {"
        "const box = label.getBoundingClientRect(); return [box.x, box.y, box.right, box.bottom] })"
    )
    for (x, y, right, bottom), (x2, y2, right2, bottom2) in combinations(boxes, 2):
        assert x >= right2 or x2 >= right or y >= bottom2 or y2 >= bottom, "labels apart"


def test_filters(page: Browser, warehouse: Path) -> None:
    page.go("#view=questions")
    assert len(page.all("tbody tr")) == 20
    page.choose("type", "who")
    assert {text.split()[0][-3:] for text in page.texts("tbody th")} == {"-m7"}
    page.choose("score", "accuracy")
    page.choose("method", BM25)
    page.choose("outcome", "right")
    right = sql(warehouse, "select question_id from scores where metric = 'accuracy' and "
                f"value = 100 and method = '{BM25}' order by all")  # fmt: skip
    assert [text.split()[0] for text in sorted(page.texts("tbody th"))] == [
        row["question_id"] for row in right
    ]


def test_the_calls_that_made_a_page_stand_with_it(page: Browser, warehouse: Path) -> None:
    page.go("#document=village-2")
    page.unfold("section.page > details")
    page.unfold("section.page details.call")
    sent = [call for call in library.sent(warehouse, "night", document="village-2")
            if call["memory"] == "shared"]  # fmt: skip
    assert page.texts("section.page pre.prompt") == [
        message["content"] for call in sent for message in call["messages"]
    ]
    assert page.texts("section.page .page-text") == [
        row["text"] for row in sql(warehouse, "select text from pages where memory = 'shared' "
                                   "and document_id = 'village-2' order by page_index")
    ]  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing(page: Browser, scheme: str, width: int) -> None:
    def emulate(scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    walk = {"with": named(page, "memwalker")}
    emulate(scheme)
    page.resize(width, 800)
    page.run((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    views = ["", "#view=questions&type=who", "#view=documents",
             "#document=village-3&evidence=v3-m7&at=first",
             *(question("v1-m7", READAGENT, **walk, tab=tab)
               for tab in ("evidence", "memory", "walk", "calls", "verdicts")),
             question("v1-m3", BM25), "#question=nosuch"]  # fmt: skip
    violations = {}
    for view in views:
        if view:
            page.go(view)
        page.run("document.querySelectorAll('main details').forEach((part) => part.open = true)")
        violations[view] = page.run(
            f"const found = await axe.run(document, {{runOnly: {TAGS}, "
            "resultTypes: ['violations']}); return found.violations.flatMap((rule) => "
            "rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 200)}`))"
        )
    emulate("light")
    assert violations == {view: [] for view in views}
