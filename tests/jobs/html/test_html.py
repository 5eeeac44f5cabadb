"""The page of a run without a browser; and `gistmill view`: all runs of a warehouse."""

import base64
import gzip
import hashlib
import http.client
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from upath import UPath

from jobs.config.options import ReadOptions
from jobs.html.run_page import Source, compressed_chunk, with_line_numbers, write_page
from jobs.html.serve import Site
from jobs.run.progress import Progress
from pipeline.files.storage import write_json
from pipeline.store.runs.run_folder import RunFolder
from tests.support.command import ROOT, refused, succeed
from tests.support.docs.browser import Browser
from tests.support.runs.finished_run import FinishedRun
from tests.support.runs.page_run import finished, write_corpus


@pytest.fixture(scope="module")
def page(night: FinishedRun) -> str:
    file = night.small.folder / "page.html"
    shown = json.loads(succeed("report", f"html={file}", f"warehouse={night.warehouse}", "--json"))
    assert shown["questions"] == 3
    assert shown["bytes"] == file.stat().st_size
    return file.read_text(encoding="utf-8")


def chunk(page: str, name: str) -> Any:
    (text,) = re.findall(f'<script type="application/json" id="data-{name}">"(.*?)"</script>', page)
    return opened(base64.b64decode(text))


def opened(chunk: bytes) -> Any:
    """The content of a chunk, unpacked as data.js does it."""
    packed = json.loads(gzip.decompress(chunk))

    def unpacked(value: Any) -> Any:
        if isinstance(value, list):
            return [unpacked(inner) for inner in value]
        if isinstance(value, dict) and isinstance(value.get("$"), list):
            return "\n".join(packed["lines"][index] for index in value["$"])
        if isinstance(value, dict):
            return {key: unpacked(inner) for key, inner in value.items()}
        return value

    return unpacked(packed["content"]) if "lines" in packed else packed["content"]


def test_long_texts_come_back_and_equal_lines_stand_once() -> None:
    shared = "a line of the memory that all prompts repeat " * 9
    content = {"a": [f"{shared}\nfirst\n\n", f"{shared}\r\nsecond"], "b": {"c": shared, "d": None},
               "$": {"$": {}}}  # fmt: skip
    packed = with_line_numbers(content)
    assert opened(compressed_chunk(packed)) == content
    assert packed["lines"].count(shared) == 1
    values = {"x": float("nan"), "s": "\ud800"}
    assert opened(compressed_chunk({"content": values})) == {"x": None, "s": "\ud800"}


def test_only_our_scripts_may_run_and_nothing_is_loaded(page: str) -> None:
    (policy,) = re.findall('Content-Security-Policy" content="(.*?)"', page)
    policy = policy.replace("&#39;", "'")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    scripts = re.findall(r"<script(?: type=\"module\" async)?>(.*?)</script>", page, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    assert rules["script-src"] == " ".join(f"'sha256-{digest}'" for digest in hashes)
    assert rules["default-src"] == rules["connect-src"] == rules["base-uri"] == "'none'"
    assert "unsafe" not in policy
    assert not re.search(r"<(link|img|iframe|base|object)\b", page[: page.index("<script")])
    assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|\beval\(", "".join(scripts))


@pytest.mark.slow
def test_a_subset_of_the_questions_and_an_older_page(
    night: FinishedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older page is replaced by a whole one, and stays if that is interrupted."""
    file = tmp_path / "some.html"
    file.write_text("older")

    def interrupted(source: Source) -> Iterator[tuple[str, bytes]]:
        yield "index", b""
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Source, "chunks", interrupted)
        write_page(ReadOptions(UPath(night.warehouse)), file)
    assert [(path, path.read_text()) for path in tmp_path.iterdir()] == [(file, "older")]
    said = succeed("report", f"html={file}", f"warehouse={night.warehouse}",
                   "where=document_id = 'd1'")  # fmt: skip
    assert said.startswith(f"{file}: run night, 2 questions about 1 document, ")
    html = file.read_text(encoding="utf-8")
    index = chunk(html, "index")
    assert [row["question_id"] for row in index["questions"]] == ["q1", "q2"]
    assert [row["document_id"] for row in index["documents"]] == ["d1"]
    assert len(re.findall('id="data-part-', html)) == 1
    assert [*tmp_path.iterdir()] == [file]


@pytest.mark.slow
def test_rows_of_a_step_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    """Of two that write the same table, the other's are shown."""
    write_corpus(tmp_path / "corpus", 1)
    warehouse = finished(tmp_path, "engine=extractive", methods="bm25(top_k=1),closed_book")
    (step, _) = sorted((warehouse / "steps").glob("answer-*.json"))
    step.write_text("{")
    file = tmp_path / "page.html"
    succeed("report", f"html={file}", f"warehouse={warehouse}")
    (question, _) = chunk(file.read_text(encoding="utf-8"), "part-0")["questions"].values()
    assert [section["table"] for section in question["sections"]].count("answers") == 1


@pytest.mark.slow
def test_mistakes(night: FinishedRun, tmp_path: Path) -> None:
    words = ("report", f"warehouse={night.warehouse}")
    page, nowhere = f"html={tmp_path / 'p.html'}", tmp_path / "no" / "page.html"
    (tmp_path / "folder.html").mkdir()
    for more, told in (
        ([f"html={nowhere}"], f"html={nowhere}: No such file or directory; write it elsewhere"),
        ([f"html={tmp_path / 'folder.html'}"], "Is a directory"),
        (["html=night"], "html=night: write a name that ends in .html"),
        ([page, "--corpus"], "one of them at a time"),
        ([page, "run=day"], "it has night"),
    ):
        assert told in refused(*words, *more)


class Served:
    """A `gistmill view` at work, until the end of its `with` block."""

    def __init__(self, warehouse: Path) -> None:
        command = [sys.executable, "-m", "gistmill", "view", f"warehouse={warehouse}", "port=0"]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        ((self.address, port, self.folder),) = re.findall(
            r"(http://127\.0\.0\.1:(\d+)(/\S+/)) ", line
        )
        self.port = int(port)

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *raised: object) -> None:
        """Ctrl-C, which is no failure."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=60)
        assert (self.process.returncode, errors) == (0, "")

    def get(self, path: str) -> tuple[int, bytes]:
        """The reply to a path within the page's folder, or to a whole one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        address = path if path.startswith("/") else f"{self.folder}{path}"
        connection.request("GET", address)
        reply = connection.getresponse()
        return reply.status, reply.read()

    def json(self, name: str) -> Any:
        status, content = self.get(f"data/{name}")
        assert status == 200, name
        return opened(content)


@pytest.fixture(scope="module")
def served(night: FinishedRun) -> Iterator[Served]:
    with Served(night.warehouse) as started:
        yield started


@pytest.mark.slow
def test_a_served_page_reads_a_question_when_it_is_opened(served: Served, page: str) -> None:
    status, html = served.get("")
    assert status == 200 and b"data-part" not in html
    assert b'<body data-served="view" data-root="">' in html
    assert b"connect-src &#39;self&#39;" in html
    index = chunk(page, "index")
    assert served.json("index")["questions"] == index["questions"]
    shown = served.json("question-2")["questions"]
    in_file = chunk(page, f"part-{index['question_parts'][2]}")["questions"]
    assert shown == {"q3": in_file["q3"]}
    assert served.json("document-0")["document"]["document_id"] == "d1"
    assert served.json("measure-0") == chunk(page, "measure-0")


@pytest.mark.parametrize(
    "path",
    ["data/question-3", "data/question--1", "data/", "data/part-0", "data/../index", "index.html",
     "/etc/passwd", "data/index?x=1", "data/document-%30", "data/question-0-night",
     "data/against-9-night", "run/nosuch/data/index", "run/night", "run/../", "run/..%2Fnight/"],
)  # fmt: skip
def test_other_paths_are_not_there(served: Served, path: str) -> None:
    assert served.get(f"{served.folder}{path}")[0] == 404
    assert served.get(f"/{path}")[0] == 404, "nor without the address that was printed"


@pytest.mark.slow
def test_what_cannot_be_read_any_more_is_said(night: FinishedRun, tmp_path: Path) -> None:
    warehouse = night.copied(tmp_path)
    with Served(warehouse) as served:
        served.json("index")  # the run is read
        for shard in (warehouse / "tables" / "calls").rglob("*.parquet"):
            shard.unlink()
        status, why = served.get("data/question-0")
        assert status == 500 and b"tables/calls/" in why and b"\n" not in why
        assert served.get("data/index")[0] == 200


def test_it_listens_to_this_machine_alone(served: Served, night: FinishedRun) -> None:
    connections = psutil.Process(served.process.pid).net_connections("tcp")
    listening = [of for of in connections if of.status == psutil.CONN_LISTEN]
    assert [of.laddr.ip for of in listening] == ["127.0.0.1"]
    assert refused("view", f"warehouse={night.warehouse}", f"port={served.port}") == (
        f"port={served.port}: Address already in use; give another, or 0 for any"
    )


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse of two runs of ten documents: `night`, and `day`, the last, by another method."""
    folder = tmp_path_factory.mktemp("two")
    write_corpus(folder / "corpus", 10)
    for run, top_k in (("night", 1), ("day", 2)):
        finished(folder, f"run={run}", "rater=none", methods=f"bm25(top_k={top_k}),full_text")
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
        for row, method in zip(runs, ("bm25(top_k=2)", "bm25(top_k=1)"), strict=True):
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
        browser.run("window.fails = {}; await showNew()")
        assert browser.run(live) == at_work
        assert told({"data/state": "gone"}) == "The server has ended; what is open stays."
        assert browser.run("return window.timer") is None
