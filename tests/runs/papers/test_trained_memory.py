"""The contract for a memory of trained key-value states: a plugin brings the kind of `memorize` and
an engine of its own (docs/methods/memorag.md)."""

import json
from pathlib import Path

import pytest

from jobs.graph.resolved_run import read_run
from tests.support.command import QMSUM, ROOT, own_process, sql_values, succeeded

PLUGIN = f"plugins={ROOT / 'tests' / 'support' / 'states_plugin'}"
WORDS = (
    PLUGIN, "memory_engine=states", "corpus=qmsum", f"corpus.path={QMSUM}", "limit=2", "rater=none",
    "methods=memorag(memory=states,retriever=bm25)", "cluster=inline", "run=r",
)  # fmt: skip


@pytest.mark.slow
def test_clues_are_the_memory_engine_s_and_answers_the_reader_s(tmp_path: Path) -> None:
    """16 words a state: the engine says how many tokens a prompt takes, and what fits none of the
    reader's context fits the states."""
    succeeded(own_process("run", *WORDS, f"warehouse={tmp_path}"))
    engines = sql_values(tmp_path, "select distinct stage, engine from calls order by all")
    assert engines == [("answer", "extractive"), ("queries", "states")]
    assert sql_values(tmp_path, "select count(*), count(gist) from memory_passages") == [(2, 0)]
    ((asked, longest),) = sql_values(
        tmp_path, "select (select count(*) from questions), max(num_words) from documents"
    )
    assert asked > 2 and longest > 4000
    query = "select count(distinct question_id), count(problem) from "
    assert [sql_values(tmp_path, query + table) for table in ("queries", "answers")] == [
        [(asked, 0)], [(asked, 0)],
    ]  # fmt: skip


def test_its_settings_name_the_steps() -> None:
    runs = [read_run([*WORDS, f"memory_engine.ratio={ratio}"]) for ratio in (16, 4)]
    one, other = ({step.id for step in run.steps if step.table == "queries"} for run in runs)
    assert one != other
    stored = json.loads(runs[1].config.model_dump_json())["memory_engine"]
    assert (stored["name"], stored["ratio"]) == ("states", 4)
