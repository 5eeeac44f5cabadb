"""A stored run: what may change of it, and what failed in it is asked again."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from upath import UPath

from jobs.graph.preparation import prepare
from jobs.graph.resolved_run import ResolvedRun, read_run, run_manifest, run_of
from jobs.run.stored_run import merge_with_stored_run, refuse_fewer, run_again, stored_config
from pipeline.asking.ask import Ask
from pipeline.asking.replies import Replies, SharedReplies
from pipeline.core.calls import Call, Subject
from pipeline.core.engine import Reply, Request
from pipeline.core.errors import UsageError
from pipeline.engines.scripted import ScriptedEngine
from pipeline.store.runs.run_folder import RunFolder, write_plan
from pipeline.work.units import RETRY_TIMEOUTS_ONCE, RETRYABLE, RetryPolicy
from stages.prompts.readagent_memory import PageGist
from tests.jobs.run.test_graceful_stop import shards
from tests.support.command import refused
from tests.support.runs.small_run import RULES, SmallRun
from tests.support.runs.warehouse import Warehouse, document, document_unit, step
from tests.support.runs.written_plan import documents, units_of

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


def test_a_file_of_answers_is_one_methods(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"q1": "a"}')

    def of(method: str) -> ResolvedRun:
        values = night().config.model_dump(mode="json")
        return run_of({**values, "predictions": {method: str(tmp_path / "a.json")}})

    folder = start(tmp_path, of("A"))
    assert [*merge_with_stored_run(of("A"), folder).config.predictions] == ["A"]
    with pytest.raises(UsageError, match=r"a\.json: the file of the method A; copy it"):
        merge_with_stored_run(of("B"), folder)


def test_a_local_models_arguments_are_no_hindrance(tmp_path: Path) -> None:
    """Settings that hold a mapping: the same command again adds no second rater."""
    words = ("rater=vllm", "rater.model=some/model", "rater.args.dtype=float32")
    folder = start(tmp_path, night(*words))
    assert merge_with_stored_run(night(*words), folder).config.raters == night(*words).config.raters
    more = merge_with_stored_run(night(*words[:2], "rater.args.dtype=bfloat16"), folder)
    dumped = [rater.model_dump() for rater in more.config.raters if rater.name == "vllm"]
    assert [rater["args"]["dtype"] for rater in dumped] == ["float32", "bfloat16"]


ALL = RetryPolicy(frozenset(RETRYABLE))
NO_GIST = {"prompt": "gist", "match": "river1 paragraph one", "finish_reason": "abort"}
CUT = {"finish_reason": "length"}
Rule = Mapping[str, Any]


class Engine(ScriptedEngine):
    """Replies by the rules, else as the engine of the small run; keeps what it was asked."""

    def __init__(self, small: SmallRun, *rules: Rule) -> None:
        script = small.folder / "rules.yaml"
        script.write_text(yaml.safe_dump({"replies": [*map(dict, rules), *RULES]}))
        super().__init__(str(script), small.reader.engine.context_tokens)
        self.asked: list[Request] = []

    async def generate(self, request: Request) -> Reply:
        self.asked.append(request)
        return await super().generate(request)

    @property
    def prompts(self) -> dict[str, int]:
        return dict(Counter(request.prompt for request in self.asked))


def work(
    small: SmallRun, *rules: Rule, retries: RetryPolicy | None = RETRY_TIMEOUTS_ONCE
) -> Engine:
    """All that is planned, by one worker; the engine that it asked."""
    engine = Engine(small, *rules)
    warehouse = small.config.warehouse
    prepared = prepare(small.resolved, warehouse, lambda line: None, retry_policy=retries)

    async def all_of_them() -> None:
        worker = small.worker(replace(small.reader, engine=engine))
        units = units_of(prepared).items()
        await asyncio.gather(*(worker.work(name, planned, 0) for name, planned in units))

    asyncio.run(all_of_them())
    return engine


@pytest.fixture
def small(tmp_path: Path) -> SmallRun:
    return SmallRun(tmp_path)


def problems(small: SmallRun, table: str, attempt: int) -> list[Any]:
    """The problems of d1's rows in a table, whose unit is done by this attempt."""
    step = small.step(table)
    (unit,) = [unit for unit in small.units()["d1"] if unit.step_id == step.id]
    assert (unit.is_done, unit.attempt) == (True, attempt)
    return [row.problem for row in small.shards.load(step.writes, step.id, unit.unit, attempt)]


def test_what_got_no_reply_is_asked_again_once_by_the_same_command(small: SmallRun) -> None:
    work(small, NO_GIST)
    assert problems(small, "gists", 1) == ["engine_failed", None, None]
    assert problems(small, "answers", 1) == ["upstream"] * 2
    before = shards(small.folder / "warehouse")
    again = work(small)
    # One gist, and what reads it: two questions with one reference each, rated by two prompts.
    assert again.prompts == {
        "gist": 1, "look_up_p": 2, "answer": 2, "rate_strict": 2, "rate_permissive": 2,
    }  # fmt: skip
    assert problems(small, "gists", 2) == [None] * 3
    assert problems(small, "answers", 1) == [None] * 2
    after = shards(small.folder / "warehouse")
    assert before.items() < after.items(), "nothing that there was is touched"
    assert work(small).asked == []


def test_then_only_by_a_retry(small: SmallRun) -> None:
    work(small, NO_GIST)
    assert work(small, NO_GIST).prompts == {"gist": 1}
    assert work(small, NO_GIST).prompts == {}
    assert work(small, NO_GIST, retries=ALL).prompts == {"gist": 1}
    assert problems(small, "gists", 3) == ["engine_failed", None, None]
    assert work(small, retries=ALL).prompts["gist"] == 1
    assert problems(small, "gists", 4) == [None] * 3
    assert work(small, retries=ALL).asked == []


@pytest.mark.parametrize(
    ("reply", "problem"), [({"reply": " "}, "unparseable"), ({**CUT, "reply": "far"}, "truncated")]
)
def test_a_retry_asks_again_what_cannot_be_used(small: SmallRun, reply: Rule, problem: str) -> None:
    work(small, {"prompt": "answer", "match": "number 1 ", **reply})
    assert problems(small, "answers", 1) == [problem, None]
    assert work(small).asked == [], "not by the same command"
    again = work(small, retries=ALL)
    # The other answer is replayed. Ratings read both, as one shard.
    assert again.prompts == {"answer": 1, "rate_strict": 2, "rate_permissive": 2}
    assert problems(small, "answers", 2) == [None, None]
    assert problems(small, "ratings", 1) == [None] * 4
    step = small.step("answers")
    kept = small.shards.recorded(step.id, small.shard("answers").name.split(".")[0], 2)
    assert kept is not None and [call.question_id for call in kept] == ["q1", "q2"]


def test_a_crashed_unit_is_tried_again(small: SmallRun, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(self: Any, rows: Any, ask: Any) -> Iterable[Any]:
        raise KeyError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(type(small.step("answers").stage), "run", run)
        work(small)
    assert problems(small, "answers", 1) == ["unit_failed"] * 2
    assert work(small).asked == []
    assert work(small, retries=ALL).prompts["answer"] == 3
    assert problems(small, "answers", 2) == [None] * 2


def test_a_shared_reply_that_cannot_be_used_is_asked_again_once_for_all(
    small: SmallRun, tmp_path: Path
) -> None:
    """Two documents hold the same page; its gist was cut off, and the retry of each finds that."""
    shared = SharedReplies(UPath(tmp_path) / "shared")

    def asked(document_id: str, log: Replies, *rules: Rule) -> tuple[int, tuple[Call, ...]]:
        engine = Engine(small, *rules)
        reader = replace(small.reader, engine=engine)
        ask = Ask(reader, "gist", document_id, replace(log, shared=shared))
        asyncio.run(ask(PageGist(page="the same page"), Subject(page_index=0), is_shared=True))
        return len(engine.asked), ask.calls()

    cut = {**CUT, "reply": "cut"}
    first = {name: asked(name, Replies(), cut) for name in ("d1", "d2")}
    assert [num for num, _ in first.values()] == [1, 0]
    again = {
        name: asked(name, Replies(attempt=2, earlier=calls, problems=calls))
        for name, (_, calls) in first.items()
    }
    assert [num for num, _ in again.values()] == [1, 0]
    assert [calls[0].reply for _, calls in again.values()] == ["as it was"] * 2


def test_words_that_retry_does_not_take() -> None:
    with pytest.raises(UsageError, match="retry takes warehouse, run"):
        run_again(["methods=bm25"])
    with pytest.raises(UsageError, match="problem=upstream: not asked again; write some of"):
        run_again(["problem=unparseable,upstream"])
    assert "no run there" in refused("retry", "warehouse=/nowhere/at")
