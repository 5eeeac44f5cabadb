"""References, evidence and labels never reach a look-up or an answer, but for oracle_pages."""

import json
import shutil
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
OTHER_GOLD: dict[str, Any] = {
    "references": ["Nobody knows."], "evidence": [{"start_char": 7, "end_char": 99}],
    "answer_index": 0, "answer": "Nobody knows.", "relevant_text_span": [["0", "1"]],
}  # fmt: skip


def write(folder: Path, corpus: str, has_other_gold: bool) -> None:
    """Three meetings of QMSum, or the demo."""
    if corpus == "qmsum":
        folder.mkdir()
        file, lines = folder / "val.jsonl", QMSUM.read_text().splitlines()[:3]
    else:
        shutil.copytree(ROOT / "conf" / "demo", folder)
        file = folder / "questions.jsonl"
        lines = file.read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    for row in rows if has_other_gold else []:
        of_meeting = [*row.get("general_query_list", ()), *row.get("specific_query_list", ())]
        for question in of_meeting or [row]:
            question.update({key: OTHER_GOLD[key] for key in OTHER_GOLD.keys() & question.keys()})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("corpus", ["text", "qmsum"])
def test_other_gold_changes_no_row(corpus: str, tmp_path: Path) -> None:
    files = []
    for is_other in (False, True):
        folder, warehouse = tmp_path / f"corpus{is_other}", tmp_path / f"warehouse{is_other}"
        write(folder, corpus, is_other)
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
