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


def night(*words: str) -> ResolvedRun:
    return read_run(["run=night", "methods=bm25", "rater=none", *words])


def start(warehouse: Path, config: ResolvedRun) -> RunFolder:
    """The run as it is once it has begun."""
    folder = RunFolder(warehouse, config.name)
    folder.start(run_manifest(config), {}, has_work=True)
    return folder


def test_a_run_without_a_name_gets_its_own(tmp_path: Path) -> None:
    resolved = read_run([])
    folder = start(tmp_path, resolved)
    assert merge_with_stored_run(resolved, folder) is resolved, "nothing is resolved again"
    more = merge_with_stored_run(read_run([f"run={resolved.name}", "rater=extractive"]), folder)
    assert (more.name, more.config.run) == (resolved.name, resolved.name)


def test_methods_and_raters_are_added_to_those_there_are(tmp_path: Path) -> None:
    folder = start(tmp_path, night("methods=bm25(top_k=1|2)"))
    words = ("methods=gist_only,bm25(top_k=2)", "rater=extractive", "rater.context_tokens=5000")
    both = merge_with_stored_run(night(*words), folder)
    names = [method.name for method in both.methods]
    assert names == ["bm25(top_k=1)", "bm25(top_k=2)", "gist_only"]
    assert [rater.name for rater in both.config.raters] == ["none", "extractive"]
    start(tmp_path, both)
    assert stored_config(folder) == both.config
    again = merge_with_stored_run(night("rater=reader"), folder)
    assert [rater.name for rater in again.config.raters] == ["none", "extractive", "reader"]
    assert len(again.config.engines("judge")) == 2


@pytest.mark.parametrize(
    "word",
    ["limit=3", "sample=2", "corpus.path=elsewhere", "warehouse=elsewhere", "engine.max_workers=1",
     "engine.deadline_seconds=5.0", "engine.sequences=2", "max_problem_rate=0.5",
     "corpus.seed=3"],
)  # fmt: skip
def test_what_may_change(tmp_path: Path, word: str) -> None:
    assert merge_with_stored_run(night(word), start(tmp_path, night())).config.run == "night"


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
def test_what_may_not(tmp_path: Path, word: str, shown: str) -> None:
    folder = start(tmp_path, night())
    with pytest.raises(UsageError, match="run=night was started with other settings") as caught:
        merge_with_stored_run(night(word), folder)
    assert shown in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_was_never_read_may_go(tmp_path: Path) -> None:
    """Its row says that it is left out, and to move or convert it."""
    folder, warehouse = start(tmp_path, night()), Warehouse(tmp_path)
    kept, unit = document_unit(DOCUMENTS, "d1"), document_unit(DOCUMENTS, "d1.xls")
    warehouse.plan("night", (DOCUMENTS, [kept, unit]))
    plan = tmp_path / "plan.parquet"
    write_plan(plan, documents([kept]))
    with pytest.raises(UsageError, match=r"1 document .*\(d1.xls\)"):
        refuse_fewer(folder, plan)
    warehouse.commit(DOCUMENTS, unit, [document("d1.xls", skipped=True, detail="d1.xls: none")])
    refuse_fewer(folder, plan)


def test_a_file_of_answers_is_one_methods() -> None:
    _refuse_shared_file({"A": "a.jsonl", "B": "b.jsonl"}, {"A": "a.jsonl", "B": "c.jsonl"})
    _refuse_shared_file({"A": "a.jsonl", "B": "a.jsonl"}, {"B": "a.jsonl"})  # of an earlier version
    with pytest.raises(UsageError, match=r"a\.jsonl: the file of the method A; copy it"):
        _refuse_shared_file({"A": "a.jsonl"}, {"C": "a.jsonl"})


def test_a_local_models_arguments_are_no_hindrance(tmp_path: Path) -> None:
    """Settings that hold a mapping: the same command again adds no second rater."""
    words = ("rater=vllm", "rater.model=some/model", "rater.args.dtype=float32")
    folder = start(tmp_path, night(*words))
    assert merge_with_stored_run(night(*words), folder).config.raters == night(*words).config.raters
    more = merge_with_stored_run(night(*words[:2], "rater.args.dtype=bfloat16"), folder)
    dumped = [rater.model_dump() for rater in more.config.raters if rater.name == "vllm"]
    assert [rater["args"]["dtype"] for rater in dumped] == ["float32", "bfloat16"]
