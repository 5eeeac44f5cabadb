"""The page of a question in headless Chromium: one screen that says what was asked, what each
method read and answered, and what led to that."""

from pathlib import Path

import pytest

import gistmill as library
from tests.support.command import sql
from tests.support.docs.browser import Browser
from tests.support.docs.page_views import BM25, READAGENT, named, question

pytestmark = pytest.mark.browser


def test_the_pages_that_readagent_read_are_open_and_evidence_is_marked(
    page: Browser, warehouse: Path
) -> None:
    (answer,) = sql(warehouse, "select page_indexes from answers where question_id = 'v1-m7' "
                    f"and method = '{READAGENT}'")  # fmt: skip
    page.go(question("v1-m7", READAGENT, tab="memory"))
    shown = page.texts("section.page.read .page-head b")
    assert shown == [f"Page {index}" for index in answer["page_indexes"]]
    texts = sql(warehouse, "select text from pages where memory = 'shared' and "
                "document_id = 'village-1' order by page_index")  # fmt: skip
    assert page.texts("section.page.read .text") == [
        texts[index]["text"] for index in answer["page_indexes"]
    ]
    gists = sql(
        warehouse,
        "select gist from gists where document_id = 'village-1' "
        f"and page_index not in {tuple(answer['page_indexes'])} order by page_index",
    )
    assert page.texts("section.page:not(.read) .text") == [row["gist"] for row in gists]
    assert (
        "".join(page.texts("section.page mark.evidence")) == "In month 7 of year 1901, the miller"
    )
    assert "miller" in page.texts("section.page mark.word"), "the option it chose"


def test_a_walk_is_drawn_as_its_tree(page: Browser, warehouse: Path) -> None:
    method = named(page, "memwalker")
    visits = sql(warehouse, "select node_index, turn from visits where "
                 f"question_id = 'v1-m7' and method = '{method}' order by turn")  # fmt: skip
    nodes = [row["node_index"] for row in sql(
        warehouse, "select node_index from nodes where document_id = 'village-1'")]  # fmt: skip
    page.go(question("v1-m7", method, tab="walk"))
    drawn = page.run(
        "return [...document.querySelectorAll('.walk-tree g')].map((g) => [Number(g.dataset.node), "
        "g.getAttribute('class'), g.querySelector('text')?.textContent ?? ''])"
    )
    turns: dict[int, list[str]] = {}
    for visit in visits:
        turns.setdefault(visit["node_index"], []).append(str(visit["turn"]))
    assert drawn == [
        [n, "visited" if n in turns else "passed", ", ".join(turns.get(n, []))] for n in nodes
    ]
    assert page.texts(".walk .step .badge.evidence"), "where the evidence was passed over"


def test_a_document_has_contents_a_search_and_leads_to_its_evidence(
    page: Browser, warehouse: Path
) -> None:
    page.go("#document=village-3&evidence=v3-m7&at=first")
    pages = sql(warehouse, "select page_index, text from pages where memory = 'shared' and "
                "document_id = 'village-3' order by page_index")  # fmt: skip
    assert page.texts(".pages-list b") == [str(row["page_index"]) for row in pages]
    marked = page.run(
        "return [...document.querySelectorAll('.page')].filter((one) => "
        "one.querySelector('mark.evidence')).map((one) => one.id)"
    )
    assert page.texts(".contents > p .to-page") == [name.rpartition("-")[2] for name in marked]
    box = page.run(
        "return document.querySelector('mark.evidence').getBoundingClientRect().toJSON()"
    )
    assert 0 <= box["top"] < 800, "the evidence is in the window"
    (field,) = page.all("input[type=search]")
    field.send_keys("FERRY of")
    wanted = [str(row["page_index"]) for row in pages if "ferry of" in row["text"].lower()]
    page.wait("return document.querySelector('.contents [role=status]').textContent !== ''")
    shown = page.run(
        "return [...document.querySelectorAll('.pages-list li')].filter((li) => !li.hidden)"
        ".map((li) => li.querySelector('b').textContent)"
    )
    assert shown == wanted and 0 < len(wanted) < len(pages)


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


def shown(page: Browser, css: str) -> list[float]:
    """Where the first such element is: left, top, right and bottom, in pixels of the window."""
    return [
        float(side)
        for side in page.run(
            f"const box = document.querySelector({css!r}).getBoundingClientRect();"
            "return [box.left, box.top, box.right, box.bottom]"
        )
    ]


def test_a_question_is_one_screen(page: Browser) -> None:
    page.go(question("v1-m3", READAGENT, **{"with": BM25}))
    assert page.run("return document.scrollingElement.scrollHeight <= innerHeight")
    for css in (".question", ".references", ".map", ".answer", ".answer + .answer", ".panel"):
        left, top, right, bottom = shown(page, css)
        assert 0 <= left < right <= 1280 and 0 <= top < bottom <= 800, css
    assert page.texts(".answer h3 .badge") and page.texts(".lane-result .badge")
    page.resize(390, 844)
    page.go(question("v1-m3", READAGENT, **{"with": BM25, "tab": "calls"}))
    assert page.overflow() == 0


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
