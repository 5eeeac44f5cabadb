"""A model is named by all of its content, wherever it lies, and read once for every change."""

import errno
import os
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import Mock, patch

import pytest

from pipeline.core.errors import UsageError
from pipeline.files import model_hash
from pipeline.files.model_hash import cache_content, content_hash

CHUNK = 2**24  # bytes hashed by one thread; files from this size on are cached
BIG = 2 * CHUNK + 1000


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "user-cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def write(file: Path, size: int = BIG, at: int | None = None) -> Path:
    """A file of zeros but for one byte, if `at` is an offset."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as opened:
        opened.truncate(size)
        if at is not None:
            opened.seek(at)
            opened.write(b"1")
    return file


def model(folder: Path) -> Path:
    write(folder / "model.safetensors")
    (folder / "config.json").write_text('{"model_type": "llama"}')
    return folder


REFUSE = Mock(side_effect=OSError(errno.EACCES, "Permission denied"))
CHANGES: list[Callable[[Path], object]] = [
    *(partial(write, at=at) for at in (0, CHUNK - 1, CHUNK, BIG - 1)),
    *(partial(write, size=size) for size in (0, 2 * CHUNK, BIG - 1, BIG + 1)),
    lambda weights: write(weights.with_name("x"), 3),  # another file
    lambda weights: write(weights.with_name("1_Pooling") / "x", 3),  # another folder
    lambda weights: weights.rename(weights.with_name("other.safetensors")),
]


def test_each_change_makes_another_model(tmp_path: Path) -> None:
    hashes = {content_hash(model(tmp_path / "as it was"))}
    for number, change in enumerate(CHANGES):
        change(model(tmp_path / str(number)) / "model.safetensors")
        hashes.add(content_hash(tmp_path / str(number)))
    assert len(hashes) == 1 + len(CHANGES)


def test_what_no_loader_reads_does_not_count(tmp_path: Path) -> None:
    folder = model(tmp_path / "model")
    before = content_hash(folder)
    (folder / "a link to nothing").symlink_to(folder / "nowhere")
    for name in ("README.md", "LICENSE", "NOTICE.txt", "plot.PNG", ".gitattributes",
                 ".cache/a/b.json", "__pycache__/modeling.pyc"):  # fmt: skip
        write(folder / name, 10)
        assert content_hash(folder) == before, name


def test_a_copied_and_a_moved_model_are_the_same(tmp_path: Path) -> None:
    """Behind links, too, as Hugging Face's cache keeps them; a file's name does not count."""
    folder = model(tmp_path / "model")
    write(folder / "1_Pooling" / "config.json", 10)
    before = content_hash(folder)
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    moved = folder.rename(tmp_path / "moved")
    links = tmp_path / "links"
    links.mkdir()
    for name in ("config.json", "model.safetensors", "1_Pooling"):
        (links / name).symlink_to(moved / name)
    assert content_hash(copy) == content_hash(moved) == content_hash(links) == before
    write(moved / "1_Pooling" / "config.json", 10, at=5)
    assert content_hash(links) == content_hash(moved) != before
    file = write(tmp_path / "one.gguf", 99)
    assert content_hash(file) == content_hash(file.rename(tmp_path / "x.gguf"))


def test_an_unchanged_large_file_is_read_once_by_all_processes(tmp_path: Path, cache: Path) -> None:
    """Which shows once the cache holds a wrong hash."""
    folder = model(tmp_path / "model")
    first = content_hash(folder)
    (cached,) = cache.glob("gistmill/*/*")
    cached.write_text("0" * 64)
    assert content_hash(folder) == first, "this process remembers"
    model_hash._hashes_of_this_process.clear()
    assert content_hash(folder) != first
    cached.unlink()
    assert content_hash(folder) == first
    (folder / "config.json").write_text("{}")
    assert content_hash(folder) != first, "small files are read every time"


def test_a_changed_file_is_noticed_even_with_its_old_time_and_size(tmp_path: Path) -> None:
    weights = model(tmp_path / "model") / "model.safetensors"
    before, stat = content_hash(weights.parent), weights.stat()
    time.sleep(0.05)  # longer than the clock of the file system takes to go on
    with weights.open("r+b") as opened:  # in place: the same inode
        opened.write(b"x")
    os.utime(weights, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert content_hash(weights.parent) != before


def test_a_long_reading_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = model(tmp_path / "model")
    content_hash(folder)
    assert capsys.readouterr().err == ""
    with patch.object(model_hash, "_SILENT_SECONDS", 0.0):
        content_hash(folder)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"gistmill: hashing all files of {folder}")


@pytest.mark.parametrize("wrong", ["a file in its place", "no home"])
def test_without_a_usable_cache_folder_this_process_remembers(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """So that the large file is not even opened again."""
    folder = tmp_path / "model"
    write(folder / "model.safetensors")
    if wrong == "a file in its place":  # no user, root included, can make a folder in a file
        cache.write_text("")
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError("no home")))
    expected = content_hash(folder)
    monkeypatch.setattr(Path, "open", REFUSE)
    assert content_hash(folder) == expected
    assert not (Path.cwd() / "relative").exists()


def test_without_xdg_the_cache_is_in_the_users_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    content_hash(write(tmp_path / "model.gguf"))
    assert [*(tmp_path / "home" / ".cache" / "gistmill").glob("*/*")]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "model.gguf", 10)
    refused = pytest.raises(UsageError, match=f"^{file}: Permission denied; make it readable")
    with patch.object(Path, "open", REFUSE), refused:
        content_hash(file)


def test_what_is_older_than_thirty_days_is_deleted(cache: Path) -> None:
    folder = cache / "gistmill" / "texts"
    ages = {"recent": 29, "old": 31, "sub/old": 31, "../others/old": 31}
    for name, days in ages.items():
        then = time.time() - days * 24 * 3600.0
        os.utime(write(folder / name, 4), (then, then))
    cache_content("texts", "new", b"text")
    assert {file.name for file in folder.iterdir()} == {"recent", "new", "sub"}
    assert (folder / "../others/old").exists(), "of a kind of which nothing was kept now"
