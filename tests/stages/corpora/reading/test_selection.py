"""Which documents `limit` and `sample` choose; where a corpus is and which of it is read names no
step; how it is read does."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.graph.preparation import chosen_documents
from jobs.graph.resolved_run import read_run
from pipeline.core.settings import CONF
from tests.support.texts.loading import corpus_of
from tests.support.texts.small_corpus import document, question, write

NAMES = sorted(file.stem for file in (CONF / "corpus").glob("*.yaml"))
OF_FILES = [name for name in NAMES if name != "synthetic"]


@pytest.mark.parametrize("name", OF_FILES)
def test_how_it_is_read_is_hashed_and_nothing_else(tmp_path: Path, name: str) -> None:
    corpus = corpus_of(tmp_path / "here", name)
    moved = {"stories": str(tmp_path / "there")} if name == "narrativeqa" else {}
    there = corpus_of(tmp_path / "there", name, **moved)
    assert there.hashed() == corpus.hashed() and str(tmp_path) not in json.dumps(corpus.hashed())
    assert there.selection() != corpus.selection()
    unread: dict[str, Any] = {"split": "x", "seed": 7, "family": "other"}
    assert corpus_of(tmp_path, name, **unread).hashed() == corpus.hashed()
    other = "lines" if corpus.paragraphs != "lines" else "blank_lines"
    assert corpus_of(tmp_path, name, paragraphs=other).hashed() != corpus.hashed()
    assert corpus.model_copy(update={"name": "other"}).hashed() != corpus.hashed()


def test_limit_takes_the_first_and_sample_draws_by_seed_in_corpus_order(tmp_path: Path) -> None:
    write(tmp_path, [document(n) for n in range(20)], [question(n, of=n) for n in range(20)])

    def ids(*words: str) -> list[str]:
        resolved = read_run(["corpus=tables", f"corpus.path={tmp_path}", *words])
        return [loaded.document.document_id for loaded in chosen_documents(resolved.config)]

    everything = [f"d{n}" for n in range(20)]
    assert ids() == ids("limit=99") == ids("sample=99") == everything
    assert ids("limit=3") == ["d0", "d1", "d2"]
    drawn = ids("sample=5")
    assert len(drawn) == 5 and drawn == sorted(drawn, key=everything.index)
    assert drawn == ids("sample=5", "corpus.seed=0")
    others = [tuple(ids("sample=5", f"corpus.seed={seed}")) for seed in range(1, 9)]
    assert len({tuple(drawn), *others}) > 5
    assert set(ids("sample=4")) < set(ids("sample=8"))
