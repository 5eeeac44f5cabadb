"""`gistmill view`: all runs of a warehouse, one at work live."""

import json
from contextlib import closing
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
from tests.support.command import refused
from tests.support.docs.browser import Browser
from tests.support.docs.page_views import BM25
from tests.support.runs.finished_run import FinishedRun
from tests.support.runs.page_run import finished, write_corpus


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse of two runs of ten documents: `night`, and `day`, the last, by another method."""
    folder = tmp_path_factory.mktemp("two")
    write_corpus(folder / "corpus", 10)
    for run, method in (("night", BM25), ("day", "bm25(top_k=2)")):
        words = (f"run={run}", "engine=extractive", "rater=none")
        finished(folder, *words, methods=f"{method},full_text")
    return folder / "warehouse"


def read(site: Site, path: str) -> Any:
    reply = site.get(path)
    assert reply is not None, path
    return opened(reply[1])


@pytest.mark.slow
def test_every_run_has_its_page_and_a_mistake_ends_the_command(two: Path) -> None:
    with closing(Site(ReadOptions(UPath(two)), "night")) as site:
        runs = read(site, "data/runs")
        assert [(row["run"], row["path"], row["state"]) for row in runs] == [
            ("day", "run/day/", "complete"), ("night", "", "complete")
        ]  # fmt: skip
        for row, method in zip(runs, ("bm25(top_k=2)", BM25), strict=True):
            report = read(site, f"{row['path']}data/index")["report"]
            assert report["run"] == row["run"]
            assert {of["method"] for of in report["rows"]} == {method, "full_text"}
    for mistake, says in (
        ("where=nosuch = 1", "nosuch"), ("columns=nosuch", "nosuch"), ("run=week", "day, night")
    ):  # fmt: skip
        assert says in refused("view", f"warehouse={two}", "port=0", mistake)


@pytest.mark.slow
def test_a_run_at_work_says_how_far_it_is(tmp_path: Path) -> None:
    warehouse = FinishedRun(tmp_path).warehouse
    night = RunFolder(warehouse, "night")
    with closing(Site(ReadOptions(UPath(warehouse)), "night")) as site:
        assert read(site, "data/state")["is_running"] is False
        with Progress(4, lambda state: night.write_progress("now", state)) as progress:
            progress.start("reading", 1, 10.0)
            night.write_progress("now", progress.state())
            write_json(night.path / "alive" / "w.json", {"launch": "now", "worker": "w"})
        state = read(site, "data/state")
        assert (state["is_running"], state["workers"]) == (True, 1)
        assert state["text"].startswith("reading 0%")
        before = read(site, "data/index")
        assert read(site, "data/fresh") == "night"
        assert read(site, "data/index") == before


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
def test_a_served_page_paints_within_a_second_and_shows_all_runs(
    browser: Browser, two: Path
) -> None:
    with Served(two) as served:
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
        assert browser.complaints() == []
        # What could not be fetched is asked for again.
        browser.run("window.kept = fetch; window.fetch = () => Promise.reject(new Error('gone'))")
        browser.go("#question=v1-m3")
        assert browser.texts("main .note") == ["gone"]
        browser.run("window.fetch = window.kept")
        browser.go("#view=documents")
        browser.go("#question=v1-m3")
        assert browser.texts("main h2")[0] == "v1-m3"
        assert len(browser.complaints()) == 1


@pytest.mark.browser
def test_a_page_goes_on_following_until_the_server_has_ended(browser: Browser, two: Path) -> None:
    live = "await watchRun(); return document.getElementById('live').textContent"
    at_work = "At work: half Show what is new"

    def told(fails: dict[str, str]) -> str:
        """What it says where these addresses cannot be read; what comes then is in `timer`."""
        browser.run(f"window.fails = {json.dumps(fails)}; window.timer = null")
        return str(browser.run(live))

    with Served(two) as served:
        browser.open(served.address)
        browser.run(ANSWERS)
        assert told({"data/state": "disk is full"}) == "Not read: disk is full"
        assert browser.run("return window.timer[0] === watchRun")
        assert told({"data/fresh": "torn"}) == at_work
        browser.run("document.querySelector('#live button').click()")
        browser.wait("return document.getElementById('live').textContent === 'Not read: torn'")
        assert browser.run(live) == f"{at_work} Not read: torn"
        browser.run("window.fails = {}; await showNew()")
        assert browser.run(live) == at_work
        assert told({"data/state": "gone"}) == "The server has ended; what is open stays."
        assert browser.run("return window.timer") is None
