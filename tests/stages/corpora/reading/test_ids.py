"""Ids made for rows that have none: of their content, whatever else is loaded, and no two alike."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from upath import UPath

from jobs.graph.loading import chosen_documents
from jobs.graph.read_run import read_run
from stages.corpora import Loaded
from stages.corpora.reading.rows import Row
from stages.corpora.reading.ids import Ids
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
    "leval": {"input": "The mill {}.", "instructions": ["Who?", "Why?"], "outputs": ["a", "b"]},
    "longbench": {"context": "The mill {}.", "input": "Who?", "answers": ["a"]},
}


def row(name: str, number: int) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(ROWS[name]).replace("{}", str(number)))
    return made


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


@pytest.mark.parametrize("name", ROWS)
def test_a_row_has_the_same_id_whatever_the_limit_and_what_follows(
    tmp_path: Path, name: str
) -> None:
    file = written(tmp_path / "a.jsonl", *(row(name, number) for number in (1, 2, 3)))
    whole = [*chosen_documents(read_run([f"corpus={name}", f"corpus.path={file}"]).config)]
    for limit in (1, 2, 3):
        words = [f"corpus={name}", f"corpus.path={file}", f"limit={limit}"]
        assert [*chosen_documents(read_run(words).config)] == whole[:limit]
    shorter = written(tmp_path / "b.jsonl", row(name, 1))
    assert loaded(shorter, name) == whole[:1]


def test_a_split_has_the_ids_it_has_among_others(tmp_path: Path) -> None:
    for split, numbers in {"train": (1, 2), "val": (2, 3)}.items():
        written(tmp_path / f"{split}.jsonl", *(row("qmsum", number) for number in numbers))
    both = good_ids(loaded(tmp_path, "qmsum"))
    for split in ("train", "val"):
        documents, questions = good_ids(loaded(tmp_path, "qmsum", split=split))
        assert documents < both[0] and questions < both[1]


QUESTIONS: list[dict[str, Any]] = [
    {"document_id": "a", "question": "When?", "references": ["1"]},
    {"document_id": "a", "question": "When?", "references": ["1"]},
    {"document_id": "b", "question": "When?"},
    {"document_id": "a", "question": "When?", "options": ["x", "y"]},
]  # fmt: skip


def test_copies_within_a_file_are_kept_and_have_ids_of_their_own(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(name)
    written(tmp_path / "questions.jsonl", *QUESTIONS)
    whole = [q.question_id for q in asked(loaded(tmp_path, "text"))]
    assert len(set(whole)) == 4
    # Neither a row less nor a row more of another question or document changes the others.
    written(tmp_path / "questions.jsonl", QUESTIONS[0])
    assert [q.question_id for q in asked(loaded(tmp_path, "text"))] == whole[:1]
    more = {"document_id": "b", "question": "Where?"}
    written(tmp_path / "questions.jsonl", more, *QUESTIONS[1:])
    now = [q.question_id for q in asked(loaded(tmp_path, "text"))]
    assert now[:2] == [whole[0], whole[2]] and now[3:] == whole[3:]


@pytest.mark.parametrize("name", ["records", "longbench"])
def test_what_is_not_asked_is_no_part_of_a_questions_id(tmp_path: Path, name: str) -> None:
    """So a corrected reference or a new column asks no question again."""
    given: dict[str, dict[str, Any]] = {
        "longbench": {"answers": ["b"], "dataset": "qasper"},
        "records": {"level": 3},
    }
    before = loaded(written(tmp_path / "a.jsonl", row(name, 1)), name)
    after = loaded(written(tmp_path / "a.jsonl", {**row(name, 1), **given[name]}), name)
    assert good_ids(before) == good_ids(after)


def test_two_names_that_are_one_without_their_suffixes_keep_them(tmp_path: Path) -> None:
    for name in ("a.txt", "a.txt.gz"):
        (tmp_path / name).write_text("one")
    written(tmp_path / "questions.jsonl", {"document_id": "a", "question": "Who?"})
    first, second, third = loaded(tmp_path, "text")
    assert (first.document.document_id, second.document.document_id) == ("a.txt", "a.txt.gz")
    assert third.document.detail == (
        'questions.jsonl:1: no document has the document_id "a"; add it or delete the question'
    )


def test_a_row_without_a_text_takes_no_id_from_one_that_has_it(tmp_path: Path) -> None:
    rows = [{"_id": str(n), "input": "Q?", "answers": ["a"], "context_id": "c"} for n in (1, 2)]
    written(tmp_path / "a.jsonl", rows[0], {**rows[1], "context": "The mill."})
    bad, good = loaded(tmp_path, "ultradomain")
    assert (bad.document.document_id, good.document.document_id) == ("a.jsonl:1", "c")
    assert details([bad, good]) == ["a.jsonl:1: no `context`; add it"]


def test_an_id_that_looks_like_a_place_is_no_second_row_of_it() -> None:
    ids, file = Ids(), UPath("a.jsonl")
    assert ids.of_given(Row(file, 1, {"id": "a.jsonl:2"}), "id") == ("a.jsonl:2", None)
    torn, wrong = ids.of_given(Row(file, 2, None, "torn"), "id")
    assert MADE.fullmatch(torn) and wrong == "torn"


CONTENTS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, "", "i", "a:1", 7])))


def made(files: dict[str, list[tuple[str, Any]]]) -> dict[str, list[tuple[str, str | None]]]:
    """The id of every row and what is wrong with it, by file."""
    ids = Ids()
    return {
        name: [
            ids.of_row(Row(UPath(name), line, {"id": given}), "id", content)
            for line, (content, given) in enumerate(rows, 1)
        ]
        for name, rows in files.items()
    }


@given(st.dictionaries(st.sampled_from("abcd"), CONTENTS))
def test_no_two_rows_have_one_id_and_none_depends_on_other_files(
    files: dict[str, list[tuple[str, Any]]],
) -> None:
    whole = made(files)
    every = Counter(made_id for rows in whole.values() for made_id, _ in rows)
    assert max([1, *every.values()]) == 1
    for name, rows in whole.items():
        alone = made({name: files[name]})[name]
        for together, (own, wrong) in zip(rows, alone, strict=True):
            if together[1] is None:
                assert together == (own, None)
            elif wrong is None:  # a copy of a row in another file: its id is that row's
                assert every[own] == 1


@pytest.mark.slow
def test_many_contents_have_as_many_ids() -> None:
    """With 8 hex digits, 200,000 ids hold about five pairs that are alike."""
    ids, file = Ids(), UPath("a.jsonl")
    rows = (ids.of_row(Row(file, n, {}), None, "document", f"question {n}") for n in range(200_000))
    found = [made_id for made_id, wrong in rows if wrong is None and MADE.fullmatch(made_id)]
    assert len(set(found)) == 200_000
    parts = [ids.of_content(Row(file, 0, {}), *c)[0] for c in (["ab", "c"], ["a", "bc"], ["abc"])]
    assert len({*parts}) == 3
