"""What of a corpus may change, and what is then redone: files rewritten after a run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from jobs.graph.preparation import prepare
from jobs.graph.read_run import read_run
from jobs.graph.resolved_run import ResolvedRun
from tests.support.command import sql, succeed
from tests.support.runs.written_plan import planned_units
from tests.support.texts.small_corpus import UNIFORM, document, question, write

pytestmark = pytest.mark.slow

Rows = list[dict[str, Any]]
LOADING = ("documents", "questions")
JUDGING = ("rate", "score")
READING = ("look_up", "answer", *JUDGING)
MEMORY = ("paginate", "gist")


def corpus() -> tuple[Rows, Rows]:
    """Two documents; q1 and q2 are about the first, q3 about the second."""
    documents = [{**document(n), "title": f"Title {n}", "metadata": {"n": n}} for n in (1, 2)]
    questions = [{**question(n, of=1 + (n == 3)), "asked_at": "2023/05/30 (Tue)"}
                 for n in (1, 2, 3)]  # fmt: skip
    return documents, questions


def words(folder: Path, rows: tuple[Rows, Rows]) -> list[str]:
    write(folder / "corpus", *rows)
    return ["corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM,
            "methods=gist_only,bm25(top_k=1)"]  # fmt: skip


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run over the corpus as it was."""
    folder = tmp_path_factory.mktemp("before")
    succeed("run", *words(folder, corpus()), f"warehouse={folder / 'warehouse'}", "run=before")
    return folder / "warehouse"


def pending(resolved: ResolvedRun, warehouse: Path) -> dict[str, set[str]]:
    """The stages that have something to do, with the documents or questions it is for.

    Loading is done by then: `documents` and `questions` name the rows that were loaded anew.
    """
    before = {file for table in LOADING for file in _files(warehouse, table)}
    prepared = prepare(resolved, UPath(warehouse), lambda line: None)
    steps = {step.id: step for step in prepared.run.steps}
    found: dict[str, set[str]] = {}
    for unit in planned_units(prepared):
        step = steps[unit.step_id]
        loaded = step.stage is None and str(prepared.shards.path(
            step.table, step.id, unit.unit)) not in before  # fmt: skip
        if loaded or not unit.is_done:
            found.setdefault(step.name, set()).update(unit.inputs or [unit.document_id])
    return found


def _files(warehouse: Path, table: str) -> set[str]:
    return {str(file) for file in (warehouse / "tables" / table).rglob("*.parquet")}


def asked(**changed: Any) -> Callable[[Rows, Rows], None]:
    """Changes the first question."""
    return lambda documents, questions: questions[0].update(changed)


def titled(**changed: Any) -> Callable[[Rows, Rows], None]:
    """Changes the first document."""
    return lambda documents, questions: documents[0].update(changed)


D1, Q1, ALL = frozenset(["d1"]), frozenset(["q1"]), frozenset(["q1", "q2"])
CASES: list[tuple[Callable[[Rows, Rows], None], dict[str, frozenset[str]]]] = [
    (asked(), {}),
    (asked(asked_at="2024/01/01 (Mon)"), dict.fromkeys(("questions", *READING), Q1)),
    (asked(question="Which mill?"), dict.fromkeys(("questions", *READING), Q1)),
    (asked(references=["another"]), dict.fromkeys(("questions", *JUDGING), Q1)),
    (asked(evidence=[[0, 20]]), dict.fromkeys(("questions", "score"), Q1)),
    (asked(question_type="why"), {"questions": Q1}),
    (asked(metadata={"difficulty": 3}), {"questions": Q1}),
    (asked(difficulty=4), {"questions": Q1}),
    (titled(title="Another"), {"documents": D1}),
    (titled(metadata={"n": 7}), {"documents": D1}),
    (titled(year=1851), {"documents": D1}),
    (titled(text=document(1)["text"] + " The end."),
     {"documents": D1} | dict.fromkeys(MEMORY, D1) | dict.fromkeys(READING, ALL)),
]  # fmt: skip


@pytest.mark.parametrize(("change", "redone"), CASES)
def test_a_change_redoes_what_rests_on_it_and_nothing_else(
    tmp_path: Path,
    warehouse: Path,
    change: Callable[[Rows, Rows], None],
    redone: dict[str, frozenset[str]],
) -> None:
    """A change is loaded once: another case must not have made it before."""
    rows = corpus()
    change(*rows)
    found = pending(read_run(words(tmp_path, rows)), warehouse)
    assert found == redone


def test_a_run_after_it_asks_about_the_changed_question_alone(
    tmp_path: Path, warehouse: Path
) -> None:
    rows = corpus()
    asked(asked_at="2025/02/03 (Mon)")(*rows)
    before = _files(warehouse, "calls")
    succeed("run", *words(tmp_path, rows), f"warehouse={warehouse}", "run=after")
    new = sorted(_files(warehouse, "calls") - before)
    made = sql(
        warehouse,
        f"""select question_id, stage, count(*) as n from read_parquet({new}) group by all
        order by all""",
        "run=after",
        "--unsafe",
    )
    assert [(row["question_id"], row["stage"], row["n"]) for row in made] == [
        ("q1", "answer", 2), ("q1", "rate", 4),
    ]  # fmt: skip
    shown = sql(warehouse, "select distinct asked_at from questions order by 1", "run=after")
    assert [row["asked_at"] for row in shown] == ["2023/05/30 (Tue)", "2025/02/03 (Mon)"]
