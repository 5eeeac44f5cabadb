"""Measure the time that a browser takes to open the HTML page of a run of 10,000 questions."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.figures import Bar, Figure, figure_with_bar, figure_without_bar
from jobs.config.options import ReadOptions
from jobs.config.run_config import RunConfig
from jobs.graph.resolved_run import resolve
from jobs.html.page_file import write_page
from jobs.run.launch import run
from pipeline.core.errors import AccountingError, UsageError
from pipeline.files.place import as_path

WORDS = (
    "corpus.num_documents=100", "corpus.questions=100", "corpus=synthetic", "corpus.words=3000",
    "corpus.skew=0.0", "memory=uniform", "methods=gist_only", "rater=none",
)  # fmt: skip
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_AT_MOST: tuple[Bar, float] = ("at most", 3)  # seconds
_TIME_LIMIT = 120  # seconds
_SETTLED = 20_000  # ms of the page's own clock, which does not run while the page works


def page(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Seconds that headless Chromium takes for the overview of the page, beyond those for an empty
    one; and the size of the file. Raises UsageError if there is no Chromium, AccountingError if the
    run is not complete or a page is not drawn."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        raise UsageError(f"page needs a browser: install one of {', '.join(_BROWSERS)}")
    config = config.model_copy(update={"warehouse": str(folder / "warehouse")})
    done = run(resolve(config), lambda line: None)
    if done.exit_code:
        raise AccountingError(f"the run is not complete: {'; '.join(done.complaints)}")
    made = write_page(ReadOptions(as_path(folder / "warehouse")), folder / "run.html")
    (folder / "empty.html").write_text("<p>empty</p>", encoding="utf-8")
    took = []
    for _ in range(pairs):
        empty = _seconds(browser, folder / "empty.html", "empty")
        full = _seconds(browser, Path(made.file), f"{made.questions:,} question")
        took.append(full - empty)
    return [
        figure_without_bar("page", "questions", [made.questions]),
        figure_without_bar("page", "MB of the file", [made.bytes / 1e6]),
        figure_with_bar("page", "seconds to open it", took, _AT_MOST),
    ]


def _seconds(browser: str, file: Path, says: str) -> float:
    """The seconds for the browser to start, draw the page, and end. Raises AccountingError if the
    page does not contain the text `says`."""
    with tempfile.TemporaryDirectory() as profile:
        # Without a sandbox, as it does not start for root otherwise: the page is our own.
        command = [browser, "--headless=new", "--no-sandbox", f"--user-data-dir={profile}",
                   f"--virtual-time-budget={_SETTLED}", "--dump-dom", file.as_uri()]  # fmt: skip
        began = time.perf_counter()
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIME_LIMIT)
        except subprocess.TimeoutExpired:
            why = f"the browser did not end within {_TIME_LIMIT} s"
            raise AccountingError(f"{file.name}: {why}") from None
        took = time.perf_counter() - began
    if says not in done.stdout:
        raise AccountingError(f"{file.name}: the browser does not show {says!r}")
    return took
