"""Formats that repeat the document in every row: UltraDomain, SCROLLS, LongBench and its version 2,
InfiniteBench, L-Eval."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from stages.corpora import Loaded
from tests.support.texts.loading import asked, bad, details, good, loaded, written

BOOK = "The mill stood by the river.\n\nAnn kept it."


def read(folder: Path, name: str, *rows: Any, **changed: Any) -> list[Loaded]:
    """The corpus of these rows, in a file of a task's name."""
    file = {"infinitebench": "longbook_choice_eng", "longbench_v2": "data"}.get(name, "task")
    return loaded(written(folder / f"{file}.jsonl", *rows), name, **changed)


def questions(corpus: Sequence[Loaded]) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    return [(q.question, q.options, q.references) for q in asked(corpus) if q.problem is None]


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
    "_id twice": (ULTRA, [BOOK], 1, ['`_id` "1" is used twice']),
    "no ids": ({**ULTRA, "_id": None, "context_id": None}, [BOOK], 2, []),
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


CHOICE: dict[str, Any] = {
    "_id": "1", "domain": "Law", "sub_domain": "s", "difficulty": "hard", "length": "short",
    "question": "Which\nof them?", "choice_A": "a", "choice_B": "b\nc", "choice_C": "c",
    "choice_D": "d", "answer": "B", "context": BOOK,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "right", "words"),
    [
        ({}, 1, ""),
        ({"answer": " d "}, 3, ""),
        ({"answer": "E"}, None, '`answer` "E" is no letter of ABCD; fix it'),
        ({"answer": 2}, None, "`answer` 2 is no letter of ABCD"),
        ({"choice_C": None}, None, "no `choice_C`; add it"),
    ],
)
def test_longbench_v2_rows(
    tmp_path: Path, change: dict[str, Any], right: int | None, words: str
) -> None:
    [item] = read(tmp_path, "longbench_v2", {**CHOICE, **change})
    [question] = item.questions
    assert item.document.text == BOOK and question.answer_index == right
    if words:
        assert bad(item.questions)[0].startswith(f"data.jsonl:1: {words}")
    else:
        assert question.options == ("a", "b\nc", "c", "d")
        assert question.references == (() if right is None else (question.options[right],))
        assert question.question_type == "Law"


@pytest.mark.parametrize(
    ("answer", "right", "references"),
    [
        ("river", 1, ("river",)),
        (["river", "B"], 1, ("river",)),
        ("D", 3, ("a hill",)),
        ([], None, ()),
        ("E", None, None),
        (3, None, None),
    ],
)
def test_infinitebench_choices(
    tmp_path: Path, answer: Any, right: int | None, references: tuple[str, ...] | None
) -> None:
    row = {"id": 0, "context": BOOK, "input": "Where?", "answer": answer,
           "options": ["mill", "river", "sea", "a hill"]}  # fmt: skip
    [item] = read(tmp_path, "infinitebench", row)
    [question] = item.questions
    assert question.question_id == "longbook_choice_eng-0" and item.document.text == BOOK
    if references is None:
        [detail] = bad(item.questions)
        assert detail.startswith("longbook_choice_eng.jsonl:1: `answer`") and "; " in detail
    else:
        assert (question.answer_index, question.references) == (right, references)


def test_infinitebench_tasks_in_one_folder(tmp_path: Path) -> None:
    row = {"id": 0, "context": BOOK, "input": "Where?", "answer": ["x", "y"], "options": []}
    written(tmp_path / "longbook_qa_eng.jsonl", row, {**row, "id": 1, "options": "x"})
    written(tmp_path / "longbook_sum_eng.jsonl", {**row, "input": ""})
    [item] = loaded(tmp_path, "infinitebench")
    assert questions([item]) == [
        ("Where?", (), ("x", "y")),
        ("Write a summary of the text.", (), ("x", "y")),
    ]
    assert bad(item.questions) == [
        "longbook_qa_eng.jsonl:2: `options` is not a list of strings; fix it"
    ]


EXAM = "Which? \n\n (A) the mill \n(B) a 1990. B) sea \n (C) none (of A) \n (D) all"


@pytest.mark.parametrize(
    ("evaluation", "instruction", "output", "expected"),
    [
        ("exam", EXAM, "(B) a 1990.", ("Which?", 4, 1)),
        ("exam", EXAM, "C", ("Which?", 4, 2)),
        ("exam", "What is it? A. one B. two C. three", "B", ("What is it?", 3, 1)),
        ("exam", EXAM, "(E) none", (EXAM, 0, None)),
        ("exam", "How many?", "12", ("How many?", 0, None)),
        ("f1", EXAM, "(B) sea", (EXAM, 0, None)),
        (None, "Who?", "Ann", ("Who?", 0, None)),
    ],
)
def test_leval_options_stand_in_the_instruction(
    tmp_path: Path,
    evaluation: str | None,
    instruction: str,
    output: str | None,
    expected: tuple[str, int, int | None],
) -> None:
    row = {"instructions": [instruction], "outputs": [output], "input": BOOK,
           "evaluation": evaluation, "source": "quality"}  # fmt: skip
    [item] = read(tmp_path, "leval", row)
    [question] = item.questions
    assert (question.question, len(question.options), question.answer_index) == expected
    if question.answer_index is not None:
        assert question.references == (question.options[question.answer_index],)
    else:
        assert question.references == (() if output is None else (output,))
    assert json.loads(item.document.metadata) == {"source": "quality"}


@pytest.mark.parametrize(
    ("change", "num_good", "words"),
    [
        ({"outputs": ["a"]}, 0, "2 instructions, 1 outputs; fix them"),
        ({"outputs": ["a", ["b"]]}, 1, "instructions[1]: `output` is a list"),
    ],
)
def test_leval_rows(tmp_path: Path, change: dict[str, Any], num_good: int, words: str) -> None:
    row = {"instructions": ["one?", "two?"], "outputs": ["a", "b"], "input": BOOK}
    [item] = read(tmp_path, "leval", {**row, **change})
    assert item.document.text == BOOK and len(good(item.questions)) == num_good
    found = bad(item.questions)
    assert len(found) == bool(words)
    assert all(detail.startswith("task.jsonl:1: ") and words in detail for detail in found)
