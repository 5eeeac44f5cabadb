"""The process that extracts texts: what crashes it, or takes too long, costs one file."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer

import pytest

from stages.extract import isolated
from stages.extract.extracted import UnreadableError
from stages.extract.isolated import Extractor
from tests.support.command import ROOT
from tests.support.texts.documents import epub, pdf, word

BOOK = epub({"a.xhtml": "<p>A</p>"})


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    with Extractor() as process:
        yield process


def unreadable(extractor: Extractor, kind: str, content: bytes) -> str:
    with pytest.raises(UnreadableError) as caught:
        extractor.extract(kind, content)
    return str(caught.value)


def test_a_crash_costs_one_file(extractor: Extractor) -> None:
    assert unreadable(extractor, "no such kind", b"").startswith("damaged (")
    assert extractor.extract("epub", BOOK).text == "A"
    assert unreadable(extractor, "pdf", b"x").startswith("damaged, or no PDF (")
    assert extractor.extract("epub", BOOK).text == "A"


def test_a_file_that_takes_too_long_costs_only_itself() -> None:
    with Extractor(seconds=0.01) as hasty:
        said = unreadable(hasty, "pdf", pdf(["One."]))
    assert said == "not read within 0 s; fix or delete it"


def test_a_process_that_others_kill_was_not_late(
    extractor: Extractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kernel does where memory ends."""

    def killed(seconds: float, kill: Callable[[], None]) -> Timer:
        assert extractor._process
        extractor._process.kill()
        return Timer(seconds, kill)

    extractor.extract("epub", BOOK)
    monkeypatch.setattr(isolated, "Timer", killed)
    said = unreadable(extractor, "epub", BOOK)
    assert said.startswith("its process was killed, perhaps for lack of memory; ")


def test_no_code_of_the_current_folder_is_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "zipfile.py").write_text("raise SystemExit('executed')")
    monkeypatch.chdir(tmp_path)
    with Extractor() as process:
        assert process.extract("epub", BOOK).text == "A"


@pytest.mark.parametrize(
    ("kind", "library"), [("pdf", "pypdfium2"), ("docx", "mammoth"), ("html", "html_to_markdown")]
)
def test_a_library_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, library: str
) -> None:
    (tmp_path / f"{library}.py").write_text(f"raise ModuleNotFoundError(name='{library}')")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    with Extractor() as extractor:
        said = unreadable(extractor, kind, word("One.") if kind == "docx" else pdf(["One."]))
    assert said.startswith(f"needs {library}, which is not installed; pip install ")
