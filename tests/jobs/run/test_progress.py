"""The progress of a run: heartbeats and finished documents, each unit counted once."""

import json
import shutil
from typing import Any

import pytest

from jobs.run.progress import Progress, progress_line
from pipeline.core.calls import UsageCounters
from pipeline.worker.progress import Summary
from tests.support.command import gistmill, succeed


class Night:
    """The phase `reading` of two documents, of 60 and 40 words, and ten units, at `now`."""

    def __init__(self) -> None:
        self.now, self.states = 0.0, list[Any]()
        self.progress = Progress(10, self.states.append, lambda: self.now)
        self.progress.start("reading", 2, 100.0)

    def alive(self, now: float, *workers: dict[str, Any]) -> dict[str, Any]:
        """The state at these heartbeats."""
        self.now = now
        self.progress.alive(workers)
        return dict(self.states[-1])

    def add(self, document_id: str, **counts: Any) -> dict[str, Any]:
        """The state once a document is through."""
        self.progress.add(Summary(document_id, "w1", words=WORDS[document_id], **counts))
        return self.progress.state()


WORDS = {"a": 60.0, "b": 40.0}


def heartbeat(worker: str = "w1", *inside: dict[str, Any], **counts: int) -> dict[str, Any]:
    about = {"worker": worker, "is_starting": False, "documents": {}, "inside": inside}
    return about | vars(UsageCounters(**counts))


def of_book(done: int, about: int, share: float, document_id: str = "a") -> dict[str, Any]:
    return {"document_id": document_id, "words": WORDS[document_id], "share": share,
            "table": "pages", "done": done, "about": about}  # fmt: skip


def test_documents_in_flight_count_as_far_as_they_are() -> None:
    night = Night()
    night.alive(1.0, heartbeat(calls=1, prompt_tokens=10, units=1, rows=3))
    first: Any = {"calls": 2, "prompt_tokens": 40, "cached_tokens": 20, "units": 2, "rows": 6}
    second = {"calls": 1, "prompt_tokens": 16, "units": 1, "rows": 4, "problems": 1}
    state = night.alive(10.0, heartbeat(reply_tokens=1, **first), heartbeat("w2", **second))
    assert (state["units"], state["planned_units"], state["problems"]) == (3, 10, 1)
    assert (state["rows_per_second"], state["tokens_per_second"]) == (1.0, 5.7)
    assert state["cached_share"] == round(20 / 56, 4)
    assert (state["share"], state["seconds_left"]) == (0.0, None), "no document is through"
    json.dumps(state)
    night = Night()
    night.alive(1.0, heartbeat("w1", of_book(15, 300, 0.05)))
    state = night.alive(11.0, heartbeat("w1", of_book(37, 300, 0.25)))
    # A twentieth of 60 words, and 10 seconds later a quarter: 85 of 100 are left, at 1.2 a second.
    assert (state["share"], state["seconds_left"]) == (0.15, 71)
    assert ", 0/10 units" in progress_line(state)
    assert night.add("a")["share"] == 0.6, "once, also before the next heartbeat"


def test_a_document_that_is_through_counts_once() -> None:
    night = Night()
    a: Any = {"calls": 2, "prompt_tokens": 30, "units": 2, "rows": 6}
    night.alive(10.0, heartbeat(**a))
    state = night.add("a", asked={"s": 2}, **a)
    assert (state["units"], state["share"], state["seconds_left"]) == (2, 0.6, None)
    # 60 of 100 words are done, and 10 seconds later 80: 20 are left, at 2 a second.
    state = night.alive(20.0, heartbeat("w1", of_book(1, 2, 0.5, "b"), **a))
    assert (state["units"], state["share"], state["seconds_left"]) == (2, 0.8, 10)
    late = night.add("b", asked={"s": 1}, calls=1, prompt_tokens=10, units=1, rows=1)
    assert (late["units"], late["share"]) == (3, 1.0), "the heartbeat is late"
    assert night.progress.calls == {"s": 3}
    both = UsageCounters(calls=3, prompt_tokens=40, units=3, rows=7)
    took = {"phase": "reading", "seconds": 20.0, "workers": 1, **vars(both)}
    assert night.progress.took() == took


def test_a_finding_about_replies_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    night = Night()
    first = {"gist gist truncated": "gist: 5 of 20 replies [to gist]"}
    others = {"gist gist truncated": "gist: 6 of 20", "look_up look_up_p unread": "look_up: 7"}
    of_first = heartbeat() | {"findings": first}
    night.alive(0.0, of_first, heartbeat("w2"))
    night.alive(0.0, of_first, heartbeat("w2") | {"findings": others})
    assert capsys.readouterr().err.splitlines()[1:] == [*first.values(), "look_up: 7"]


def test_a_log_has_a_line_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    night = Night()
    for second in range(0, 181, 5):
        if second == 90:
            night.add("a", calls=1, prompt_tokens=90)
        inside = of_book(1, 2, second / 360, "b")
        night.alive(second, heartbeat("w1", inside, calls=second, prompt_tokens=second))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "reading: 2 documents"
    assert len(lines) == 1 + 2 and all(line.startswith("reading ") for line in lines[1:])
    assert "tokens/s" in lines[1] and all("ends" in line for line in lines[1:])


@pytest.mark.slow
def test_status_shows_no_progress_of_a_run_that_is_over(tmp_path: Any) -> None:
    """The CPUs that read score, too; scores that are lost are a phase of their own."""
    words = ["corpus=synthetic", "corpus.num_documents=2", "corpus.words=300", "memory=uniform",
             "methods=gist_only", "rater=none", "run=night", f"warehouse={tmp_path}"]  # fmt: skip
    done = gistmill("run", *words)
    assert done.returncode == 0
    assert "reading: 2 documents" in done.stderr and "scoring:" not in done.stderr
    assert json.loads(succeed("status", words[-1], "--json"))["progress"] is None
    shutil.rmtree(tmp_path / "tables" / "scores")
    again = gistmill("run", *words)
    assert "scoring: 2 documents" in again.stderr and "reading:" not in again.stderr
    provenance = json.loads((tmp_path / "runs" / "night" / "provenance.json").read_text())
    (reading,), (scoring,) = (launch["phases"] for launch in provenance["launches"])
    assert [reading["phase"], scoring["phase"]] == ["reading", "scoring"]
    assert all(phase["seconds"] > 0 and phase["workers"] >= 1 for phase in (reading, scoring))
    assert reading["calls"] > 0 == scoring["calls"]
