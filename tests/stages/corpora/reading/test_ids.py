"""Ids made for rows that have none: of their content, whatever else is loaded, and no two alike;
which documents `limit` and `sample` choose; and which settings of a corpus name its steps."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from jobs.graph.preparation import chosen_documents
from jobs.graph.resolved_run import read_run
from pipeline.core.settings import CONF
from stages.corpora import Loaded
from tests.support.texts.loading import asked, corpus_of, details, loaded, written
from tests.support.texts.small_corpus import document, question, write

# A row without ids, {} for what tells it from others.
ROWS: dict[str, dict[str, Any]] = {
    "qmsum": {
        "meeting_transcripts": [{"speaker": "A", "content": "one {}"}],
        "general_query_list": [{"query": "What?", "answer": "x"}],
        "specific_query_list": [{"query": "Who?", "answer": "x"}] * 2,
    },
    "records": {"text": "The mill {}.", "question": "Whose?", "options": ["a", "b"]},
    "longbench": {"context": "The mill {}.", "input": "Who?", "answers": ["a"]},
}


def row(name: str, number: int) -> dict[str, Any]:
    numbered: dict[str, Any] = json.loads(json.dumps(ROWS[name]).replace("{}", str(number)))
    return numbered


def good_ids(corpus: list[Loaded]) -> tuple[set[str], set[str]]:
    """Of the documents and of the questions that are not bad input."""
    documents = {item.document.document_id for item in corpus if not item.document.problem}
    return documents, {q.question_id for q in asked(corpus) if not q.problem}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_has_the_same_id_with_and_without_an_equal_one_in_another_file(
    tmp_path: Path, name: str
) -> None:
    written(tmp_path / "a.jsonl", row(name, 1), row(name, 2))
    written(tmp_path / "b.jsonl", row(name, 2), row(name, 3))
    both = good_ids(loaded(tmp_path, name))
    first, second = (good_ids(loaded(tmp_path / f"{file}.jsonl", name)) for file in "ab")
    assert [len(ids) for ids in first] == [len(ids) for ids in second]
    assert both == (first[0] | second[0], first[1] | second[1])
    assert all(re.fullmatch("[0-9a-f]{16}", made) for ids in both for made in ids)
    # Read once, and the copy reported: three documents, the copy's questions asked once.
    assert len(both[0]) == 3 and len(both[1]) == len(first[1]) * 3 // 2
    wrong = details(loaded(tmp_path, name))
    assert wrong and all(re.match(r"b\.jsonl:1: .*the same content as in a\.", d) for d in wrong)


def test_copies_within_a_file_are_kept_and_have_ids_of_their_own(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(name)

    def ids(*rows: Any) -> list[str]:
        written(tmp_path / "questions.jsonl", *rows)
        return [question.question_id for question in asked(loaded(tmp_path, "text"))]

    when: dict[str, Any] = {"document_id": "a", "question": "When?"}
    rows = [*[{**when, "references": ["1"]}] * 2, {**when, "document_id": "b"},
            {**when, "options": ["x", "y"]}]  # fmt: skip
    whole = ids(*rows)
    assert len({*whole}) == 4
    # Neither fewer rows nor more of another question or document change the ids of the others.
    assert ids(rows[0]) == whole[:1]
    now = ids({"document_id": "b", "question": "Where?"}, *rows[1:])
    assert now[:2] == [whole[0], whole[2]] and now[3:] == whole[3:]


@pytest.mark.parametrize(
    ("name", "more"),
    [("longbench", {"answers": ["b"], "dataset": "qasper"}), ("records", {"level": 3})],
)
def test_what_is_not_asked_is_no_part_of_a_questions_id(
    tmp_path: Path, name: str, more: dict[str, Any]
) -> None:
    """So a corrected reference or a new column asks no question again."""
    before = loaded(written(tmp_path / "a.jsonl", row(name, 1)), name)
    after = loaded(written(tmp_path / "a.jsonl", {**row(name, 1), **more}), name)
    assert good_ids(before) == good_ids(after)


@pytest.mark.parametrize(
    "name", sorted({file.stem for file in (CONF / "corpus").glob("*.yaml")} - {"synthetic"})
)
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
    assert len({*drawn}) == 5 and drawn == sorted(drawn, key=everything.index)
    assert drawn == ids("sample=5", "corpus.seed=0")
    others = [tuple(ids("sample=5", f"corpus.seed={seed}")) for seed in range(1, 5)]
    assert len({tuple(drawn), *others}) == 5
    assert set(ids("sample=4")) < set(ids("sample=8"))
