"""`gistmill view`: all runs of a warehouse, one at work live."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from jobs.config.options import ReadOptions
from jobs.html.serve import Site
from jobs.run.progress import Progress
from pipeline.files.storage import write_json
from pipeline.store.runs.run_folder import RunFolder
from tests.jobs.html.test_html import Served, opened
from tests.support.command import refused, succeed
from tests.support.docs.browser import Browser
from tests.support.docs.page_views import BM25
from tests.support.runs.page_run import finished, write_corpus

METHODS = f"{BM25},full_text"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse of two runs of ten documents: `night`, and `day`, the last, by another method."""
    folder = tmp_path_factory.mktemp("two")
    write_corpus(folder / "corpus", 10)
    warehouse = finished(folder, "engine=extractive", methods=METHODS)
    succeed("run", "corpus=tables", f"corpus.path={folder / 'corpus'}", "engine=extractive",
            "methods=bm25(top_k=2),full_text", "memory=uniform", "memory.words=30", "rater=none",
            "run=day", "cluster=inline", f"warehouse={warehouse}")  # fmt: skip
    return warehouse


@contextmanager
def site_of(warehouse: Path, run: str) -> Iterator[Site]:
    made = Site(ReadOptions(UPath(warehouse)), run)
    try:
        yield made
    finally:
        made.close()


def read(site: Site, path: str) -> Any:
    found = site.get(path)
    assert found is not None, path
    return opened(found[1])


@pytest.mark.slow
def test_every_run_has_its_page(two: Path) -> None:
    with site_of(two, "night") as site:
        runs = read(site, "data/runs")
        assert [(row["run"], row["path"], row["state"]) for row in runs] == [
            ("day", "run/day/", "complete"), ("night", "", "complete")
        ]  # fmt: skip
        methods = {}
        for row in runs:
            index = read(site, f"{row['path']}data/index")
            assert index["report"]["run"] == row["run"]
            methods[row["run"]] = {of["method"] for of in index["report"]["rows"]}
        assert methods == {"night": {BM25, "full_text"}, "day": {"bm25(top_k=2)", "full_text"}}


@pytest.mark.slow
def test_other_paths_have_nothing(two: Path) -> None:
    others = ("run/nosuch/", "run/nosuch/data/index", "run/day", "run/", "run/../",
              "run/..%2Fnight/", "run/day/data/against-9-night", "run/day/data/against-x-night",
              "data/question-0-night")  # fmt: skip
    with site_of(two, "night") as site:
        assert {path for path in others if site.get(path) is not None} == set()


@pytest.mark.slow
def test_a_run_at_work_says_how_far_it_is(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", 1)
    warehouse = finished(tmp_path, "engine=extractive", methods=METHODS)
    night = RunFolder(warehouse, "night")
    with site_of(warehouse, "night") as site:
        assert read(site, "data/state")["is_running"] is False
        with Progress(4, lambda state: night.write_progress("now", state)) as progress:
            progress.start("reading", 1, 10.0)
            night.write_progress("now", progress.state())
            write_json(night.path / "alive" / "w.json", {"launch": "now", "worker": "w"})
        found = read(site, "data/state")
        assert (found["is_running"], found["workers"]) == (True, 1)
        assert found["text"].startswith("reading 0%")
        before = read(site, "data/index")
        assert read(site, "data/fresh") == "night"
        assert read(site, "data/index") == before


@pytest.mark.slow
def test_a_mistake_still_ends_the_command(two: Path) -> None:
    assert "nosuch" in refused("view", f"warehouse={two}", "port=0", "where=nosuch = 1")
    assert "it has day, night" in refused("view", f"warehouse={two}", "run=week")
    assert "nosuch" in refused("view", f"warehouse={two}", "port=0", "columns=nosuch")


ANSWERS = """
window.kept = fetch; window.fails = {};
window.fetch = async (address) => {
  const why = window.fails[address];
  if (why === "gone") throw new TypeError("Failed to fetch");
  if (why) return { status: 500, text: async () => why };
  if (address !== "data/state") return window.kept(address);
  const content = { is_running: true, text: "half", workers: 1 };
  return { ok: true, json: async () => ({ content }) };
};
window.setTimeout = (...given) => { window.timer = given; };
"""


@pytest.mark.browser
def test_a_page_goes_on_following_until_the_server_has_ended(browser: Browser, two: Path) -> None:
    served = Served(two)
    try:
        browser.open(served.address)
        live = "await watchRun(); return document.getElementById('live').textContent"
        browser.run(ANSWERS)
        browser.run("window.fails = { 'data/state': 'disk is full' }")
        assert browser.run(live) == "Not read: disk is full"
        assert browser.run("return window.timer[0] === watchRun")
        browser.run("window.fails = { 'data/fresh': 'torn' }; window.timer = null")
        assert browser.run(live) == "At work: half Show what is new"
        browser.run("document.querySelector('#live button').click()")
        browser.wait("return document.getElementById('live').textContent === 'Not read: torn'")
        assert browser.run(live) == "At work: half Show what is new Not read: torn"
        browser.run("window.fails = {}; await showNew()")
        assert browser.run(live) == "At work: half Show what is new"
        browser.run("window.fails = { 'data/state': 'gone' }; window.timer = null")
        assert browser.run(live) == "The server has ended; what is open stays."
        assert browser.run("return window.timer") is None
    finally:
        with suppress(ProcessLookupError):
            served.end()


@pytest.mark.browser
def test_a_served_page_paints_within_a_second_and_follows_its_run(
    browser: Browser, two: Path
) -> None:
    served = Served(two)
    try:
        browser.resize(1280, 800)
        browser.open(served.address)
        paint = browser.run(
            "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
        )
        assert 0 < paint < 1000
        browser.go("#view=runs")
        assert browser.texts("tbody th b") == ["day", "night"]
        browser.go("#baseline=run:night")
        browser.wait("return document.querySelector('.forest') !== null")
        assert browser.texts(".forest tbody th") == ["Full text"]
        assert browser.texts("#live") == [""]
        told = browser.run(
            "window.fetch = async () => ({ ok: true, json: async () => ({ content: { is_running: "
            "true, text: 'reading 40%', workers: 2 } }) }); await watchRun();"
            "return document.getElementById('live').textContent"
        )
        assert told == "At work: reading 40% Show what is new"
        assert browser.complaints() == []
    finally:
        with suppress(ProcessLookupError):
            served.end()
