"""MemoRAG and its baselines from text to report, with the extractive engine; and the contract for a
memory of trained key-value states: a plugin brings the kind of `memorize` and an engine of its own
(docs/methods/memorag.md)."""

import json
import re
from pathlib import Path

import pytest

from jobs.graph.resolved_run import read_run
from tests.support.command import QMSUM, ROOT, own_process, sql, sql_values, succeed, succeeded

BM25 = "retriever=bm25"
METHODS = (
    f"methods=memorag(memory=full|gists|gist_memory,{BM25},draft=true),memorag_summary({BM25}),"
    f"hyde({BM25}),rq_rag({BM25}),rag({BM25})"
)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memorag")
    words = ("corpus=demo", "memory=uniform", "rater=none", "run=clues", METHODS)
    succeed("run", *words, f"warehouse={folder}")
    return folder


@pytest.mark.slow
def test_a_memory_is_made_once_for_all_questions(warehouse: Path) -> None:
    passages = sql_values(
        warehouse,
        """select memory, count(distinct step_id), count(distinct document_id),
          count(*) filter (gist is null), max(part_index)
        from memory_passages group by all order by memory""",
    )
    assert passages == [
        ("paginate(kind=tokens,segment_tokens=4096)", 1, 3, 0, 0),
        ("shared", 1, 3, 0, 0),
        ("text", 1, 3, 3, 0),
    ]
    calls = sql_values(warehouse, "select count(*) from calls where prompt = 'gist_chunk'")
    chunks = sql_values(warehouse, "select count(*) from pages where memory like '%4096%'")
    assert calls == chunks and chunks[0][0] >= 3


@pytest.mark.slow
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
    query = """select split_part(method, '(', 1) as method, list(distinct kind order by kind)
    from queries group by all"""
    assert dict(sql_values(warehouse, query)) == {
        "memorag": ["draft", "question", "span", "surrogate"],
        "memorag_summary": ["point"],
        "hyde": ["hypothetical", "question"],
        "rq_rag": ["question", "sub_question"],
    }


@pytest.mark.slow
def test_report_and_trace_show_them(warehouse: Path) -> None:
    report = succeed("report", "run=clues", f"warehouse={warehouse}")
    assert re.search(r"^\| method .*rouge1_stem.* CR .* queries .*# LU", report, re.MULTILINE)
    (first, *_) = sql(warehouse, "select question_id from questions order by all")
    shown = succeed("trace", first["question_id"], "run=clues", f"warehouse={warehouse}")
    for line in (r"MEMORY text", r"MEMORY_PASSAGES \(1 rows\)",
                 r"query_index 0, kind question, text \S+",
                 r"look-up 0 by query 0: asked for \["):  # fmt: skip
        assert re.search(rf"^ *{line}", shown, re.MULTILINE), line


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
    words = ["corpus=demo", "rater=none", f"methods=memorag({arguments})"]
    steps = read_run([*words, f"embedder.model={tmp_path}"]).steps
    names = [
        f"{s.name} {s.settings.get('segment_tokens') or s.settings.get('kind', '')}".strip()
        for s in steps if s.stage and not s.per_question
    ]  # fmt: skip
    assert sorted(names) == made


PLUGIN = f"plugins={ROOT / 'tests' / 'support' / 'states_plugin'}"
STATES = (
    PLUGIN, "memory_engine=states", "corpus=qmsum", f"corpus.path={QMSUM}", "limit=2", "rater=none",
    "methods=memorag(memory=states,retriever=bm25)", "cluster=inline", "run=r",
)  # fmt: skip


@pytest.mark.slow
def test_clues_are_the_memory_engine_s_and_answers_the_reader_s(tmp_path: Path) -> None:
    """16 words a state: the engine says how many tokens a prompt takes, and what fits none of the
    reader's context fits the states."""
    succeeded(own_process("run", *STATES, f"warehouse={tmp_path}"))
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
    runs = [read_run([*STATES, f"memory_engine.ratio={ratio}"]) for ratio in (16, 4)]
    one, other = ({step.id for step in run.steps if step.table == "queries"} for run in runs)
    assert one != other
    stored = json.loads(runs[1].config.model_dump_json())["memory_engine"]
    assert (stored["name"], stored["ratio"]) == ("states", 4)
