"""The front matter of Markdown; and texts of files that were extracted before: not again, until
content or code is another."""

from datetime import date
from pathlib import Path

import pytest
from upath import UPath

from stages.corpora.own import text_files
from stages.corpora.own.text_files import text_of_file, without_front_matter
from stages.extract.extracted import EXTRACTORS, Extracted
from stages.extract.isolated import Extractor
from tests.support.texts.known_documents import known_documents


def test_it_is_the_metadata() -> None:
    text = "---\ntitle: The Tower\ntags: [oil, sea]\ndate: 1893-05-01\n1: x\n---\n\n# Tower\n"
    assert without_front_matter(text) == Extracted(
        "# Tower\n",
        metadata={"title": "The Tower", "tags": ["oil", "sea"], "date": date(1893, 5, 1), "1": "x"},
    )
    assert without_front_matter("---\na: {2024-01-01: .nan}\n...") == Extracted(
        "", metadata={"a": {"2024-01-01": "nan"}}
    )


@pytest.mark.parametrize(
    "text",
    [
        "# Tower\n",
        "---\na: [\n---\nText",
        "---\na: 1\nand no end",
        "---\na: &a [x]\nb: [*a, *a]\n---\nText",  # what is repeated unfolds to any size
        "---\n- a\n---\nText",
        "---\na: !!python/object:os.system x\n---\nText",
        "---\n---\nText",
    ],
)
def test_what_is_none(text: str) -> None:
    assert without_front_matter(text) == Extracted(text)


REPORT = next(known for known in known_documents() if known.name == "report.pdf")


class Counting(Extractor):
    """Counts the files that it extracts."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: list[str] = []

    def extract(self, kind: str, content: bytes) -> Extracted:
        self.kinds.append(kind)
        return super().extract(kind, content)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gistmill" / "texts"


@pytest.fixture
def file(tmp_path: Path) -> UPath:
    (tmp_path / "report.pdf").write_bytes(REPORT.content)
    return UPath(tmp_path / "report.pdf")


def test_a_file_is_extracted_once(cache: Path, file: UPath) -> None:
    with Counting() as extractor:
        first = text_of_file(file, extractor)
        other = file.rename(file.parent / "other.pdf")
        assert text_of_file(other, extractor) == first
        assert extractor.kinds == ["pdf"]
    assert cache.stat().st_mode & 0o077 == 0, "nobody else may read it"


@pytest.mark.parametrize("change", ["content", "code", "damage", "deleted"])
def test_it_is_extracted_again(
    cache: Path, file: UPath, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    with Counting() as extractor:
        first = text_of_file(file, extractor)
        (entry,) = cache.iterdir()
        if change == "content":
            file.write_bytes(REPORT.content + b"\n")
        elif change == "code":
            monkeypatch.setattr(text_files, "_code", lambda: "another")
        elif change == "damage":
            entry.write_bytes(entry.read_bytes()[:-9])
        else:
            entry.unlink()
        assert text_of_file(file, extractor) == first
        assert extractor.kinds == ["pdf", "pdf"]


def test_what_a_plugin_extracts_is_not_kept(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def subtitles(content: bytes) -> Extracted:
        return Extracted(content.decode())

    monkeypatch.setitem(EXTRACTORS, "srt", subtitles)
    monkeypatch.setattr(Extractor, "extract", lambda _, kind, content: EXTRACTORS[kind](content))
    (tmp_path / "film.srt").write_text("a line")
    assert text_of_file(UPath(tmp_path / "film.srt"), Extractor()).text == "a line"
    assert not cache.exists()
