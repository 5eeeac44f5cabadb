"""A named run grows by methods, raters and documents, and changes in nothing else."""

from pathlib import Path

import pytest

from jobs.graph.resolved_run import ResolvedRun, read_run, run_manifest
from jobs.run.stored_run import (
    _refuse_shared_file,
    merge_with_stored_run,
    refuse_fewer,
    stored_config,
)
from pipeline.core.errors import UsageError
from pipeline.store.runs.run_folder import RunFolder, write_plan
from tests.support.runs.warehouse import Warehouse, document, document_unit, step
from tests.support.runs.written_plan import documents

DOCUMENTS = step("documents")


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path)


def night(*words: str) -> ResolvedRun:
    return read_run(["run=night", "methods=bm25", "rater=none", *words])


def start(warehouse: Warehouse, config: ResolvedRun) -> RunFolder:
    """The run as it is once it has begun."""
    folder = RunFolder(warehouse.folder, config.name)
    folder.start(run_manifest(config), {}, has_work=True)
    warehouse.plan(config.name, (DOCUMENTS, [document_unit(DOCUMENTS, "d1")]))
    return folder


def test_a_run_without_a_name_gets_its_own(warehouse: Warehouse) -> None:
    resolved = read_run([])
    folder = RunFolder(warehouse.folder, resolved.name)
    assert merge_with_stored_run(resolved, folder).name == resolved.name
    start(warehouse, resolved)
    assert merge_with_stored_run(resolved, folder) is resolved, "nothing is resolved again"
    more = merge_with_stored_run(read_run([f"run={resolved.name}", "rater=extractive"]), folder)
    assert (more.name, more.config.run) == (resolved.name, resolved.name)


def test_methods_are_added_to_those_there_are(warehouse: Warehouse) -> None:
    folder = start(warehouse, night("methods=bm25(top_k=1|2)"))
    both = merge_with_stored_run(night("methods=gist_only,bm25(top_k=2)"), folder)
    names = [method.name for method in both.methods]
    assert names == ["bm25(top_k=1)", "bm25(top_k=2)", "gist_only"]


def test_raters_are_added_to_those_there_are(warehouse: Warehouse) -> None:
    folder = start(warehouse, night())
    found = merge_with_stored_run(night("rater=extractive", "rater.context_tokens=5000"), folder)
    assert [rater.name for rater in found.config.raters] == ["none", "extractive"]
    start(warehouse, found)
    again = merge_with_stored_run(night("rater=reader"), folder)
    assert [rater.name for rater in again.config.raters] == ["none", "extractive", "reader"]
    assert len(again.config.engines("judge")) == 2
    assert stored_config(folder) == found.config


@pytest.mark.parametrize(
    "word",
    ["limit=3", "sample=2", "corpus.path=elsewhere", "warehouse=elsewhere", "engine.max_workers=1",
     "engine.deadline_seconds=5.0", "engine.sequences=2", "max_problem_rate=0.5",
     "corpus.seed=3"],
)  # fmt: skip
def test_what_may_change(warehouse: Warehouse, word: str) -> None:
    assert merge_with_stored_run(night(word), start(warehouse, night())).config.run == "night"


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("memory=uniform", "memory.stages.paginate.kind model -> uniform"),
        ("reply_tokens.gist=99", "family.reply_tokens.gist None -> 99"),
        ("engine.context_tokens=999", "engine.context_tokens 1000000 -> 999"),
        ("engine.temperature=0.5", "engine.temperature 0.0 -> 0.5"),
        ("corpus.paragraphs=lines", "corpus.paragraphs auto -> lines"),
        ("corpus.name=other", "corpus.name demo -> other"),
        ("corpus.format=tables", "corpus.format text -> tables"),
        ("engine.seed=7", "seed 0 -> 7"),
        ("family=qmsum", "family.name generic -> qmsum"),
    ],
)
def test_what_may_not(warehouse: Warehouse, word: str, shown: str) -> None:
    folder = start(warehouse, night())
    with pytest.raises(UsageError, match="run=night was started with other settings") as caught:
        merge_with_stored_run(night(word), folder)
    assert shown in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_was_never_read_may_go(warehouse: Warehouse) -> None:
    """Its row says that it is left out, and to move or convert it."""
    folder = start(warehouse, night())
    unit = document_unit(DOCUMENTS, "d1.xls")
    warehouse.plan("night", (DOCUMENTS, [document_unit(DOCUMENTS, "d1"), unit]))
    plan = warehouse.folder / "plan.parquet"
    write_plan(plan, documents([document_unit(DOCUMENTS, "d1")]))
    with pytest.raises(UsageError, match=r"1 document .*\(d1.xls\)"):
        refuse_fewer(folder, plan)
    warehouse.commit(DOCUMENTS, unit, [document("d1.xls", skipped=True, detail="d1.xls: none")])
    refuse_fewer(folder, plan)
    write_plan(plan, documents([document_unit(DOCUMENTS, "d2")]))
    with pytest.raises(UsageError, match=r"1 document .*\(d1\)"):
        refuse_fewer(folder, plan)


def test_a_file_of_answers_is_one_methods() -> None:
    _refuse_shared_file({"A": "a.jsonl", "B": "b.jsonl"}, {"A": "a.jsonl", "B": "c.jsonl"})
    _refuse_shared_file({"A": "a.jsonl", "B": "a.jsonl"}, {"B": "a.jsonl"})  # of an earlier version
    with pytest.raises(UsageError, match=r"a\.jsonl: the file of the method A; copy it"):
        _refuse_shared_file({"A": "a.jsonl"}, {"C": "a.jsonl"})


def test_a_local_models_arguments_are_no_hindrance(warehouse: Warehouse) -> None:
    """Settings that hold a mapping: the same command again adds no second rater."""
    words = ("rater=vllm", "rater.model=some/model", "rater.args.dtype=float32")
    folder = start(warehouse, night(*words))
    assert merge_with_stored_run(night(*words), folder).config.raters == night(*words).config.raters
    more = merge_with_stored_run(night(*words[:2], "rater.args.dtype=bfloat16"), folder)
    dumped = [rater.model_dump() for rater in more.config.raters if rater.name == "vllm"]
    assert [rater["args"]["dtype"] for rater in dumped] == ["float32", "bfloat16"]
