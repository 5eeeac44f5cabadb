"""`gistmill plugin new`: the folder of each kind, whose own test passes and can fail."""

import json
import os
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.command import ROOT, refused, succeed

KINDS = {  # the files of each, beside test_mine.py; a change of one that its test does not pass
    "method": ({"mine.py", "conf/method/mine.yaml"}, "mine.py", "in pages", "in reversed(pages)"),
    "metric": ({"mine.py", "conf/prompts/mine/family.yaml"},
               "mine.py", "answer[:1].lower() ==", "answer[:1].lower() !="),
    "engine": ({"mine.py", "conf/engine/mine.yaml", "conf/rater/mine.yaml"},
               "mine.py", "Rivers rise.", "Rivers fall."),
    "judge": ({"mine.py", "conf/prompts/mine/family.yaml", "conf/prompts/mine/judge_mine.jinja"},
              "mine.py", "return self", "return not self"),
    "corpus": ({"mine.py", "conf/corpus/mine.yaml", "sample.tsv"},
               "mine.py", "(reference,)", "(asked,)"),
    "family": ({"conf/prompts/mine/family.yaml", "conf/prompts/mine/gist.jinja"},
               "conf/prompts/mine/gist.jinja", "Write down", "Tell"),
}  # fmt: skip


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A kind, of which there is a plugin `mine` in the current folder."""
    monkeypatch.chdir(tmp_path)
    kind: str = request.param
    files = json.loads(succeed("plugin", "new", "mine", f"--{kind}", "--json"))["files"]
    assert {*files} == {f"mine/{file}" for file in (*KINDS[kind][0], "test_mine.py")}
    return kind


def test_its_files_have_its_name(kind: str) -> None:
    texts = [file.read_text() for file in Path("mine").rglob("*") if file.is_file()]
    assert not any("my_plugin" in text or "MyPlugin" in text for text in texts), kind


def test_a_method_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "two_words/conf/method/two_words.yaml" in succeed("plugin", "new", "two_words")
    assert "class TwoWords(RankedPages)" in Path("two_words/two_words.py").read_text()


def own_test() -> "CompletedProcess[str]":
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "mine"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(words, env=env, capture_output=True, text=True)


@pytest.mark.slow
def test_its_own_test_passes_and_can_fail(kind: str) -> None:
    done = own_test()
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout
    _, name, old, new = KINDS[kind]
    file = Path("mine") / name
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    done = own_test()
    assert done.returncode == 1 and "1 failed" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["there"], "there: exists already; give another name"),
        (["9lives"], "'9lives' cannot be imported: write small letters, digits and _"),
        (["my-method"], "'my-method' cannot be imported"),
        (["a/b"], "'a/b' cannot be imported"),
        (["MyMethod"], "'MyMethod' cannot be imported"),
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
