"""References, evidence and labels never reach a look-up or an answer, but for oracle_pages."""

import json
import random
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.command import QMSUM, ROOT, sql, succeed

pytestmark = pytest.mark.slow

METHODS = (
    "gist_only,readagent_p(max_pages=2),readagent_s(max_pages=2),bm25(top_k=2),full_text,"
    "truncated(keep=last,num_words=500),closed_book,constant,random_pages(top_k=2),"
    "oracle_pages(top_k=2),recurrence(segment_tokens=700,summary_tokens=60),"
    "truncated_to_context(keep=first),bm25_fill_context,memwalker(segment_tokens=700,max_children=3)"
)
GOLD = ("references", "evidence", "answer_index", "answer", "relevant_text_span")
Questions = list[dict[str, Any]]


def shuffle_gold(questions: Questions) -> None:
    """The gold of each becomes that of another of its document with the same keys."""
    draw, alike = random.Random(4), defaultdict[tuple[Any, ...], Questions](list)
    for question in questions:
        keys = tuple(key for key in GOLD if key in question)
        alike[question.get("document_id"), keys].append(question)
    for (_, keys), rows in alike.items():
        gold = [{key: row[key] for key in keys} for row in rows]
        draw.shuffle(gold)
        for row, other in zip(rows, gold, strict=True):
            row.update(other)


def write_demo(folder: Path, is_shuffled: bool) -> None:
    shutil.copytree(ROOT / "conf" / "demo", folder)
    file = folder / "questions.jsonl"
    questions = [json.loads(line) for line in file.read_text().splitlines()]
    shuffle_gold(questions if is_shuffled else [])
    file.write_text("".join(json.dumps(question) + "\n" for question in questions))


def write_qmsum(folder: Path, is_shuffled: bool) -> None:
    folder.mkdir()
    meetings = [json.loads(line) for line in QMSUM.read_text().splitlines()[:3]]
    for meeting in meetings if is_shuffled else []:
        shuffle_gold(meeting["general_query_list"])
        shuffle_gold(meeting["specific_query_list"])
    (folder / "val.jsonl").write_text("".join(json.dumps(m) + "\n" for m in meetings))


@pytest.mark.parametrize(
    ("corpus", "write"), [("text", write_demo), ("qmsum", write_qmsum)], ids=["demo", "qmsum"]
)
def test_shuffled_gold_changes_no_row(corpus: str, write: Any, tmp_path: Path) -> None:
    files = []
    for is_shuffled in (False, True):
        folder, warehouse = tmp_path / f"corpus{is_shuffled}", tmp_path / f"warehouse{is_shuffled}"
        write(folder, is_shuffled)
        succeed(
            "run", f"corpus={corpus}", f"corpus.path={folder}", f"warehouse={warehouse}",
            f"methods={METHODS}", "rater=none", "max_problem_rate=1",
        )  # fmt: skip
        files.append(_rows(warehouse))
    assert len(files[0]) > 20
    assert files[0] == files[1]


def _rows(warehouse: Path) -> dict[str, list[dict[str, Any]]]:
    """Every shard of look-ups, visits, summaries and answers of methods that may not see gold."""
    stages = "('look_up', 'navigate', 'update_summary', 'answer')"
    steps = sql(warehouse, f"select step_id, method from steps where stage in {stages}")
    blind = {s["step_id"] for s in steps if not s["method"].startswith("oracle")}
    return {
        str(path.relative_to(warehouse)): pq.ParquetFile(path).read().to_pylist()
        for table in ("lookups", "visits", "running_summaries", "answers")
        for path in warehouse.glob(f"tables/{table}/*/*.parquet")
        if path.parent.name in blind
    }
