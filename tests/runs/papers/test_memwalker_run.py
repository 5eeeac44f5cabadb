"""The method memwalker from text to report, on the demo corpus with the extractive engine."""

import json
import re
from pathlib import Path

import pytest

from tests.support.command import sql, succeed

pytestmark = pytest.mark.slow

METHOD = "memwalker(segment_tokens=150,max_children=3,working_memory=visited,reasoning=true)"
WORDS = ("corpus=demo", f"methods={METHOD}", "limit=2", "memory=uniform", "rater=none", "run=walks")


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memwalker")
    succeed("run", *WORDS, f"warehouse={folder}", "max_problem_rate=1")
    return folder


def test_trees_are_whole(warehouse: Path) -> None:
    roots = sql(
        warehouse,
        """select n.level, n.start_char, n.end_char, length(d.text) as text, n.memory, n.problem
        from nodes n join documents d using (document_id) where parent is null""",
    )
    assert len(roots) == 2
    for root in roots:
        assert root["level"] >= 2 and root["problem"] is None
        assert (root["start_char"], root["end_char"]) == (0, root["text"])
        assert root["memory"] == "paginate(kind=tokens,segment_tokens=150)"
    ((most,),) = [row.values() for row in sql(warehouse, "select max(len(children)) from nodes")]
    assert most == 3
    odd = "select * from nodes a join nodes b using (memory, document_id) where a.parent = "
    assert (
        sql(warehouse, f"{odd} b.node_index and not list_contains(b.children, a.node_index)") == []
    )


def test_show_has_inner_nodes_above_their_pages(warehouse: Path) -> None:
    nodes = {
        node["node_index"]: node
        for node in sql(warehouse, "from nodes where document_id = (select min(document_id) "
                        "from nodes)")
    }  # fmt: skip
    (document_id,) = {node["document_id"] for node in nodes.values()}
    shown = ("show", document_id, "run=walks", f"warehouse={warehouse}",
             "memory=paginate(kind=tokens,segment_tokens=150)")  # fmt: skip

    def pages(number: int) -> list[int]:
        children = nodes[number]["children"]
        return [page for child in children for page in pages(child)] or [
            nodes[number]["page_index"]
        ]

    inner = [number for number, node in nodes.items() if node["children"]]
    expected = {(min(own := pages(n)), max(own), nodes[n]["summary"]) for n in inner}
    found = json.loads(succeed(*shown, "--json"))
    above = found["above"]
    assert {(t["page_index"], t["last_page_index"], t["text"]) for t in above} == expected
    assert len(above) == len(inner) > 2
    lengths = [text["last_page_index"] - text["page_index"] for text in above]
    assert lengths == sorted(lengths, reverse=True)

    out = succeed(*shown, "page=1")
    over = [n for n in inner if 1 in pages(n)]
    names = [f" · node {n} of the tree, {nodes[n]['num_words']} words\n" for n in over]
    assert all(out.count(name) == 1 for name in names)
    assert all(out.index(name) < out.index("page 1, ") for name in names)
    assert out.count(" of the tree") == 1 + len(over)  # that of the leaf stands beside its page


def test_every_question_was_walked_and_answered(warehouse: Path) -> None:
    (counts,) = sql(
        warehouse,
        """select (select count(*) from questions) as asked,
          (select count(distinct question_id) from visits) as walked,
          (select count(*) from lookups) as lookups,
          count(*) filter (problem is null) as answered, count(*) as answers,
          count(*) filter (problem is null and len(context_spans) = 1) as read
        from answers""",
    )
    assert counts["asked"] == counts["walked"] == counts["lookups"] == counts["answers"] > 5
    assert counts["answered"] == counts["read"] > 0
    rest = sql(warehouse, "select distinct problem from answers where problem is not null")
    assert [row["problem"] for row in rest] in ([], ["no_answer"])


def test_the_report_has_its_measures(warehouse: Path) -> None:
    report = succeed("report", "run=walks", f"warehouse={warehouse}")
    for heading in ("valid %", "stray %", "recovery %", "text read %", "steps", "depth"):
        assert heading in report
    means = sql(warehouse, "select measure, avg(value) as mean from measures group by all")
    found = {row["measure"]: row["mean"] for row in means}
    assert found["valid_actions"] == 100
    assert 0 < found["text_read"] <= 150 and found["steps"] > 2


def test_a_trace_shows_the_tree_and_the_walk(warehouse: Path) -> None:
    (first, *_) = sql(warehouse, "select question_id from questions order by all")
    shown = succeed("trace", first["question_id"], "run=walks", f"warehouse={warehouse}")
    assert re.search(r"^ *TREE \(\d+ nodes\)", shown, re.MULTILINE)
    assert re.search(r"^ *step 0: node \d+: to node \d+", shown, re.MULTILINE)
