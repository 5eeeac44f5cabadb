"""The methods of docs/methods/budgets.md within four budgets on a meeting of QMSum: SQL counts the
tokens that they read again, from the texts in other tables."""

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from tests.support.command import QMSUM, sql, succeed
from tests.support.docs.pages import blocks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TOKEN = r"[\p{L}\p{N}_]+|[^\p{L}\p{N}_\s]"  # of the extractive engine, as DuckDB writes it
BUDGETS = (1000, 2000, 4000, 8000)
(COMMAND,) = [block for block in blocks("docs/methods/budgets.md", "sh") if "dos_rag" in block]
CHOSEN = COMMAND.partition("methods='")[2].partition("'")[0]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("budgets") / "warehouse"
    succeed(
        "run", "corpus=qmsum", f"corpus.path={QMSUM}", "limit=1", "rater=none",
        f"warehouse={folder}", "run=budgets", f"methods={CHOSEN}", "max_problem_rate=1",
    )  # fmt: skip
    return folder


def test_no_context_passes_its_budget_and_all_but_gists_fit(warehouse: Path) -> None:
    """Eleven methods, each with all four budgets. SQL counts the same tokens."""
    found: Counter[tuple[str, int]] = Counter()
    for row in sql(warehouse, "from answers"):
        method = row["method"].partition("(")[0]
        budget = int(re.findall(r"budget=(\d+)", row["method"])[-1])
        found[method, budget] += 1
        if row["problem"] == "context_overflow":
            assert method.startswith("readagent") and budget <= 2000
            assert row["detail"].startswith(f"budget={budget}: the context has 3")
        else:
            assert (row["problem"], row["num_context_tokens"] <= budget) == (None, True)
            assert row["num_context_tokens"] >= row["num_context_words"]
    methods = {method for method, _ in found}
    assert len(methods) == 11 and len({*found.values()}) == 1
    assert found.keys() == {(method, budget) for method in methods for budget in BUDGETS}
    rows = sql(warehouse, (Path(__file__).parent / "counted_again.sql").read_text())
    assert len(rows) >= 200  # of 220; the rest are gists that fit no budget
    assert [row for row in rows if row["counted"] != row["num_context_tokens"]] == []


def test_memagents_sizes_fit_its_window(tmp_path: Path) -> None:
    """Segments of 5,000 tokens, each read with a memory of at most 1,024, in 8,192."""
    (command,) = [block for block in blocks("docs/methods/budgets.md", "sh") if "memagent" in block]
    words = [word for word in shlex.split(command)[1:] if not word.startswith("corpus.path=")]
    succeed(*words, f"corpus.path={QMSUM}", f"warehouse={tmp_path}")
    (read,) = sql(
        tmp_path,
        f"""select count(*) as n, count(running_summaries.problem) as problems,
          count(distinct segment_index) as segments,
          max(length(regexp_extract_all(summary, '{TOKEN}'))) as memory,
          any_value(length(regexp_extract_all(text, '{TOKEN}'))) as tokens
        from running_summaries join documents using (document_id)""",
    )
    assert read["n"] == 5 * read["segments"]
    assert read["segments"] == -(-read["tokens"] // 5000) and read["problems"] == 0
    assert 500 < read["memory"] <= 1024
    (sent,) = sql(tmp_path, "select max(prompt_tokens) as most from calls")
    assert 5000 < sent["most"] <= 8192 - 1024
