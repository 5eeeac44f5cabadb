"""The page of a finished run in headless Chromium, from a file."""

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlencode

import pytest
import yaml

import gistmill as library
from tests.support.command import sql_values, succeed
from tests.support.docs.browser import Browser
from tests.support.runs.page_run import finished, write_corpus

pytestmark = pytest.mark.browser

READAGENT, BM25 = "readagent_p(max_pages=2)", "bm25(top_k=1)"
METHODS = (
    f"{READAGENT},{BM25},memwalker(segment_tokens=60,max_children=2),"
    "memorag(memory=gist_memory,memory_fit=split,retriever=bm25)"
)
WIDTHS = (1280, 390)
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]  # of axe's rules
_NULLS = (  # texts that are a value which should have been left out
    "return [...document.querySelectorAll('main *')].flatMap((e) => [...e.childNodes])"
    ".filter((n) => n.nodeType === 3 && ['null', 'undefined', 'false'].includes(n.data)).length"
)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten documents, as intervals need them, with two questions each."""
    folder = tmp_path_factory.mktemp("night")
    write_corpus(folder / "corpus", 10)
    return finished(folder, "rater=extractive", methods=METHODS)


def question(name: str, method: str, **others: str) -> str:
    """The view of a question by a method on the left, alone unless `others` say more."""
    return "#" + urlencode({"question": name, "method": method, "with": "none", **others})


def named(page: Browser, beginning: str) -> str:
    """The method whose name, as one types it, begins so; of the overview."""
    titles = page.run("return [...document.querySelectorAll('th a')].map((e) => e.title)")
    (found,) = {str(name) for name in titles if name.startswith(beginning)}
    return found


def page_of(warehouse: Path) -> Path:
    file = warehouse.parent / "page.html"
    if not file.exists():
        succeed("report", f"html={file}", f"warehouse={warehouse}")
    return file


@pytest.fixture
def page(browser: Browser, warehouse: Path) -> Iterator[Browser]:
    """The page, as it opens; nothing may have been complained of when the test is over."""
    browser.resize(1280, 800)
    browser.open(page_of(warehouse).as_uri())
    yield browser
    assert browser.complaints() == []


@pytest.mark.parametrize("width", WIDTHS)
def test_no_view_is_wider_than_the_window(page: Browser, width: int) -> None:
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


# The overview.


def test_the_scores_are_those_of_the_report_and_sorted_by_number(
    page: Browser, warehouse: Path
) -> None:
    query = f"select avg(value) from measures where measure = 'accuracy' and method = '{BM25}'"
    ((accuracy,),) = sql_values(warehouse, query)
    cells = page.run(
        "const rows = [...document.querySelectorAll('table tbody tr')];"
        f"const row = rows.find((row) => row.querySelector('a')?.title === '{BM25}');"
        "return [...row.cells].map((cell) => cell.innerText)"
    )
    assert cells[0] == "BM25", "the only one of its name, as a paper prints it"
    mean, interval = cells[page.texts("table .sort").index("Accuracy")].split("\n")
    assert mean.split()[0] == f"{accuracy:.1f}"
    low, high = interval.split("–")
    assert float(low) <= accuracy <= float(high)

    column = page.texts(".scores .sort").index("Words read")

    def shown() -> list[float]:
        texts = page.texts(f".scores tbody td:nth-child({column + 1})")[:4]
        return [float(text.replace(",", "")) for text in texts]

    values = shown()
    assert values != sorted(values)
    for sorted_by in ("ascending", "descending"):
        page.all(".scores .sort")[column].click()
        page.wait(f"return document.querySelector('th[aria-sort={sorted_by}]') !== null")
        assert shown() == sorted(values, reverse=sorted_by == "descending")


def test_score_against_tokens_is_drawn_for_the_chosen_score(page: Browser) -> None:
    assert len(page.all(".drawn svg g.method")) == 4
    measures = page.texts("#filter-score option")
    assert page.texts(".drawn svg title")[0].startswith(f"night: {measures[0]} against tokens")
    second = page.run("return document.querySelector('#filter-score').options[1].value")
    page.choose("score", second)
    assert page.texts(".drawn svg title")[0].startswith(f"night: {measures[1]} against tokens")


def test_differences_are_those_of_compare(page: Browser, warehouse: Path) -> None:
    measure, heading = page.run(
        "const option = document.querySelector('#filter-score').options[0];"
        "return [option.value, option.textContent]"
    )
    page.run(f"location.hash = linkWith({{ baseline: {READAGENT!r} }})")
    page.wait(f"return document.querySelector('#filter-baseline').value === {READAGENT!r}")
    said = succeed("compare", READAGENT, f"metric={measure}", f"warehouse={warehouse}", "--json")
    wanted = {row["b"]["method"]: row for row in json.loads(said)["rows"]}
    shown = page.run(  # by the method's whole name
        "return Object.fromEntries([...document.querySelectorAll('.forest tbody tr')].map((row) => "
        "[row.querySelector('[title]').title, [...row.cells].map((cell) => cell.innerText)]))"
    )
    assert {*shown} == {*wanted} and heading in page.texts(".forest figcaption")[0]
    for method, (_, difference, _, p, won) in shown.items():
        figures = wanted[method]["figures"]  # of the baseline minus the method
        numbers = re.split(r"\n| to ", difference.replace("−", "-"))
        mean, low, high = (float(number) for number in numbers)
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
    browser.resize(1280, 800)
    browser.open(page_of(planted).as_uri())
    yield browser
    assert browser.complaints() == []


def test_findings_about_replies_and_causes_stand_once(failed: Browser, planted: Path) -> None:
    report = json.loads(succeed("report", "--json", f"warehouse={planted}"))
    assert failed.texts(".findings li") == report["findings"] != []
    found, documents = failed.run(
        "const { causes, documents } = await load('index'); return [causes, documents]"
    )
    causes = {(cause["stage"], cause["problem"]): cause for cause in found}
    assert len(causes) == len(found)
    assert "upstream" not in {problem for _, problem in causes}
    gist = causes["gist", "engine_failed"]
    assert [documents[number]["document_id"] for number in gist["documents"]] == ["village-2"]
    ((failures,),) = sql_values(planted, "select count(*) from gists where problem is not null")
    after = " union all ".join(
        f"select 1 from {table} where problem = 'upstream' and question_id like 'v2-%'"
        for table in ("lookups", "answers", "scores")
    )
    ((num_after,),) = sql_values(planted, f"select count(*) from ({after})")
    assert (gist["num_rows"], gist["num_after"]) == (failures, num_after)


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


# Lists and a document.


def test_filters(page: Browser, warehouse: Path) -> None:
    page.go("#view=questions")
    assert len(page.all("tbody tr")) == 20
    page.choose("type", "who")
    assert {text.split()[0][-3:] for text in page.texts("tbody th")} == {"-m7"}
    page.choose("score", "accuracy")
    page.choose("method", BM25)
    page.choose("outcome", "right")
    query = ("select question_id from scores where metric = 'accuracy' and value = 100 "
             f"and method = '{BM25}' order by all")  # fmt: skip
    listed = sorted(text.split()[0] for text in page.texts("tbody th"))
    assert listed == [name for (name,) in sql_values(warehouse, query)]


def test_search_sort_and_page_are_in_the_address(page: Browser) -> None:
    page.go("#view=questions")
    page.all("input[type=search]")[0].send_keys('"month 3"')
    page.wait("return document.querySelectorAll('tbody tr').length === 10")
    page.all(".sort")[0].click()
    page.all(".sort")[0].click()
    address = page.run("return location.hash")
    shown_rows = page.texts("tbody th")
    assert shown_rows == sorted(shown_rows, reverse=True)
    page.go("#view=documents")
    page.driver.back()
    page.wait("return document.querySelectorAll('tbody th').length === 10")
    assert page.run("return location.hash") == address
    assert page.texts("tbody th") == shown_rows
    assert page.run("return document.querySelector('input[type=search]').value") == '"month 3"'


def test_a_document_has_contents_and_leads_to_its_evidence(page: Browser, warehouse: Path) -> None:
    page.go("#document=village-3&evidence=v3-m7&at=first")
    pages = sql_values(warehouse, "select page_index, text from pages where memory = 'shared' and "
                       "document_id = 'village-3' order by page_index")  # fmt: skip
    assert page.texts(".pages-list b") == [str(index) for index, _ in pages]
    marked = page.run(
        "return [...document.querySelectorAll('.page')].filter((one) => "
        "one.querySelector('mark.evidence')).map((one) => one.id)"
    )
    assert page.texts(".contents > p .to-page") == [name.rpartition("-")[2] for name in marked]
    _, top, _, _ = place(page, "mark.evidence")
    assert 0 <= top < 800, "the evidence is in the window"


def test_the_calls_that_made_a_page_stand_with_it(page: Browser, warehouse: Path) -> None:
    page.go("#document=village-2")
    page.unfold("section.page > details")
    page.unfold("section.page details.call")
    prompts = [message["content"]
               for call in library.sent(warehouse, "night", document="village-2")
               if call["memory"] == "shared" for message in call["messages"]]  # fmt: skip
    assert page.texts("section.page pre.prompt") == prompts
    query = ("select text from pages where memory = 'shared' and document_id = 'village-2' "
             "order by page_index")  # fmt: skip
    assert [(t,) for t in page.texts("section.page .page-text")] == sql_values(warehouse, query)


# A question.


def place(page: Browser, css: str) -> list[float]:
    """Where the first such element is: left, top, right and bottom, in pixels of the window."""
    box = f"const box = document.querySelector({css!r}).getBoundingClientRect();"
    return list(page.run(f"{box} return [box.left, box.top, box.right, box.bottom]"))


def test_a_question_is_one_screen(page: Browser) -> None:
    page.go(question("v1-m3", READAGENT, **{"with": BM25}))
    assert page.run("return document.scrollingElement.scrollHeight <= innerHeight")
    for css in (".question", ".references", ".map", ".answer", ".answer + .answer", ".panel"):
        left, top, right, bottom = place(page, css)
        assert 0 <= left < right <= 1280 and 0 <= top < bottom <= 800, css
    assert page.texts(".answer h3 .badge") and page.texts(".lane-result .badge")
    page.resize(390, 844)
    page.go(question("v1-m3", READAGENT, **{"with": BM25, "tab": "calls"}))
    assert page.overflow() == 0


def test_the_pages_that_readagent_read_are_open_and_evidence_is_marked(
    page: Browser, warehouse: Path
) -> None:
    ((read,),) = sql_values(warehouse, "select page_indexes from answers where question_id = "
                            f"'v1-m7' and method = '{READAGENT}'")  # fmt: skip
    page.go(question("v1-m7", READAGENT, tab="memory"))
    assert page.texts("section.page.read .page-head b") == [f"Page {index}" for index in read]
    rows = sql_values(
        warehouse,
        "select text, gist from pages join gists using (document_id, page_index, memory) "
        "where document_id = 'village-1' and memory = 'shared' order by page_index",
    )
    assert page.texts("section.page.read .text") == [rows[index][0] for index in read]
    gists = [gist for index, (_, gist) in enumerate(rows) if index not in read]
    assert page.texts("section.page:not(.read) .text") == gists
    evidence = "".join(page.texts("section.page mark.evidence"))
    assert evidence == "In month 7 of year 1901, the miller"
    assert "miller" in page.texts("section.page mark.word"), "the option it chose"


def test_a_walk_says_its_visits_and_where_the_evidence_was(page: Browser, warehouse: Path) -> None:
    method = named(page, "memwalker")
    visits = sql_values(warehouse, "select turn, node_index from visits where "
                        f"question_id = 'v1-m7' and method = '{method}' order by turn")  # fmt: skip
    nodes = sql_values(warehouse, "select node_index from nodes where document_id = 'village-1'")
    page.go(question("v1-m7", method, tab="walk"))
    assert page.texts(".walk .step b") == [f"{turn}. node {node}" for turn, node in visits]
    (said,) = page.texts(".pane h3 + p")
    assert f"{len({node for _, node in visits})} nodes visited of {len(nodes)}" in said
    assert "evidence in" in said
    assert page.texts(".walk .step .badge.evidence"), "where the evidence was passed over"


@pytest.mark.parametrize("method", [READAGENT, BM25, "memwalker", "memorag"])
def test_every_prompt_is_shown_exactly_as_it_was_sent(
    page: Browser, warehouse: Path, method: str
) -> None:
    method = named(page, method)
    page.go(question("v2-m3", method, tab="calls"))
    sent = [call for call in library.sent(warehouse, "night", question="v2-m3")
            if call["method"] == method]  # fmt: skip
    assert sent
    page.unfold("details.call")
    prompts = [message["content"] for call in sent for message in call["messages"]]
    assert page.texts(".calls pre.prompt") == prompts
    assert page.texts(".calls pre.reply") == [call["reply"] or "(empty)" for call in sent]
    shown = " ".join(page.texts("details.call p"))
    assert all(call["request_sha"] in shown for call in sent)


def test_next_and_previous_keep_the_filter_the_pins_and_the_tab(page: Browser) -> None:
    page.go("#view=questions&type=who&sort=-1")
    listed = [text.split()[0] for text in page.texts("tbody th")]
    page.all("tbody th a")[0].click()
    page.wait("return document.querySelector('.question-view') !== null")
    assert page.texts(".about h2") == [listed[0]]
    page.run(f"location.hash = linkWith({{ method: {BM25!r}, tab: 'calls' }})")
    page.wait("return document.querySelector('#tab-calls[aria-selected=true]') !== null")
    for name in listed[1:4]:
        page.all("main a[rel=next]")[0].click()
        page.wait(f"return document.querySelector('.about h2').textContent === '{name}'")
        assert page.texts("[role=tab][aria-selected=true]") == ["Calls"]
        assert page.texts(".answer h3")[0].startswith("A BM25")
        assert page.run("return document.title").startswith(f"{name}: ")
        assert page.run("return document.activeElement.tagName") == "H2"
    assert "of 10 that the filters leave" in page.texts(".steps a")[1]
    page.driver.back()
    page.wait(f"return document.querySelector('.about h2').textContent === '{listed[2]}'")
