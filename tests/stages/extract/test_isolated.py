"""The process that extracts texts: what crashes it, or takes too long, costs one file."""

import os
from pathlib import Path

import pytest

from stages.extract import isolated
from stages.extract.extracted import UnreadableError
from stages.extract.isolated import Extractor
from tests.support.command import ROOT
from tests.support.texts.documents import epub, pdf, word

BOOK = epub({"a.xhtml": "<p>A</p>"})


def unreadable(extractor: Extractor, kind: str, content: bytes) -> str:
    with pytest.raises(UnreadableError) as caught:
        extractor.extract(kind, content)
    return str(caught.value)


def test_what_raises_dies_or_takes_too_long_costs_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.core.registry._FOLDERS", {})  # of other tests, and gone
    with Extractor() as extractor:
        assert unreadable(extractor, "no such kind", b"").startswith("damaged (KeyError: ")
        assert unreadable(extractor, "pdf", b"x").startswith("damaged, or no PDF (")
        assert extractor.extract("epub", BOOK).text == "A"
        assert extractor._process
        extractor._process.kill()  # as the kernel does where memory ends
        said = unreadable(extractor, "epub", BOOK)
        assert said.startswith("its process ended with exit code -9, ")
        assert extractor.extract("epub", BOOK).text == "A"
        with monkeypatch.context() as hasty:
            hasty.setattr(isolated, "_SECONDS", 1e-6)
            said = unreadable(extractor, "pdf", pdf(["One."]))
        assert said == "not read within 0 s; fix or delete it"
        assert extractor.extract("epub", BOOK).text == "A"


PLUGIN = """
from gistmill.plugin import Extracted, extractor

class Text(str): ...

@extractor("odd")
def odd(content: bytes) -> Extracted:
    \"\"\"A text of a class of its own.\"\"\"
    return Extracted(Text("A"), metadata={"by": Text} if content else {})
"""


def test_a_plugin_may_return_objects_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd.py").write_text(PLUGIN)
    monkeypatch.setattr(isolated, "loaded_folders", lambda: [tmp_path])
    with Extractor() as process:
        assert process.extract("odd", b"").text == "A"
        assert unreadable(process, "odd", b"x").startswith("damaged (TypeError: ")


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
