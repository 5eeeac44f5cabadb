"""A model is named by all of its content, wherever it lies, and read once for every change."""

import functools
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.core.errors import UsageError
from pipeline.files import model_hash as content_hash_module
from pipeline.files.model_hash import content_hash
from tests.support.command import ROOT

CHUNK = 2**24  # bytes hashed by one thread; files from this size on are cached
BIG = 2 * CHUNK + 1000


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "user-cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def write(file: Path, size: int = BIG, **changed_bytes: int) -> Path:
    """A file of zeros but for one byte at each of the offsets named `at_<offset>`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as opened:
        opened.truncate(size)
        for name, value in changed_bytes.items():
            opened.seek(int(name.removeprefix("at_")))
            opened.write(bytes([value]))
    return file


def model(folder: Path) -> Path:
    write(folder / "model.safetensors")
    (folder / "config.json").write_text('{"model_type": "llama"}')
    return folder


@pytest.fixture(scope="module")
def settled_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model for each test that wants one cached: not those changed less than 2 seconds ago."""
    names = ("unchanged", "changed", "a file in its place", "no home", "torn entry", "no xdg")
    made = {name: model(tmp_path_factory.mktemp("settled") / "model") for name in names}
    time.sleep(2.1)
    return made


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """The names of all files that this process opens within the block."""
    opened = _noted()
    opened.clear()
    yield opened


@functools.cache
def _noted() -> list[str]:
    """The names of all files that this process opens from the first call on."""
    opened: list[str] = []
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
    return opened


@pytest.mark.parametrize("offset", [0, CHUNK - 1, CHUNK, 2 * CHUNK, BIG - 1])
def test_one_byte_anywhere_makes_another_model(tmp_path: Path, offset: int) -> None:
    one = content_hash(model(tmp_path / "one"))
    other = model(tmp_path / "other")
    write(other / "model.safetensors", **{f"at_{offset}": 1})
    assert content_hash(other) != one


@pytest.mark.parametrize("size", [BIG - 1, BIG + 1, 2 * CHUNK, 0])
def test_a_file_that_is_shorter_or_longer_makes_another_model(tmp_path: Path, size: int) -> None:
    one = content_hash(model(tmp_path / "one"))
    other = model(tmp_path / "other")
    write(other / "model.safetensors", size)
    assert content_hash(other) != one


def test_chunks_that_change_places_make_another_model(tmp_path: Path) -> None:
    first = write(tmp_path / "first", at_0=1)
    second = write(tmp_path / "second", **{f"at_{CHUNK}": 1})
    assert content_hash(first) != content_hash(second)


def test_a_copied_and_a_moved_model_are_the_same(tmp_path: Path) -> None:
    folder = model(tmp_path / "model")
    before = content_hash(folder)
    assert len(before) == 16 and int(before, 16)
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    moved = folder.rename(tmp_path / "moved")
    link = tmp_path / "link"
    link.symlink_to(moved)
    assert content_hash(copy) == content_hash(moved) == content_hash(link) == before


def test_a_single_file_is_named_by_its_content_alone(tmp_path: Path) -> None:
    file = write(tmp_path / "model.gguf", 1000)
    before = content_hash(file)
    assert content_hash(file.rename(tmp_path / "renamed.gguf")) == before
    assert content_hash(write(tmp_path / "other.gguf", 1000, at_5=1)) != before


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "merges.txt", "1_Pooling/config.json", "modeling_own.py", "x"]
)
def test_files_that_a_loader_may_read_count_with_their_relative_names(
    tmp_path: Path, name: str
) -> None:
    folder = model(tmp_path / "model")
    before = content_hash(folder)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("same")
    added = content_hash(folder)
    (folder / name).rename((folder / name).with_name("renamed"))
    renamed = content_hash(folder)
    (folder / name).with_name("renamed").write_text("edit")
    assert len({before, added, renamed, content_hash(folder)}) == 4


@pytest.mark.parametrize(
    "name", ["README.md", "LICENSE", "NOTICE.txt", "plot.PNG", ".gitattributes", ".cache/a/b.json",
             "__pycache__/modeling.pyc"],
)  # fmt: skip
def test_documentation_and_hidden_files_do_not_count(tmp_path: Path, name: str) -> None:
    folder = model(tmp_path / "model")
    before = content_hash(folder)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("about the model")
    assert content_hash(folder) == before


def test_files_and_folders_behind_links_count(tmp_path: Path) -> None:
    """As Hugging Face's cache keeps them: a folder of links to files named by their hash."""
    blobs = model(tmp_path / "blobs")
    (blobs / "1_Pooling").mkdir()
    (blobs / "1_Pooling" / "config.json").write_text("{}")
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for name in ("config.json", "model.safetensors", "1_Pooling"):
        (snapshot / name).symlink_to(blobs / name)
    before = content_hash(snapshot)
    assert before == content_hash(blobs)
    (blobs / "1_Pooling" / "config.json").write_text('{"mean": true}')
    assert content_hash(snapshot) == content_hash(blobs) != before


@pytest.mark.slow
def test_an_unchanged_large_file_is_read_once_by_all_processes(
    settled_models: dict[str, Path], cache: Path
) -> None:
    folder = settled_models["unchanged"]
    weights, config = str(folder / "model.safetensors"), str(folder / "config.json")
    with opened_files() as opened:
        first = content_hash(folder)
        assert opened.count(weights) == 3  # chunks
        opened.clear()
        assert content_hash(folder) == first
        assert weights not in opened
        assert config in opened, "small files are read every time"
    # That another process takes the hash from the cache shows once the cache holds a wrong one.
    (kept,) = entries(cache)
    assert in_another_process(folder) == first
    kept.write_text("0" * 64)
    assert in_another_process(folder) not in (first, "")


def entries(cache: Path) -> list[Path]:
    return [file for file in cache.rglob("*") if file.is_file()]


def in_another_process(folder: Path) -> str:
    code = "from pathlib import Path; from pipeline.files.model_hash import content_hash\n"
    code += f"print(content_hash(Path({str(folder)!r})))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout.strip()


def test_a_changed_file_is_noticed_even_with_its_old_time_and_size(
    settled_models: dict[str, Path],
) -> None:
    folder = settled_models["changed"]
    weights = folder / "model.safetensors"
    before, stat = content_hash(folder), weights.stat()
    with weights.open("r+b") as opened:  # in place: the same inode
        opened.seek(CHUNK + 5)
        opened.write(b"x")
    os.utime(weights, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    now = weights.stat()
    assert (now.st_ino, now.st_size, now.st_mtime_ns) == (
        stat.st_ino, stat.st_size, stat.st_mtime_ns,
    )  # fmt: skip
    assert content_hash(folder) != before


def test_a_file_that_has_just_changed_is_not_cached(tmp_path: Path, cache: Path) -> None:
    content_hash(model(tmp_path / "model"))
    assert entries(cache) == []


@pytest.mark.parametrize("wrong", ["a file in its place", "no home", "torn entry"])
def test_without_a_usable_cache_folder_the_content_is_read(
    settled_models: dict[str, Path],
    tmp_path: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    wrong: str,
) -> None:
    folder = settled_models[wrong]
    expected = content_hash(Path(shutil.copytree(folder, tmp_path / "copy")))
    if wrong == "a file in its place":  # no user, root included, can make a folder in a file
        shutil.rmtree(cache, ignore_errors=True)
        cache.write_text("")
    elif wrong == "no home":
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        monkeypatch.setattr(Path, "home", _no_home)
    else:
        content_hash(folder)
        (kept,) = entries(cache)
        kept.write_text("0123")
        assert in_another_process(folder) == expected
    assert content_hash(folder) == expected
    with opened_files() as opened:
        assert content_hash(folder) == expected
        assert str(folder / "model.safetensors") not in opened, "this process remembers"
    assert not (Path.cwd() / "relative").exists()


def _no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")  # as pathlib says it


def test_without_xdg_the_cache_is_in_the_users_home(
    settled_models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    content_hash(settled_models["no xdg"])
    assert entries(tmp_path / "home" / ".cache" / "gistmill")


def test_a_link_to_nothing_is_no_file(tmp_path: Path) -> None:
    folder = model(tmp_path / "model")
    before = content_hash(folder)
    (folder / "gone").symlink_to(folder / "nowhere")
    assert content_hash(folder) == before


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Permissions do not stop root: what stops everybody is that no more files may be open."""
    file = write(tmp_path / "model.gguf", 10)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    next_free = os.open(file, os.O_RDONLY)
    os.close(next_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_free, hard))
    try:
        with pytest.raises(UsageError) as caught:
            content_hash(file)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert str(caught.value).startswith(f"{file}: Too many open files; make it readable")


def test_a_command_that_reads_for_long_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = model(tmp_path / "model")
    content_hash(folder)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(content_hash_module, "_SILENT_SECONDS", 0.0)
    content_hash(folder)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"gistmill: hashing all files of {folder}")
