"""`gistmill plugin new`: the folder of each kind, whose own test passes and can fail; what it
refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.command import ROOT, refused, succeed

FILES = {  # of each kind, beside mine/test_mine.py
    "method": {"mine.py", "conf/method/mine.yaml"},
    "metric": {"mine.py", "conf/prompts/mine/family.yaml"},
    "engine": {"mine.py", "conf/engine/mine.yaml", "conf/rater/mine.yaml"},
    "judge": {"mine.py", "conf/prompts/mine/family.yaml", "conf/prompts/mine/judge_mine.jinja"},
    "corpus": {"mine.py", "conf/corpus/mine.yaml", "sample.tsv"},
    "family": {"conf/prompts/mine/family.yaml", "conf/prompts/mine/gist.jinja"},
}
CHANGES = {  # of each kind: a file, what is replaced and by what, so that its test fails
    "method": ("mine.py", "in pages", "in reversed(pages)"),
    "metric": ("mine.py", "answer[:1].lower() ==", "answer[:1].lower() !="),
    "engine": ("mine.py", "Rivers rise.", "Rivers fall."),
    "judge": ("mine.py", "return self", "return not self"),
    "corpus": ("mine.py", "(reference,)", "(asked,)"),
    "family": ("conf/prompts/mine/gist.jinja", "Write down", "Tell"),
}


def made(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    found = json.loads(succeed("plugin", "new", "mine", f"--{kind}", "--json"))["files"]
    assert {*found} == {f"mine/{file}" for file in {*FILES[kind], "test_mine.py"}}
    return folder / "mine"


def own_test(plugin: Path) -> "CompletedProcess[str]":
    """`pytest mine`, from the folder that holds it."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", plugin.name]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(words, cwd=plugin.parent, env=env, capture_output=True, text=True)


@pytest.mark.parametrize("kind", FILES)
def test_its_files_have_its_name(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = made(tmp_path, kind, monkeypatch)
    texts = [file.read_text() for file in plugin.rglob("*") if file.is_file()]
    assert not any("my_plugin" in text or "MyPlugin" in text for text in texts)


def test_a_method_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "mine/conf/method/mine.yaml" in succeed("plugin", "new", "mine")
    succeed("plugin", "new", "two_words")
    assert "class TwoWords(RankedPages)" in (tmp_path / "two_words" / "two_words.py").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_its_own_test_passes_and_can_fail(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = made(tmp_path, kind, monkeypatch)
    done = own_test(plugin)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout
    file, old, new = CHANGES[kind]
    text = (plugin / file).read_text()
    assert old in text
    (plugin / file).write_text(text.replace(old, new))
    done = own_test(plugin)
    assert done.returncode == 1 and "1 failed" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["there"], "there: exists already; give another name"),
        (["9lives"], "'9lives' cannot be imported: write small letters, digits and _"),
        (["my-method"], "'my-method' cannot be imported"),
        (["MyMethod"], "'MyMethod' cannot be imported"),
        (["a/b"], "'a/b' cannot be imported"),
        (["class"], "'class' cannot be imported"),
        (["mine", "--metric", "--judge"], "--metric, --judge: one of them at a time"),
    ],
)
def test_what_it_refuses(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    assert refused("plugin", "new", *words).startswith(told)
    assert [*tmp_path.rglob("*")] == [tmp_path / "there"]
