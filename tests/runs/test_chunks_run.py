"""A document with more questions than a unit holds, shared by two workers: the real command."""

import json
from pathlib import Path

import pytest

from tests.support.command import sql_values, succeed
from tests.support.texts.small_corpus import UNIFORM, document, question, write

pytestmark = pytest.mark.slow

QUESTIONS = 24
PER_UNIT = 4


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """One long question list and one short one; both workers have to help with the first."""
    folder = tmp_path_factory.mktemp("chunks")
    asked = [question(n, of=1) for n in range(QUESTIONS)] + [question(99, of=2)]
    write(folder / "corpus", [document(1), document(2)], asked)
    return [
        "run", "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM,
        "methods=gist_only,readagent_p(max_pages=1)", f"questions_per_unit={PER_UNIT}",
        f"warehouse={folder / 'warehouse'}",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def outcome(words: list[str]) -> dict[str, dict[str, int]]:
    """Units by worker and phase."""
    done = json.loads(
        succeed(
            *words, "engine.min_workers=2", "engine.cpus_per_worker=0.5", "cluster=local", "--json"
        )
    )
    workers: dict[str, dict[str, int]] = done["workers"]
    return workers


def test_the_memory_is_made_once_and_the_chunks_are_shared(
    outcome: dict[str, dict[str, int]],
) -> None:
    assert list(outcome) == ["reading: memory", "reading: questions"]
    assert sum(outcome["reading: memory"].values()) == 2 * 2, "pages and gists of two documents"
    assert len(outcome["reading: questions"]) == 2, "both workers"


@pytest.mark.usefixtures("outcome")
def test_every_question_is_answered_once_in_units_of_about_that_size(words: list[str]) -> None:
    warehouse = Path(words[-1].removeprefix("warehouse="))
    rows = sql_values(
        warehouse,
        """select count(*), count(distinct question_id), count(problem), count(distinct unit)
        from answers group by method""",
    )
    assert [row[:3] for row in rows] == [(QUESTIONS + 1, QUESTIONS + 1, 0)] * 2
    # The short list, and six chunks by the questions' hashes, or five if one of them is empty.
    assert all(6 <= num_units <= 1 + -(-QUESTIONS // PER_UNIT) for *_, num_units in rows)


@pytest.mark.usefixtures("outcome")
def test_cut_otherwise_it_is_the_same_run_with_nothing_to_do(words: list[str]) -> None:
    for more in (["engine.max_workers=1"], ["questions_per_unit=50"]):
        others = [word for word in words if not word.startswith(more[0].partition("=")[0])]
        assert json.loads(succeed(*others, *more, "--json"))["calls"] == {}
