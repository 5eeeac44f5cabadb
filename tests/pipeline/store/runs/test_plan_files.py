"""The plan of a launch: written in files as documents are loaded, read while later ones are not."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from upath import UPath

from pipeline.core.errors import StorageError
from pipeline.store.runs.planned_units import PlannedWork, read_plan, write_plan
from pipeline.store.runs.run_folder import RunFolder
from pipeline.work.executions import Execution, PlannedDocument
from pipeline.work.units import Unit

NAMES = st.text("abcdef0123456789", min_size=1, max_size=4)


@st.composite
def units(draw: st.DrawFn, document_id: str) -> Unit:
    return Unit(
        step_id=f"answer-{draw(NAMES)}",
        unit=draw(NAMES),
        document_id=document_id,
        inputs=draw(st.dictionaries(st.text(max_size=5), NAMES, max_size=3)),
        chunk=draw(st.none() | st.integers(0, 9)),
        attempt=draw(st.integers(1, 3)),
        is_done=draw(st.booleans()),
    )


@st.composite
def documents(draw: st.DrawFn) -> list[PlannedDocument]:
    """Documents of up to four units, no two of one step."""
    names = draw(st.lists(st.text(min_size=1, max_size=5), max_size=5, unique=True))
    return [
        PlannedDocument(
            name,
            draw(st.integers(0, 5)),
            draw(st.booleans()),
            draw(st.integers(0, 3)),
            draw(st.lists(units(name), min_size=1, max_size=4, unique_by=lambda u: u.step_id)),
        )
        for name in names
    ]


def book(name: str, words: int, *questions: str, is_done: bool = False) -> PlannedDocument:
    """A document with a unit of its own in one step, and one of its questions in another."""
    page = Unit(step_id="paginate-0", unit=f"0{name}", document_id=name, is_done=is_done)
    asked = Unit(step_id="answer-0", unit=f"1{name}", document_id=name, is_done=is_done,
                 inputs=dict.fromkeys(questions, "2"))  # fmt: skip
    return PlannedDocument(name, words, False, len(questions), [page, asked])


@settings(deadline=None, max_examples=60)
@given(documents())
def test_what_is_read_is_what_was_written_the_longest_first(planned: list[PlannedDocument]) -> None:
    folder = UPath(f"memory://plan/{time.monotonic_ns()}")
    assert [*write_plan(folder, planned)] == [True]
    expected = sorted(planned, key=lambda one: -one.num_words)  # stable: in the order of the corpus
    assert [*read_plan(folder)] == expected


def test_only_the_steps_that_are_asked_for(tmp_path: Path) -> None:
    folder = UPath(tmp_path)
    assert [*write_plan(folder, [book("a", 3, "q")])] == [True]
    (found,) = read_plan(folder, {"answer-0", "gist-0"})
    assert [unit.step_id for unit in found.units] == ["answer-0"]
    assert [*read_plan(folder, set())] == []


def test_files_are_read_while_later_ones_are_not_written(tmp_path: Path) -> None:
    """Each of a document that waits until the one before has been read."""
    folder, is_read = UPath(tmp_path), threading.Event()

    def loaded() -> Iterator[PlannedDocument]:
        for name, words in (("a", 1), ("b", 9)):
            yield book(name, words)
            assert is_read.wait(20)

    files = write_plan(folder, loaded(), seconds=0)
    assert next(files) is False
    writer = threading.Thread(target=lambda: [*files])
    writer.start()
    found = []
    for document in read_plan(folder):
        found.append(document.document_id)
        is_read.set()
    writer.join()
    assert found == ["a", "b"], "a file has what came first"
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "000000.parquet", "000001.parquet", "000002.end.parquet",
    ]  # fmt: skip


def test_a_plan_that_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file"):
        next(read_plan(UPath(tmp_path / "gone")))


def test_the_words_of_work_are_those_that_pending_units_read(tmp_path: Path) -> None:
    """By hand: 7 words and 1 of a page's memory; two questions read two tenths each, and 300."""
    folder = UPath(tmp_path)
    assert [*write_plan(folder, [book("a", 7, "q1", "q2"), book("b", 9, is_done=True)])] == [True]
    steps = frozenset({"paginate-0", "answer-0"})
    whole = PlannedWork(folder, Execution("reading", steps, steps, steps))
    assert [[(one.document_id, round(one.words, 6)) for one in part] for part in whole] == [
        [("a", 8 + 2.8 + 300)]
    ]
    own = PlannedWork(folder, Execution("reading", frozenset({"paginate-0"}), steps, steps))
    (((_, found, words),),) = own
    assert words == 8 and [unit.is_done for unit in found] == [False, True]


def test_the_planned_inputs_of_a_run_are_those_of_its_plan(tmp_path: Path) -> None:
    night = RunFolder(tmp_path, "night")
    planned = [book("a", 3, "q1", "q2"), book("b", 4)]
    assert [*write_plan(night.plan_files, planned, seconds=0)] == [False, False, True]
    night.plan([], night.plan_files)
    file = tmp_path / "runs" / "night" / "units.parquet"
    assert duckdb.execute(f"from '{file}' order by all").fetchall() == [
        ("answer-0", "1a", "a", "q1", None, 1), ("answer-0", "1a", "a", "q2", None, 1),
        ("answer-0", "1b", "b", None, None, 1), ("paginate-0", "0a", "a", None, None, 1),
        ("paginate-0", "0b", "b", None, None, 1),
    ]  # fmt: skip
    assert [*write_plan(UPath(tmp_path / "next"), [book("b", 4, "q2")])] == [True]
    assert night.missing_from(UPath(tmp_path / "next"), "document_id") == {"a"}
    assert night.missing_from(UPath(tmp_path / "next"), "question_id") == {"q1"}
