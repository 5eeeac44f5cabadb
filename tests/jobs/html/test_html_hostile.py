"""Nothing in a corpus, a reply or a name runs in the page or changes more than its own text."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.jobs.html.test_html import Served
from tests.support.command import succeed
from tests.support.docs.browser import Browser
from tests.support.runs.page_run import finished
from tests.support.texts.small_corpus import write

pytestmark = [pytest.mark.browser, pytest.mark.sampled]

NASTY = (
    '</script><script>window.ran = 1</script><img src=x onerror="window.ran = 2"> &lt;b&gt; '
    "<svg onload=window.ran=3> <a href='javascript:window.ran=4'>x</a> <!-- <style>*{color:red} "
    "{{ 7 * 7 }} ${window.ran = 5} \u202eturned\u202c \U0001f600 \x1b[31m"
)
METHODS = (
    "readagent_p(max_pages=1),readagent_p_conditional(task=<img src=x onerror=window.ran=6>),"
    "memwalker(segment_tokens=40,max_children=2),"
    "memorag(memory=gist_memory,memory_fit=split,retriever=bm25)"
)


def nasty(name: str) -> str:
    return f"{name} {NASTY}"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    text = "\n\n".join(f"{nasty(f'paragraph {n}')} and {'word ' * 20}{n}." for n in range(6))
    start = text.index("paragraph 2")
    write(folder / "corpus",
          [{"document_id": nasty("document"), "title": nasty("title"), "text": text,
            "metadata": {"note": NASTY}}],
          [{"document_id": nasty("document"), "question_id": nasty(f"q{n}"),
            "question_type": nasty("type"), "question": nasty(f"question {n}"),
            "options": [nasty("right"), nasty("wrong")] if n else [],
            "answer_index": 0 if n else None, "references": [] if n else [nasty("reference")],
            "evidence": [{"start_char": start, "end_char": start + len(NASTY)}]}
           for n in range(2)])  # fmt: skip
    script = folder / "script.yaml"
    rules = [{"prompt": "look_up_p", "reply": f"[1] {NASTY}"},
             {"prompt": "triage", "reply": f"Reasoning: {NASTY}\nAction: 0"},
             {"reply": f"<think>{nasty('thought')}</think>{nasty('reply')}"}]  # fmt: skip
    script.write_text(yaml.safe_dump({"replies": rules}))
    return finished(folder, "engine=scripted", f"engine.script={script}", "rater=reader",
                    "max_problem_rate=1.0", methods=METHODS)  # fmt: skip


@pytest.fixture(scope="module", params=["file", "served"])
def address(request: pytest.FixtureRequest, warehouse: Path) -> Iterator[str]:
    if request.param == "file":
        file = warehouse.parent / "page.html"
        succeed("report", f"html={file}", f"warehouse={warehouse}")
        yield file.as_uri()
        return
    with Served(warehouse) as served:
        yield served.address


def views(page: Browser) -> list[str]:
    """Every kind of view, and the question by every method."""

    def linked(css: str) -> list[str]:
        links = [str(link.get_attribute("href")) for link in page.all(css)]
        return [link[link.index("#") :] for link in links]

    page.go("#view=questions")
    page.go(linked("tbody a")[0])
    tabs = ("memory", "walk", "calls")
    of_question = [f"{method}&tab={tab}" for method in linked(".lane-name .name") for tab in tabs]
    page.go("#view=documents")
    return ["#", "#view=questions", *of_question, *linked("tbody a")]


def test_nothing_runs_and_texts_stand_as_they_are(browser: Browser, address: str) -> None:
    browser.resize(1280)
    browser.open(address)
    seen = views(browser)
    assert len(seen) == 3 + 3 * 4, seen
    scripts = browser.run("return document.scripts.length")
    for view in seen[1:]:
        browser.go(view)
        browser.unfold("main details")
        assert browser.all("main img, main script, main style, main iframe, main svg[onload]") == []
        assert browser.all("main a[href^='javascript:']") == []
    browser.go("#view=questions")
    (first, _) = browser.texts("tbody th a")
    assert first == f"{nasty('q0')} {nasty('question 0')}"
    (search,) = browser.all("input[type=search]")
    search.send_keys("<img src=x onerror=window.ran=7>")
    browser.wait("return document.querySelectorAll('tbody tr').length === 1")

    clues, *_ = (view for view in seen if "method=memorag" in view and "tab=memory" in view)
    browser.go(f"{clues}&with=none")
    assert browser.texts("main h2")[0] == nasty("q0")
    assert browser.texts("p.question") == [nasty("question 0")]
    evidence = "".join(browser.texts("section.page mark.evidence"))
    assert evidence == nasty("paragraph 2")[: len(NASTY)]
    browser.go(clues.replace("tab=memory", "tab=calls"))
    browser.unfold("details.call")
    assert nasty("reply") in browser.texts("pre.reply")
    assert nasty("thought") in browser.texts("pre.thinking")
    assert any(nasty("question 0") in text for text in browser.texts("pre.prompt"))
    assert browser.run("return window.ran") is None
    assert browser.run("return document.scripts.length") == scripts
    assert browser.complaints() == []
