"""How far a document in flight is: pages done of about so many, and what was replayed of them; the
heartbeat that says so."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.asking.ask import Ask, Capacity
from pipeline.asking.replies import Replies
from pipeline.core.engine import Request
from pipeline.core.errors import EngineError
from tests.stages.index.test_paginate import by_model, lines
from tests.support.reading import Listener, reader_of
from tests.support.runs.small_run import SmallRun


def test_pages_are_expected_to_be_as_long_as_those_so_far() -> None:
    """Eight paragraphs of equal length: after pages of four and two of them, about 8/4 = 2 and
    8/3 = 3; the last is the tail. Before it is asked there is no expectation."""
    seen: list[tuple[int, int | None]] = []
    replies = iter(["Break point: <4>", "Break point: <6>"])

    def reply(request: Request) -> str:
        seen.append((ask.progress.done, ask.progress.about))
        return next(replies)

    ask = Ask(reader_of(Listener(reply)), "paginate", "d", Replies())
    stage, rows = by_model(15, 45, tail_words=25), lines(*[10] * 8)
    assert stage.expected(rows) is None
    pages = asyncio.run(stage.run(rows, ask))
    assert [page.num_words for page in pages] == [40, 20, 20]
    assert seen == [(0, None), (1, 2)]
    assert (ask.progress.done, ask.progress.about) == (3, 3)


def read(small: SmallRun, dies_at: int = 10**9) -> list[dict[str, Any]]:
    """What the heartbeat says of d1 (three pages, two questions) at each request; the engine dies
    after `dies_at` of them."""
    seen: list[dict[str, Any]] = []
    replies = {"look_up_p": "Page [1]", "rate_strict": "NO", "rate_permissive": "Yes, partially"}

    def reply(request: Request) -> str:
        seen.extend(worker._heartbeat._state()["inside"])
        if len(seen) > dies_at:
            raise EngineError("dead")
        return replies.get(request.prompt, "as it was")

    worker = small.worker(replace(small.reader, engine=Listener(reply), slots=Capacity(1)))
    with suppress(EngineError):
        asyncio.run(worker.work("d1", small.units()["d1"], 120))
    return seen


def test_heartbeats_say_how_far_a_document_is(tmp_path: Path) -> None:
    seen = read(SmallRun(tmp_path))
    expected = {state["table"]: state["about"] for state in seen if state["table"]}
    expected.pop("scores", None)  # of the first question, while the second is judged
    assert expected == {"gists": 3, "lookups": 2, "answers": 2, "ratings": 2}
    done = [state["done"] for state in seen if state["table"] == "gists"]
    assert done[0] == 0 and all(number <= n for n, number in enumerate(done))
    shares = [state["share"] for state in seen]
    assert shares == sorted(shares)
    assert shares[-2] < 1, "the second question has no verdict yet; the last request is its second"
    # 120 words, 2 questions. Pages and scores weigh 1, gists 121, look-ups, answers and ratings
    # 0.2 x 2 x 120 + 300 = 348.
    first = next(state for state in seen if state["table"] == "lookups")
    assert first["share"] == round(122 / (122 + 3 * 348 + 1), 6)
    assert round(first["words"], 6) == 122 + 3 * 348 + 1


def test_replayed_calls_are_done(tmp_path: Path) -> None:
    """The worker dies at the third gist; the next one replays two."""
    small = SmallRun(tmp_path)
    read(small, dies_at=2)
    first = read(small)[0]
    assert (first["table"], first["done"], first["about"]) == ("gists", 2, 3)
    assert first["share"] > 0.01
