"""The line that says what `ask` does at this moment."""

from typing import Any

import pytest

from jobs.ask.doing import Doing


def state(**changes: Any) -> dict[str, Any]:
    return {"phase": "reading", "share": 0.0, "inside": None, "waiting_for": "", **changes}


def inside(table: str, done: int, about: int) -> dict[str, Any]:
    return state(inside={"table": table, "done": done, "about": about})


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (inside("gists", 3, 20), "gisting page 4 of about 20 ..."),
        (inside("gists", 20, 20), "gisting page 20 of about 20 ..."),
        (inside("answers", 0, 1), "answering question 1 of about 1 ..."),
        (inside("visits", 2, 9), "gisting ..."),  # a table that has no words of its own
        (state(share=0.456), "gisting, 46% ..."),
        (state(phase="rating"), "rating ..."),
        (state(waiting_for="http://h/v1"), "waiting for http://h/v1 ..."),
    ],
)
def test_what_a_run_does_is_said_in_words(now: dict[str, Any], said: str) -> None:
    lines: list[str] = []
    doing = Doing(lines.append)
    doing.follow(0, "gisting")
    doing.at_work(now)
    assert lines == [said]


def test_beside_a_terminal_a_line_comes_when_something_else_begins() -> None:
    lines: list[str] = []
    with Doing(lines.append) as doing:
        doing.follow(3, "gisting")
        doing.loaded(1)
        doing.loaded(3)
        doing.at_work(inside("gists", 0, 2))
        doing.at_work(inside("gists", 1, 2))
        doing.say("ranking pages")
        doing.hush()
        doing.say("answering")
    assert lines == [
        "reading file 1 of 3 ...",
        "gisting page 1 of about 2 ...",
        "ranking pages ...",
    ]


def test_in_a_terminal_the_line_is_rewritten_and_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    clear = "\r\x1b[K"
    with Doing(lambda line: None) as doing:
        doing.follow(2, "gisting")
        doing.loaded(1)
    written = [f"{clear}{what} ..." for what in
               ("looking for files", "reading file 1 of 2", "reading file 2 of 2")]  # fmt: skip
    assert capsys.readouterr().err == "".join(written) + clear
