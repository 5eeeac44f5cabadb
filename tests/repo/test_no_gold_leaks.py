"""References, evidence and labels never reach a look-up or an answer, but for oracle_pages."""

import json
import random
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.command import ROOT, sql, succeed

pytestmark = pytest.mark.slow

METHODS = (
    "gist_only,readagent_p(max_pages=2),readagent_s(max_pages=2),bm25(top_k=2),full_text,"
    "truncated(keep=last,num_words=500),closed_book,constant,random_pages(top_k=2),"
    "oracle_pages(top_k=2),recurrence(segment_tokens=700,summary_tokens=60),"
    "truncated_to_context(keep=first),bm25_fill_context,memwalker(segment_tokens=700,max_children=3)"
)
GOLD = ("references", "evidence", "answer_index")


def demo(folder: Path, is_shuffled: bool) -> Path:
    """The demo; shuffled, the gold of each question is that of another of its document with the
    same keys."""
    shutil.copytree(ROOT / "conf" / "demo", folder)
    file, draw = folder / "questions.jsonl", random.Random(4)
    questions = [json.loads(line) for line in file.read_text().splitlines()]
    alike = defaultdict(list)
    for question in questions if is_shuffled else []:
        keys = tuple(key for key in GOLD if key in question)
        alike[question["document_id"], keys].append(question)
    for (_, keys), rows in alike.items():
        gold = [{key: row[key] for key in keys} for row in rows]
        draw.shuffle(gold)
        for row, other in zip(rows, gold, strict=True):
            row.update(other)
    file.write_text("".join(json.dumps(question) + "\n" for question in questions))
    return folder


def test_shuffled_gold_changes_no_row(tmp_path: Path) -> None:
    files = []
    for is_shuffled in (False, True):
        corpus = demo(tmp_path / f"corpus{is_shuffled}", is_shuffled)
        warehouse = tmp_path / f"warehouse{is_shuffled}"
        succeed(
            "run", "corpus=text", f"corpus.path={corpus}", f"warehouse={warehouse}",
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
