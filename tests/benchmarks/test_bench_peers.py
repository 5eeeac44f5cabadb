"""`bench peers`: requests replayed by others, and the CPU seconds of whole process trees."""

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import side_by_side
from benchmarks.parts import part_config
from benchmarks.peers.measured import PeerRun, Watched, measured_peer
from benchmarks.peers.replayed import Replayed
from benchmarks.reading import Reading
from benchmarks.recorder import Moment, Recorded, Sent
from benchmarks.side_by_side import figures, job_of, peers, replayed_of
from pipeline.core.compose import compose
from pipeline.core.engine import Reply
from pipeline.core.errors import EngineError
from pipeline.core.prompts import Constraint
from pipeline.engines.vllm import VllmSettings
from tests.support.command import ROOT
from tests.support.engines.simulated import request, settings

REPLAYED = Replayed(first=10.0, last=14.0, num_requests=8, prompt_tokens=80, reply_tokens=16)
WATCHED = Watched(begun=4.0, samples=[(9.0, 1.0), (11.0, 3.0), (13.0, 3.0), (15.0, 7.0)])


def test_rates_are_between_the_first_request_and_the_last_reply() -> None:
    measured = PeerRun(REPLAYED, WATCHED)
    assert measured.per_second == 8 / 4.0
    assert measured.per_cpu_second == 8 / 3.0
    assert measured.to_first == 6.0
    recorded = PeerRun(replace(REPLAYED, recorder_cpu=1.0), WATCHED)
    assert recorded.per_cpu_second == 8 / (3.0 - 1.0), "the recorder is taken out"


def sent(**changes: Any) -> Sent:
    one = replace(request("Hello"), max_reply_tokens=7, **changes)
    reply = Reply(text="", finish_reason="length", prompt_tokens=10, reply_tokens=7)
    return Sent("sha", one, reply, begun=105.0)


def test_a_job_is_what_the_run_sent() -> None:
    words = ["engine=vllm", "engine.model=org/name", "engine.sequences=4",
             "engine.gpus_per_worker=1", "engine.args.dtype=half"]  # fmt: skip
    yes_or_no, of_regex = Constraint(choices=("yes", "no")), Constraint(regex="a+")
    answered = [sent(), sent(temperature=0.5, seed=3), sent(constraint=yes_or_no),
                sent(constraint=of_regex)]  # fmt: skip
    job = job_of(VllmSettings.model_validate(compose(words)["engine"]), answered)
    assert (job.at_once, job.has_gpu, job.chat_template) == (5, True, None)
    assert job.arguments["model"] == "org/name"
    assert (job.arguments["max_num_seqs"], job.arguments["dtype"]) == (4, "half")
    assert job.requests[0]["messages"] == sent().request.messages
    greedy = {"max_tokens": 7, "temperature": 0.0}
    assert [one["sampling"] for one in job.requests] == [
        greedy,
        {"max_tokens": 7, "temperature": 0.5, "seed": 3},
        {**greedy, "structured_outputs": {"choice": ["yes", "no"]}},
        {**greedy, "structured_outputs": {"regex": "a+"}},
    ]


def test_a_phase_is_replayed_until_its_rows_are_committed() -> None:
    driver = [Moment(clock, 0.0) for clock in (100.0, 120.0, 121.0)]
    answered = (sent(), replace(sent(), begun=104.0, recorder_cpu=0.25))
    worker = Recorded(Moment(103.0, 0.0), answered, Moment(119.0, 0.0))
    assert replayed_of(Reading(settings(), driver, [worker, worker], ()), answered) == Replayed(
        first=104.0, last=120.0, num_requests=2, prompt_tokens=20, reply_tokens=14,
        recorder_cpu=2 * 0.25,
    )  # fmt: skip


def test_peers_are_measured_by_gistmill_in_the_same_pair() -> None:
    slow = PeerRun(replace(REPLAYED, last=18.0), Watched(4.0, [(10.0, 0.0), (18.0, 6.0)]))
    found = [*figures([PeerRun(REPLAYED, WATCHED)], {"a": [slow], "b": []}, {"b": "b: no"})]
    assert {one.what: one.figure for one in found} == {
        "gistmill: requests a second": 2.0,
        "gistmill: requests a CPU second": 8 / 3,
        "gistmill: seconds to the first request": 6.0,
        "taken out: the recorder's CPU seconds per 1,000 requests": 0.0,
        "a: requests a second / gistmill's": 0.5,
        "a: requests a CPU second / gistmill's": (8 / 6) / (8 / 3),
        "a: seconds to the first request": 6.0,
        "b: no": None,
    }
    assert found[-1].row()["figure"] is None


def own_peer(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> str:
    """A module that is found as a peer, each of another name; `result` is what it writes."""
    start = "import json, sys\nresult = open(sys.argv[2], 'w')\n"
    name = f"own_peer_{len([*folder.glob('own_peer_*')])}"
    (folder / f"{name}.py").write_text(start + body)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), str(ROOT)]))
    return name


@pytest.mark.slow
def test_a_peer_that_fails_has_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "raise RuntimeError('No CUDA here. Another sentence.')"
    for module, seconds, line in (
        (own_peer(tmp_path, monkeypatch, body), 60, "^No CUDA here$"),
        ("no_such", 60, "No module named no_such$"),
        (own_peer(tmp_path, monkeypatch, "import time\ntime.sleep(60)"), 1,
         "^has not ended in 1 s$"),
    ):  # fmt: skip
        with pytest.raises(EngineError, match=line):
            measured_peer(module, tmp_path, REPLAYED, seconds)


def test_a_peer_that_answers_something_else_is_no_peer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed = asdict(REPLAYED)
    module = own_peer(tmp_path, monkeypatch, f"json.dump({replayed}, result)")
    assert measured_peer(module, tmp_path, REPLAYED, 60).replayed == REPLAYED
    for name, number in (("num_requests", 8), ("prompt_tokens", 80)):
        other = {**replayed, name: 7}
        module = own_peer(tmp_path, monkeypatch, f"json.dump({other}, result)")
        with pytest.raises(EngineError, match=f"^other requests: {name} is 7, not {number} as"):
            measured_peer(module, tmp_path, REPLAYED, 60)


def test_a_peer_that_does_not_run_here_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a line with the reason, and is not tried again in the second pair."""
    ours, tried = PeerRun(REPLAYED, WATCHED), list[str]()

    def measured(module: str, *more: object) -> PeerRun:
        tried.append(module)
        if module == "no_such":
            raise EngineError("No module named no_such")
        return ours

    monkeypatch.setattr(side_by_side, "PEERS", {"nobody": "no_such", "one": "answering"})
    monkeypatch.setattr(side_by_side, "_read_here", lambda config, folder: ours)
    monkeypatch.setattr(side_by_side, "measured_peer", measured)
    config = part_config("peers", ["engine.model=org/name", "corpus.path=."], tmp_path)
    found = {one.what: one.figure for one in peers(config, tmp_path, 2)}
    assert found["nobody does not run here: No module named no_such"] is None
    assert found["one: requests a second / gistmill's"] == 1.0
    assert tried == ["no_such", "answering", "answering"]
