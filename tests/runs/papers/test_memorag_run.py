"""MemoRAG and its baselines from text to report, with the extractive engine."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.graph.read_run import read_run
from pipeline.work.steps import Step
from tests.support.command import gistmill, refused, sql, succeed, succeeded
from tests.support.runs.shown_calls import shown

pytestmark = pytest.mark.slow

BM25 = "retriever=bm25"
METHODS = (
    f"methods=memorag(memory=full|gists|gist_memory,{BM25},draft=true),memorag_summary({BM25}),"
    f"hyde({BM25}),rq_rag({BM25}),rag({BM25})"
)
WORDS = ("corpus=demo", "memory=uniform", "rater=none", "run=clues", METHODS)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memorag")
    succeed("run", *WORDS, f"warehouse={folder}")
    return folder


def steps(*words: str) -> list[Step]:
    return read_run(["corpus=demo", "rater=none", *words]).steps


def test_a_memory_is_made_once_for_all_questions(warehouse: Path) -> None:
    found = sql(
        warehouse,
        """select memory, count(distinct step_id) as steps, count(distinct document_id) as texts,
          count(*) filter (gist is null) as raw, max(part_index) as parts
        from memory_passages group by all order by memory""",
    )
    assert [list(row.values()) for row in found] == [
        ["paginate(kind=tokens,segment_tokens=4096)", 1, 3, 0, 0],
        ["shared", 1, 3, 0, 0],
        ["text", 1, 3, 3, 0],
    ]
    (calls,) = sql(
        warehouse,
        """select (select count(*) from calls where prompt = 'gist_chunk') as gists,
          (select count(*) from pages where memory like '%4096%') as chunks""",
    )
    assert calls["gists"] == calls["chunks"] >= 3


def test_what_is_read_is_what_the_queries_found(warehouse: Path) -> None:
    rows = sql(
        warehouse,
        """select method, question_id, a.page_indexes as read, a.memory as memory,
          list(l.requested) as found, list(l.query_index order by turn) as queries
        from answers a join lookups l using (method, question_id)
        group by all""",
    )
    asked = sql(warehouse, "select method, question_id, query_index from queries "
                           "where dropped is null and text is not null order by all")  # fmt: skip
    assert len(rows) == 7 * 30
    for row in rows:
        assert row["read"] == sorted({page for pages in row["found"] for page in pages})
        assert row["memory"] == "paginate(kind=tokens,segment_tokens=512)"
        if row["method"].startswith("hyde("):
            assert row["queries"] == [None], "all of them by their mean"
        elif not row["method"].startswith("rag("):
            key = row["method"], row["question_id"]
            assert row["queries"] == [q["query_index"] for q in asked
                                      if (q["method"], q["question_id"]) == key]  # fmt: skip


def test_kinds_of_queries(warehouse: Path) -> None:
    found = sql(warehouse, "select method, list(distinct kind order by kind) as kinds from queries "
                           "group by method")  # fmt: skip
    kinds = {row["method"].split("(")[0]: row["kinds"] for row in found}
    assert kinds == {
        "memorag": ["draft", "question", "span", "surrogate"],
        "memorag_summary": ["point"],
        "hyde": ["hypothetical", "question"],
        "rq_rag": ["question", "sub_question"],
    }


def test_report_and_trace_show_them(warehouse: Path) -> None:
    report = succeed("report", "run=clues", f"warehouse={warehouse}")
    (heading,) = re.findall(r"^\| method .*\| queries \|.*$", report, re.MULTILINE)
    assert (
        heading.index("rouge1_stem")
        < heading.index("CR")
        < heading.index("queries")
        < heading.index("# LU")
    )
    (first, *_) = sql(warehouse, "select question_id from questions order by all")
    shown = succeed("trace", first["question_id"], "run=clues", f"warehouse={warehouse}")
    for line in (r"MEMORY text", r"MEMORY FOR CLUES \(1 passages\)", r"query 0 \(question\): \S+",
                 r"look-up 0 by query 0: asked for \["):  # fmt: skip
        assert re.search(rf"^ *{line}", shown, re.MULTILINE), line


def test_the_same_command_asks_nothing_again(warehouse: Path) -> None:
    before = {f: f.stat().st_mtime_ns for f in (warehouse / "tables").rglob("*.parquet")}
    succeed("run", *WORDS, f"warehouse={warehouse}")
    assert {f: f.stat().st_mtime_ns for f in (warehouse / "tables").rglob("*.parquet")} == before


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        ("memory=full,retriever=bm25", ["memorize full", "paginate 512"]),
        ("memory=gists,retriever=bm25", ["memorize gists", "paginate 4096", "paginate 512"]),
        ("memory=gist_memory,retriever=bm25",
         ["gist", "memorize gist_memory", "paginate 512", "paginate model"]),
        ("memory=full,retriever=dense", ["embed pages", "memorize full", "paginate 512"]),
    ],
)  # fmt: skip
def test_of_its_memories_a_method_makes_what_it_reads(
    arguments: str, made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.engines.embedder.find_spec", lambda name: name)  # the extra dense
    (tmp_path / "config.json").write_text("{}")
    found = steps(f"methods=memorag({arguments})", f"embedder.model={tmp_path}")
    index = [step for step in found if step.stage and not step.per_question]
    names = [
        f"{s.name} {s.settings.get('segment_tokens') or s.settings.get('kind', '')}" for s in index
    ]
    assert sorted(name.strip() for name in names) == made


def test_the_retriever_needs_its_model() -> None:
    line = refused("run", "corpus=demo", "methods=memorag")
    assert "embedder.model is not set, and memorag(" in line
    assert "no kind 'colbert'" in refused("run", "methods=rag(retriever=colbert)")
    assert "no kind 'beacon'" in refused("run", f"methods=memorag(memory=beacon,{BM25})")
    assert "memory_fit" in refused("run", f"methods=memorag(memory_fit=cut,{BM25})")


@pytest.mark.slow
def test_the_memory_model_may_be_another(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(yaml.safe_dump({"replies": [{"reply": "the press\nthe vote"}]}))
    words = ("corpus=demo", "limit=1", "memory=uniform", "rater=none", "run=r",
             f"methods=memorag(memory=gist_memory,{BM25})", "memory_engine=scripted",
             f"memory_engine.script={script}", f"warehouse={tmp_path / 'w'}")  # fmt: skip
    found = read_run(list(words)).phases
    assert [(phase.section, sorted({step.name for step in phase.steps})) for phase in found] == [
        ("engine", ["gist", "paginate"]),
        ("memory_engine", ["memorize", "queries"]),
        ("engine", ["answer", "search"]),
        ("cluster", ["score"]),
    ]
    succeed("run", *words)
    engines = sql(tmp_path / "w", "select distinct stage, engine from calls order by all")
    assert [tuple(row.values()) for row in engines] == [
        ("answer", "extractive"), ("gist", "extractive"), ("queries", "scripted:script"),
    ]  # fmt: skip
    texts = sql(tmp_path / "w", "select distinct text from queries where kind = 'span' order by 1")
    assert [row["text"] for row in texts] == ["the press", "the vote"]


@pytest.mark.slow
def test_a_memory_without_room_is_an_overflow_or_cut(tmp_path: Path) -> None:
    """The demo's texts have some 3,500 tokens each."""
    fits = "refuse|head|tail|split"
    done = gistmill(
        "run", "corpus=demo", "limit=1", "memory=uniform", "rater=none", "run=r",
        f"methods=memorag(memory_fit={fits},{BM25},top_k=1)", "engine.context_tokens=2500",
        f"warehouse={tmp_path}", "max_problem_rate=1",
    )  # fmt: skip
    succeeded(done, 0)
    found = sql(
        tmp_path,
        """select regexp_extract(method, 'memory_fit=(\\w+)', 1) as fit,
          count(*) filter (problem = 'upstream') as lost, count(*) as n,
          (select max(part_index) from memory_passages m
            where m.step_id in (select unnest(upstream) from steps s
              where s.stage = 'queries' and s.method = answers.method)) as parts
        from answers group by method order by fit""",
    )
    assert [(row["fit"], row["lost"] == row["n"], (row["parts"] or 0) > 0) for row in found] == [
        ("head", False, False), ("refuse", True, False), ("split", False, True),
        ("tail", False, False),
    ]  # fmt: skip
    overflows = sql(tmp_path, "select distinct problem from queries where problem is not null")
    assert [row["problem"] for row in overflows] == ["context_overflow"]


@pytest.mark.slow
def test_reports_are_summarized_from_their_key_points(tmp_path: Path) -> None:
    """A file of GovReport as SCROLLS has it: no question, one row per reference."""
    reports = [f"The agency audited {n} depots. It found {n} faults. " * 40 for n in (3, 5)]
    rows = [{"id": f"r{n}", "pid": f"r{n}_0", "input": text, "output": f"{n} faults."}
            for n, text in enumerate(reports)]  # fmt: skip
    (tmp_path / "validation.jsonl").write_text("\n".join(map(json.dumps, rows)))
    succeed("run", "experiment=govreport", f"corpus.path={tmp_path / 'validation.jsonl'}",
            "rater=none", f"warehouse={tmp_path / 'w'}")  # fmt: skip
    found = sql(tmp_path / "w", "select distinct kind from queries")
    assert [row["kind"] for row in found] == ["point"]
    (answers,) = sql(
        tmp_path / "w",
        """select count(*) as n, count(*) filter (problem is null) as ok from answers
        where method like 'memorag_summary%'""",
    )
    assert (answers["n"], answers["ok"]) == (4, 4)


@pytest.mark.slow
def test_ultradomain_whole(tmp_path: Path) -> None:
    """Two books of two domains, three questions each, in one command; the memory of a book is one
    for all its questions, and the report has a line per domain."""
    story = "The keeper of tower {n} carried oil in a tin can. " * 30
    rows: list[dict[str, Any]] = [
        {"_id": f"{domain}{n}", "input": f"What did keeper {n} carry?", "answers": ["oil"],
         "context": f"\n{story.format(n=domain)}", "context_id": domain, "label": domain,
         "length": 9, "meta": {"title": f"Towers of {domain}"}}
        for domain in ("cs", "legal") for n in range(3)
    ]  # fmt: skip
    (tmp_path / "all.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = ("experiment=ultradomain", f"corpus.path={tmp_path / 'all.jsonl'}",
             f"warehouse={tmp_path / 'w'}")  # fmt: skip
    named = {method.name.split("(")[0] for method in read_run(words).methods}
    assert {"memorag", "hyde", "rq_rag", "rag", "full_text", "readagent_p", "constant"} <= named
    assert "embedder.model" in refused("run", *words, "embedder.model=null")
    succeed("run", *words, f"{METHODS},full_text", "run=u", "rater=none")
    (books,) = sql(tmp_path / "w", "select count(*) as n from documents")
    (memories,) = sql(tmp_path / "w", "select count(*) as n from memory_passages "
                                      "where memory = 'text'")  # fmt: skip
    assert (books["n"], memories["n"]) == (2, 2)
    report = json.loads(
        succeed("report", "run=u", f"warehouse={tmp_path / 'w'}", "by=question_type", "--json")
    )
    found = {(row["method"].split("(")[0], row["by"]) for row in report["rows"]}
    assert {("memorag", "cs"), ("memorag", "legal"), ("rag", "cs"), ("full_text", "cs")} <= found
    assert all("longbench_f1" in row["means"] for row in report["rows"])


def test_every_call_is_shown_as_it_was_sent(warehouse: Path) -> None:
    found = shown(warehouse)
    assert found and all(call["messages"] for call in found)
