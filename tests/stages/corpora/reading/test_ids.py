"""Ids made for rows that have none: of their content, whatever else is loaded, and no two alike."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from stages.corpora import Loaded
from tests.support.texts.loading import asked, details, loaded, written

MADE = re.compile("[0-9a-f]{16}")
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
    assert all(MADE.fullmatch(made) for ids in both for made in ids)
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

    when = {"document_id": "a", "question": "When?"}
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
