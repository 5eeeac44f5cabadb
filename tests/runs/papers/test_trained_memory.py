"""The contract for a memory of trained key-value states: a plugin brings the kind of `memorize` and
an engine of its own (docs/methods/memorag.md)."""

import json
from pathlib import Path

import pytest

from jobs.graph.resolved_run import read_run
from pipeline.core.engine import ENGINES
from tests.support.command import QMSUM, ROOT, own_process, sql, sql_values, succeeded

PLUGIN = f"plugins={ROOT / 'tests' / 'support' / 'states_plugin'}"
WORDS = (
    PLUGIN, "memory_engine=states", "corpus=qmsum", f"corpus.path={QMSUM}", "limit=2", "rater=none",
    "methods=memorag(memory=states,retriever=bm25)", "cluster=inline", "run=r",
)  # fmt: skip


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("states")
    succeeded(own_process("run", *WORDS, f"warehouse={folder}"))
    return folder


@pytest.mark.slow
def test_clues_are_the_memory_engine_s_and_answers_the_reader_s(warehouse: Path) -> None:
    engines = sql_values(warehouse, "select distinct stage, engine from calls order by all")
    assert engines == [("answer", "extractive"), ("queries", "states")]
    passages = sql_values(warehouse, "select count(*), count(gist) from memory_passages")
    assert passages == [(2, 0)]
    asked = sql_values(warehouse, "select count(distinct question_id) from queries")
    answered = sql_values(warehouse, "select count(*) from answers where problem is null")
    assert asked == answered and asked[0][0] > 2


@pytest.mark.slow
def test_a_text_that_the_reader_has_no_room_for_fits_the_states(warehouse: Path) -> None:
    """16 words a state: the engine says how many tokens a prompt takes, and 4,000 fit."""
    longest = sql(warehouse, "select max(num_words) as words from documents")[0]["words"]
    assert longest > 4000 and sql(warehouse, "from queries where problem is not null") == []


def test_its_settings_name_the_steps() -> None:
    ids = []
    for ratio in (16, 4):
        run = read_run([*WORDS, f"memory_engine.ratio={ratio}"])
        ids.append({step.id for step in run.steps if step.table == "queries"})
    assert ids[0] != ids[1]
    assert "states" in ENGINES and run.config.memory_engine.name == "states"
    stored = json.loads(run.config.model_dump_json())["memory_engine"]
    assert stored["ratio"] == 4
