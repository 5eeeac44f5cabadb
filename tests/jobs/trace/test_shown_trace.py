"""What `gistmill trace` prints: what each method read, and of memories no more than their parts."""

from pathlib import Path

import pytest

from tests.support.command import sql, succeed
from tests.support.texts.small_corpus import UNIFORM, document, question, write

METHODS = "methods=gist_only,full_text,bm25(top_k=1)"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trace")
    write(folder / "corpus", [document(1)], [question(1, of=1)])
    place = folder / "warehouse"
    succeed("run", "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, "rater=none",
            "engine=extractive", METHODS, f"warehouse={place}")  # fmt: skip
    return place


@pytest.mark.slow
def test_of_a_memory_only_the_parts_are_shown_unless_all_is_asked_for(warehouse: Path) -> None:
    gists = [row["gist"] for row in sql(warehouse, "select gist from gists order by page_index")]
    shown = succeed("trace", "q1", f"warehouse={warehouse}")
    of_memory = shown.partition("\n== ")[0]
    assert f"GIST MEMORY ({len(gists)} pages)\n" in of_memory and gists[0] not in of_memory
    command = f"gistmill show d1 warehouse={warehouse}"
    assert f"\n{command} prints a memory, --full all of them here\n" in shown
    assert "page 0" in succeed(*command.split()[1:])
    (run,) = {row["run"] for row in sql(warehouse, "select run from planned")}
    of_run = succeed("trace", "q1", f"run={run}", f"warehouse={warehouse}")
    assert f"gistmill show d1 run={run} warehouse={warehouse} prints" in of_run
    whole = succeed("trace", "q1", f"warehouse={warehouse}", "--full")
    assert all(gist in whole for gist in gists) and "gistmill show" not in whole
