"""`gistmill chat`: questions from standard input, answered by what is loaded once."""

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.ask.test_ask_folder import QUESTION, SOLD, write_letters
from tests.support.command import ROOT, gistmill, refused, succeeded
from tests.support.engines.loopback_server import Answer, LoopbackServer

pytestmark = pytest.mark.slow


def chat(monkeypatch: pytest.MonkeyPatch, typed: str, *words: Any) -> Any:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    return gistmill("chat", *words)


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    return write_letters(tmp_path / "letters")


@pytest.mark.parametrize("end", ["", "\n", "/quit\n"])
def test_lines_are_answered_up_to_the_end(
    monkeypatch: pytest.MonkeyPatch, letters: Path, end: str
) -> None:
    after = "What is never asked?\n" if end else ""
    typed = f"{QUESTION}\nWhich harvest was good?\n{end}{after}"
    done = chat(monkeypatch, typed, letters, f"warehouse={letters.parent / 'w'}", "--json")
    asked = [json.loads(line) for line in succeeded(done).splitlines()]
    assert [one["question"] for one in asked] == [QUESTION, "Which harvest was good?"]
    assert SOLD in asked[0]["results"][0]["pages"][0]["passage"]
    assert "12 files, 12 pages. Ask; an empty line ends." in done.stderr
    assert done.stderr.count("reading file 1 of 12") == 1  # once for all questions


def test_one_file_is_asked_as_by_ask(monkeypatch: pytest.MonkeyPatch, letters: Path) -> None:
    words = (letters / "gerta.txt", f"warehouse={letters.parent / 'w'}")
    out = succeeded(chat(monkeypatch, f"{QUESTION}\n", *words))
    assert "  gerta.txt, page 0:\n" in out and SOLD in out
    assert succeeded(gistmill("ask", words[0], QUESTION, words[1])).strip() == out.strip()


def test_the_engine_is_started_once_and_streams(
    monkeypatch: pytest.MonkeyPatch, letters: Path
) -> None:
    """The server makes two answers; what is streamed is not printed again."""
    starts: list[int] = []

    def answer(body: dict[str, Any]) -> Answer:
        starts.append(bool(body.get("stream")))
        return Answer(text="a widow from Bergen" if body.get("stream") else "[0]")

    with LoopbackServer(answer=answer) as server:
        engine = ("engine=openai", f"engine.base_url={server.url}", "engine.model=m")
        where = (f"warehouse={letters.parent / 'w'}", "memory=uniform", "method=bm25(top_k=1)")
        typed = f"{QUESTION}\nWho is a widow?\n"
        out = succeeded(chat(monkeypatch, typed, letters, *engine, *where))
        ready = server.num_ready
    assert out.count("a widow from Bergen\n") == 2
    assert sum(starts) == 2  # the answers; gists are not streamed
    assert ready == 1


@pytest.mark.parametrize(
    ("trouble", "code", "failed"),
    [
        (Answer(status=500, body="{}"), 3, "no answer: refused"),
        (Answer(vanish=True), 4, "gistmill: engine.base_url="),
    ],
)
def test_a_question_that_fails_is_a_line_and_the_next_is_taken(
    monkeypatch: pytest.MonkeyPatch, letters: Path, trouble: Answer, code: int, failed: str
) -> None:
    """The first answer that is streamed has the trouble; a server that vanished stays away."""
    left = [trouble]

    def answer(body: dict[str, Any]) -> Answer:
        return left.pop() if body.get("stream") and left else Answer(text="a widow")

    with LoopbackServer(answer=answer) as server:
        engine = ("engine=openai", f"engine.base_url={server.url}", "engine.model=m")
        patience = ("engine.outage_minutes=0", "engine.retries=0", f"warehouse={letters.parent}/w")
        typed = f"{QUESTION}\nWho is a widow?\n"
        words = (letters, *engine, *patience, "memory=uniform", "method=bm25(top_k=1)")
        done = chat(monkeypatch, typed, *words)
    said = f"{done.stdout}\n{done.stderr}".splitlines()
    assert done.returncode == code
    assert sum(line.startswith(failed) for line in said) == (2 if trouble.vanish else 1)
    assert ("a widow" in said) != trouble.vanish


def test_mistakes_are_one_line(letters: Path) -> None:
    assert refused("chat").startswith("Missing argument 'FILE...")
    assert refused("chat", "method=bm25").startswith("chat: name a file or folder: gistmill chat")
    assert refused("chat", "nowhere.txt").startswith("nowhere.txt: no such file or folder; ")
    assert refused("chat", letters, "run=a").startswith("chat: run= is not for it; ")


def test_a_terminal_is_told_first_what_is_done(letters: Path) -> None:
    """Before any file is read."""
    ours, theirs = pty.openpty()
    words = ["ask", str(letters), QUESTION, f"warehouse={letters.parent / 'w'}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "jobs", *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    first = os.read(ours, 1000)
    process.communicate()
    os.close(ours)
    assert b"looking for files" in first
