"""Formats that repeat the document in every row: UltraDomain, SCROLLS, LongBench."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from stages.corpora import Loaded
from tests.support.command import WHOLE
from tests.support.texts.loading import asked, details, loaded, written

SCROLLS = WHOLE / "scrolls_style"
BOOK = "The mill stood by the river.\n\nAnn kept it."


def read(folder: Path, name: str, *rows: Any, **changed: Any) -> list[Loaded]:
    """The corpus of these rows, in a file of a task's name."""
    file = {"infinitebench": "longbook_choice_eng", "longbench_v2": "data"}.get(name, "task")
    return loaded(written(folder / f"{file}.jsonl", *rows), name, **changed)


def questions(corpus: Sequence[Loaded]) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    return [(q.question, q.options, q.references) for q in asked(corpus) if q.problem is None]


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize(
    ("task", "num_documents", "num_questions", "num_references"),
    [("qmsum", 5, 31, 1), ("narrative_qa", 1, 10, 2)],
)
def test_scrolls_rows_of_a_document_are_one(
    task: str, num_documents: int, num_questions: int, num_references: int
) -> None:
    lines = (SCROLLS / task / "validation.jsonl").read_text(encoding="utf-8").split("\n")
    native: list[dict[str, str]] = [json.loads(line) for line in lines if line]
    texts: dict[str, dict[str, list[str]]] = {}  # text -> question -> references
    for row in native:
        question, text = row["input"].split("\n\n", 1)
        texts.setdefault(text, {}).setdefault(question, []).append(row["output"])
    corpus = loaded(SCROLLS / task, "scrolls", split="validation")
    assert len(corpus) == len(texts) == num_documents and details(corpus) == []
    assert {len(q.references) for q in asked(corpus)} == {num_references}
    for item, (text, by_question) in zip(corpus, texts.items(), strict=True):
        assert item.document.text == text
        assert item.document.num_words == len(text.split())
        blocks = re.split(r"\n[ \t\r]*\n", text) if "\n\n" in text.strip() else text.split("\n")
        assert item.document.num_paragraphs == sum(bool(b.strip()) for b in blocks)
        if task == "narrative_qa":
            assert {q.question: list(q.references) for q in item.questions} == by_question
    assert len(asked(corpus)) == len({row["id"] for row in native}) == num_questions
    assert loaded(SCROLLS / task / "validation.jsonl", "scrolls") == corpus


def test_scrolls_rows(tmp_path: Path) -> None:
    rows: list[Any] = [
        {"id": "1", "pid": "1_0", "input": f"Who?\n\n{BOOK}", "output": "Ann"},
        {"id": "1", "pid": "1_1", "input": f"Who?\n\n{BOOK}", "output": "She"},
        {"id": "2", "input": f"  (A) x (B) y\nWhich?\n\n{BOOK}", "output": None},  # test split
        {"id": "3", "input": f"Who?\n\n{BOOK}", "output": "No"},  # the same words, another id
        {"input": f"Who?\n\n{BOOK}", "output": "none"},
        {"id": "5", "input": "one line", "output": "x"},
        {"id": "6", "input": f"Where?\n\n{BOOK}", "output": ["x"]},
        {"id": "7", "input": f"\n\n{BOOK}", "output": "x"},
    ]
    corpus = read(tmp_path, "scrolls", *rows)
    assert [item.document.text for item in corpus] == [BOOK, "", "Ann kept it."]
    assert questions(corpus) == [
        ("Who?", (), ("Ann", "She")),
        ("(A) x (B) y\nWhich?", (), ()),
        ("Who?", (), ("No",)),
        ("Who?", (), ("none",)),
        ("The mill stood by the river.", (), ("x",)),  # its question is missing: nobody can tell
    ]
    assert [detail.split(": ", 1)[1].split(";")[0] for detail in details(corpus)] == [
        "`output` is not a list of strings",
        "`input` has no blank line after the question",
        "`input` has no blank line after the question",
    ]


def test_scrolls_summaries_have_no_question(tmp_path: Path) -> None:
    rows = [{"id": str(n), "input": f"{BOOK} {n}", "output": f"s{n}"} for n in (1, 1, 2)]
    corpus = read(tmp_path, "scrolls", *rows, has_question=False)
    assert [item.document.text for item in corpus] == [f"{BOOK} 1", f"{BOOK} 2"]
    assert [refs for _, _, refs in questions(corpus)] == [("s1", "s1"), ("s2",)]


def test_ultradomain_book_of_ten_rows_is_read_once(tmp_path: Path) -> None:
    meta = {"title": "Joe Celko's SQL: 1/2", "authors": ["Joe"]}
    rows = [
        {"_id": f"{n}", "input": f"Q{n}?", "answers": [f"a{n}"], "context": f" \n{BOOK} \ufffd",
         "context_id": "c1", "length": 7, "label": "cs", "meta": meta}
        for n in range(10)
    ]  # fmt: skip
    [item] = read(tmp_path, "ultradomain", *rows)
    assert (item.document.document_id, item.document.title) == ("c1", "Joe Celko's SQL: 1/2")
    assert item.document.num_words == len(BOOK.split()) + 1
    assert json.loads(item.document.metadata) == {"domain": "cs", "authors": ["Joe"]}
    assert questions([item]) == [(f"Q{n}?", (), (f"a{n}",)) for n in range(10)]
    assert [q.question_id for q in item.questions] == [str(n) for n in range(10)]


ULTRA: dict[str, Any] = {
    "_id": "1", "input": "Q?", "answers": ["a"], "context": BOOK, "context_id": "c", "meta": {},
}  # fmt: skip
# What is written after ULTRA, the documents (text or ""), the good questions, what is wrong.
ULTRA_CASES: dict[str, tuple[Any, list[str], int, list[str]]] = {
    "one text, two context_ids": ({**ULTRA, "_id": "2", "context_id": "d"}, [BOOK], 2, []),
    "two texts, one context_id": (
        {**ULTRA, "_id": "2", "context": "Other."}, [BOOK, ""], 2,
        ['`context_id` "c" is used twice']),
    "no context": ({**ULTRA, "_id": "2", "context": None}, [BOOK, ""], 2, ["no `context`"]),
    "no context_id": ({**ULTRA, "_id": "2", "context_id": None}, [BOOK], 2, []),
    "answers no list": ({**ULTRA, "_id": "2", "answers": "a"}, [BOOK], 1, ["`answers` is not"]),
    "no input": ({**ULTRA, "_id": "2", "input": None}, [BOOK], 1, ["no `input`"]),
    "_id twice": (ULTRA, [BOOK], 1, ['`_id` "1" is used twice']),
    "no _id": ({**ULTRA, "_id": None}, [BOOK], 2, []),
    "meta a string": (
        {**ULTRA, "_id": "2", "context": "Other.", "meta": "x"}, [BOOK, ""], 2,
        ["`meta` is no JSON object"]),
    "label a list": ({**ULTRA, "_id": "2", "label": ["x"]}, [BOOK, ""], 1, ["`label`", "`label`"]),
    "torn": ('{"_id": "2", "context": "abc', [BOOK, ""], 1, ["not JSON"]),
}  # fmt: skip


@pytest.mark.parametrize("case", ULTRA_CASES)
def test_ultradomain_rows(tmp_path: Path, case: str) -> None:
    row, texts, num_good, wrong = ULTRA_CASES[case]
    corpus = read(tmp_path, "ultradomain", ULTRA, row)
    assert [item.document.text for item in corpus] == texts
    assert sum(q.problem is None for q in asked(corpus)) == num_good
    found = details(corpus)
    assert len(found) == len(wrong)
    for detail, words in zip(found, wrong, strict=True):
        assert detail.startswith("task.jsonl:2: ") and words in detail
    for item in corpus:
        assert (item.document.problem == "bad_input") == (item.document.text == "")


def test_longbench_rows(tmp_path: Path) -> None:
    row = {"_id": "1", "input": "Q?", "context": BOOK, "answers": ["a", "b"], "length": 9,
           "dataset": "qasper", "language": "en", "all_classes": None}  # fmt: skip
    rows: list[Any] = [
        row,
        {**row, "_id": "2", "input": "Type?", "dataset": "trec", "all_classes": ["x", "y"]},
        {**row, "_id": "3", "input": "", "dataset": "gov_report_e", "context": "A report."},
        {**row, "_id": "4", "input": "", "dataset": "hotpotqa"},
        {**row, "_id": "5", "context": "他们在山上。", "dataset": "multifieldqa_zh"},
    ]
    corpus = read(tmp_path, "longbench", *rows)
    assert [item.document.num_words for item in corpus] == [9, 2, 5]
    assert questions(corpus) == [
        ("Q?", (), ("a", "b")),
        ("Type?", (), ("a", "b")),
        ("Write a summary of the text.", (), ("a", "b")),
        ("Q?", (), ("a", "b")),
    ]
    kinds = [q.question_type for q in asked(corpus) if q.problem is None]
    assert kinds == ["qasper", "trec", "gov_report", "multifieldqa_zh"]
    good = [q for q in asked(corpus) if q.problem is None]
    assert [q.task for q in good] == kinds
    assert [q.classes for q in good] == [(), ("x", "y"), (), ()]
    assert details(corpus) == [
        "task.jsonl:4: `input` is empty; write the question or delete it"
    ]  # fmt: skip
