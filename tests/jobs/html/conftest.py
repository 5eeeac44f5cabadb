"""The run whose page is opened in a browser, and the page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import succeed
from tests.support.docs.browser import Browser
from tests.support.docs.page_views import METHODS
from tests.support.runs.page_run import finished, write_corpus


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten documents, as intervals need them, with two questions each."""
    folder = tmp_path_factory.mktemp("night")
    write_corpus(folder / "corpus", 10)
    return finished(folder, "engine=extractive", "rater=extractive", methods=METHODS)


@pytest.fixture(scope="module")
def address(warehouse: Path) -> str:
    file = warehouse.parent / "page.html"
    said = succeed("report", f"html={file}", f"warehouse={warehouse}")
    assert said.startswith(f"{file}: run night, 20 questions about 10 documents, ")
    return file.as_uri()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Browser]:
    """The page, as it opens; nothing may have been complained of when the test is over."""
    browser.resize(1280, 800)
    browser.open(address)
    yield browser
    assert browser.complaints() == []
