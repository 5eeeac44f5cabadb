"""The method memwalker from text to report, on the demo corpus with the extractive engine."""

import json
import re
from pathlib import Path

import pytest

from tests.support.command import sql, sql_values, succeed

pytestmark = pytest.mark.slow

METHOD = "memwalker(segment_tokens=150,max_children=3,working_memory=visited,reasoning=true)"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memwalker")
    words = ("corpus=demo", f"methods={METHOD}", "limit=2", "memory=uniform", "rater=none")
    succeed("run", *words, "run=walks", f"warehouse={folder}", "max_problem_rate=1")
    return folder


def test_show_has_inner_nodes_above_their_pages(warehouse: Path) -> None:
    query = "from nodes where document_id = (select min(document_id) from nodes)"
    nodes = {node["node_index"]: node for node in sql(warehouse, query)}
    (document_id,) = {node["document_id"] for node in nodes.values()}
    shown = ("show", document_id, "run=walks", f"warehouse={warehouse}",
             "memory=paginate(kind=tokens,segment_tokens=150)")  # fmt: skip

    def pages(number: int) -> list[int]:
        node = nodes[number]
        below = [page for child in node["children"] for page in pages(child)]
        return below or [node["page_index"]]

    inner = [number for number, node in nodes.items() if node["children"]]
    expected = {(min(pages(n)), max(pages(n)), nodes[n]["summary"]) for n in inner}
    above = json.loads(succeed(*shown, "--json"))["above"]
    assert {(t["page_index"], t["last_page_index"], t["text"]) for t in above} == expected
    assert len(above) == len(inner) > 2
    lengths = [text["last_page_index"] - text["page_index"] for text in above]
    assert lengths == sorted(lengths, reverse=True)

    before, _, after = succeed(*shown, "page=1").partition("page 1, ")
    over = [f"node {n} of the tree, {nodes[n]['num_words']} w" for n in inner if 1 in pages(n)]
    assert sorted(re.findall(r"node \d+ of the tree, \d+ w", before)) == sorted(over)
    assert after.count(" of the tree") == 1  # that of the leaf stands beside its page


def test_every_question_was_walked_and_answered(warehouse: Path) -> None:
    (counts,) = sql_values(
        warehouse,
        """select (select count(*) from questions), (select count(*) from lookups),
          (select count(distinct question_id) from visits), count(*) from answers""",
    )
    assert len({*counts}) == 1 and counts[0] > 5
    query = "select distinct len(context_spans) from answers where problem is null"
    assert sql_values(warehouse, query) == [(1,)]
    rest = sql_values(warehouse, "select distinct problem from answers where problem is not null")
    assert rest in ([], [("no_answer",)])


def test_report_and_trace_show_the_walks(warehouse: Path) -> None:
    report = succeed("report", "run=walks", f"warehouse={warehouse}")
    for heading in ("valid %", "stray %", "recovery %", "text read %", "steps", "depth"):
        assert heading in report
    means = dict(sql_values(warehouse, "select measure, avg(value) from measures group by all"))
    assert means["valid_actions"] == 100
    assert 0 < means["text_read"] <= 150 and means["steps"] > 2
    (first, *_) = sql(warehouse, "select question_id from questions order by all")
    shown = succeed("trace", first["question_id"], "run=walks", f"warehouse={warehouse}")
    assert re.search(r"^ *NODES \(\d+ rows\)", shown, re.MULTILINE)
    assert re.search(r"^ *step 0: node \d+: to node \d+", shown, re.MULTILINE)
