"""A document with more questions than a unit holds, shared by two workers: the real command."""

import json
from pathlib import Path

import pytest

from tests.support.command import sql_values, succeed
from tests.support.texts.small_corpus import UNIFORM, document, question, write

pytestmark = pytest.mark.slow

QUESTIONS = 24
PER_UNIT = 4


def test_a_long_list_of_questions_is_shared_and_done_once(tmp_path: Path) -> None:
    """One long question list and one short one; both workers have to help with the first."""
    asked = [question(n, of=1) for n in range(QUESTIONS)] + [question(99, of=2)]
    write(tmp_path / "corpus", [document(1), document(2)], asked)
    words = [
        "run", "corpus=tables", f"corpus.path={tmp_path / 'corpus'}", *UNIFORM, "--json",
        "methods=gist_only,readagent_p(max_pages=1)", f"warehouse={tmp_path / 'warehouse'}",
    ]  # fmt: skip
    chunks = f"questions_per_unit={PER_UNIT}"
    here = ("engine.min_workers=2", "engine.cpus_per_worker=0.5", "cluster=local")
    workers = json.loads(succeed(*words, chunks, *here))["workers"]  # units by phase and worker
    assert [*workers] == ["reading: memory", "reading: questions"]
    assert sum(workers["reading: memory"].values()) == 2 * 2, "pages and gists of two documents"
    assert len(workers["reading: questions"]) == 2, "both workers"

    rows = sql_values(
        tmp_path / "warehouse",
        """select count(*), count(distinct question_id), count(problem), count(distinct unit)
        from answers group by method""",
    )
    assert [row[:3] for row in rows] == [(QUESTIONS + 1, QUESTIONS + 1, 0)] * 2
    # The short list, and six chunks by the questions' hashes, or five if one of them is empty.
    assert all(6 <= num_units <= 1 + -(-QUESTIONS // PER_UNIT) for *_, num_units in rows)

    for more in ((chunks, "engine.max_workers=1"), ("questions_per_unit=50",)):
        assert json.loads(succeed(*words, *more))["calls"] == {}, "cut otherwise, the same run"
