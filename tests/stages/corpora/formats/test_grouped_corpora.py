"""Formats that repeat the document in every row: UltraDomain, SCROLLS, LongBench and its version 2,
InfiniteBench, L-Eval."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from stages.corpora import Loaded
from tests.support.texts.loading import asked, bad, details, loaded, written

BOOK = "The mill stood by the river.\n\nAnn kept it."
SUMMARY = "Write a summary of the text."
FILES = {"infinitebench": "longbook_choice_eng.jsonl", "longbench_v2": "data.jsonl"}


def read(folder: Path, name: str, *rows: Any, **changed: Any) -> list[Loaded]:
    """The corpus of these rows, in a file of a task's name."""
    return loaded(written(folder / FILES.get(name, "task.jsonl"), *rows), name, **changed)


def questions(corpus: Sequence[Loaded]) -> list[tuple[str, tuple[str, ...]]]:
    return [(q.question, q.references) for q in asked(corpus) if q.problem is None]


ULTRA: dict[str, Any] = {
    "_id": "1", "input": "Q?", "answers": ["a"], "context": BOOK, "context_id": "c", "meta": {},
}  # fmt: skip
OTHER = {**ULTRA, "_id": "2"}
LONG = {"_id": "1", "input": "Q?", "context": BOOK, "answers": ["a", "b"], "length": 9,
        "dataset": "qasper", "language": "en", "all_classes": None}  # fmt: skip
V2: dict[str, Any] = {
    "_id": "1", "domain": "Law", "sub_domain": "s", "difficulty": "hard", "length": "short",
    "question": "Which\nof them?", "choice_A": "a", "choice_B": "b\nc", "choice_C": "c",
    "choice_D": "d", "answer": "B", "context": BOOK,
}  # fmt: skip
CHOICE = {"id": 0, "context": BOOK, "input": "Where?", "options": ["mill", "river", "sea", "hill"]}
EVAL = {"instructions": ["one?", "two?"], "outputs": ["a", "b"], "input": BOOK}
EXAM = "Which? \n\n (A) the mill \n(B) a 1990. B) sea \n (C) none (of A) \n (D) all"
Q = ("Q?", ("a",))
# A format and its rows; the documents (a text or ""), the good questions with their references, and
# what is said of bad rows, after the file's name.
ROWS: dict[str, tuple[str, list[Any], list[str], list[tuple[str, tuple[str, ...]]], list[str]]] = {
    "SCROLLS": ("scrolls", [
        {"id": "1", "pid": "1_0", "input": f"Who?\n\n{BOOK}", "output": "Ann"},
        {"id": "1", "pid": "1_1", "input": f"Who?\n\n{BOOK}", "output": "She"},
        {"id": "2", "input": f"  (A) x (B) y\nWhich?\n\n{BOOK}", "output": None},  # test split
        {"id": "3", "input": f"Who?\n\n{BOOK}", "output": "No"},  # the same words, another id
        {"input": f"Who?\n\n{BOOK}", "output": "none"},
        {"id": "5", "input": "one line", "output": "x"},
        {"id": "6", "input": f"Where?\n\n{BOOK}", "output": ["x"]},
        {"id": "7", "input": f"\n\n{BOOK}", "output": "x"},
    ], [BOOK, "", "Ann kept it."], [
        ("Who?", ("Ann", "She")), ("(A) x (B) y\nWhich?", ()), ("Who?", ("No",)),
        ("Who?", ("none",)),
        ("The mill stood by the river.", ("x",)),  # its question is missing: nobody can tell
    ], ["7: `output` is not a list of strings", "6: `input` has no blank line after the question",
        "6: `input` has no blank line after the question"]),
    "one text, two context_ids": (
        "ultradomain", [ULTRA, {**OTHER, "context_id": "d"}], [BOOK], [Q, Q], []),
    "two texts, one context_id": (
        "ultradomain", [ULTRA, {**OTHER, "context": "Other."}], [BOOK, ""], [Q, Q],
        ['2: `context_id` "c" is used twice']),
    "no context": ("ultradomain", [ULTRA, {**OTHER, "context": None}], [BOOK, ""], [Q, Q],
                   ["2: no `context`"]),
    "_id twice": ("ultradomain", [ULTRA, ULTRA], [BOOK], [Q], ['2: `_id` "1" is used twice']),
    "no ids": ("ultradomain", [ULTRA, {**ULTRA, "_id": None, "context_id": None}], [BOOK], [Q, Q],
               []),
    "label a list": ("ultradomain", [ULTRA, {**OTHER, "label": ["x"]}], [BOOK, ""], [Q],
                     ["2: `label`", "2: `label`"]),
    "torn": ("ultradomain", [ULTRA, '{"_id": "2", "context": "abc'], [BOOK, ""], [Q],
             ["2: not JSON"]),
    "LongBench": ("longbench", [
        LONG,
        {**LONG, "_id": "3", "input": "", "dataset": "gov_report_e", "context": "A report."},
        {**LONG, "_id": "4", "input": "", "dataset": "hotpotqa"},
        {**LONG, "_id": "5", "context": "他们在山上。", "dataset": "multifieldqa_zh"},
    ], [BOOK, "A report.", "他们在山上。"], [
        ("Q?", ("a", "b")), (SUMMARY, ("a", "b")), ("Q?", ("a", "b")),
    ], ["3: `input` is empty; write the question or delete it"]),
    "L-Eval, outputs missing": ("leval", [{**EVAL, "outputs": ["a"]}], [BOOK], [],
                                ["1: 2 instructions, 1 outputs; fix them"]),
    "L-Eval, a list as output": ("leval", [{**EVAL, "outputs": ["a", ["b"]]}], [BOOK],
                                 [("one?", ("a",))], ["1: instructions[1]: `output` is a list"]),
    "no letter": ("longbench_v2", [{**V2, "answer": "E"}], [BOOK], [],
                  ['1: `answer` "E" is no letter of ABCD; fix it']),
    "a number as letter": ("longbench_v2", [{**V2, "answer": 2}], [BOOK], [],
                           ["1: `answer` 2 is no letter of ABCD"]),
    "no option": ("longbench_v2", [{**V2, "choice_C": None}], [BOOK], [],
                  ["1: no `choice_C`; add it"]),
    "no such option": ("infinitebench", [{**CHOICE, "answer": "E"}], [BOOK], [], ["1: `answer` "]),
    "a number for one": ("infinitebench", [{**CHOICE, "answer": 3}], [BOOK], [], ["1: `answer` "]),
}  # fmt: skip


@pytest.mark.parametrize("case", ROWS)
def test_rows(tmp_path: Path, case: str) -> None:
    name, rows, texts, expected, wrong = ROWS[case]
    corpus = read(tmp_path, name, *rows)
    assert [item.document.text for item in corpus] == texts
    assert [item.document.problem == "bad_input" for item in corpus] == [not t for t in texts]
    assert questions(corpus) == expected
    messages = details(corpus)
    assert len(messages) == len(wrong)
    for detail, words in zip(messages, wrong, strict=True):
        assert detail.startswith(f"{FILES.get(name, 'task.jsonl')}:{words}")


def test_scrolls_summaries_have_no_question(tmp_path: Path) -> None:
    rows = [{"id": str(n), "input": f"{BOOK} {n}", "output": f"s{n}"} for n in (1, 1, 2)]
    corpus = read(tmp_path, "scrolls", *rows, has_question=False)
    assert [item.document.text for item in corpus] == [f"{BOOK} 1", f"{BOOK} 2"]
    assert questions(corpus) == [(SUMMARY, ("s1", "s1")), (SUMMARY, ("s2",))]


def test_ultradomain_book_of_ten_rows_is_read_once(tmp_path: Path) -> None:
    meta = {"title": "Joe Celko's SQL: 1/2", "authors": ["Joe"]}
    rows = [{**ULTRA, "_id": f"{n}", "input": f"Q{n}?", "context": f" \n{BOOK} \ufffd",
             "label": "cs", "meta": meta} for n in range(10)]  # fmt: skip
    [item] = read(tmp_path, "ultradomain", *rows)
    assert (item.document.document_id, item.document.title) == ("c", "Joe Celko's SQL: 1/2")
    assert item.document.num_words == len(BOOK.split()) + 1
    assert json.loads(item.document.metadata) == {"domain": "cs", "authors": ["Joe"]}
    assert questions([item]) == [(f"Q{n}?", ("a",)) for n in range(10)]
    assert [q.question_id for q in item.questions] == [str(n) for n in range(10)]


def test_infinitebench_tasks_in_one_folder(tmp_path: Path) -> None:
    row = {"id": 0, "context": BOOK, "input": "Where?", "answer": ["x", "y"], "options": []}
    written(tmp_path / "longbook_qa_eng.jsonl", row, {**row, "id": 1, "options": "x"})
    written(tmp_path / "longbook_sum_eng.jsonl", {**row, "input": ""})
    [item] = loaded(tmp_path, "infinitebench")
    assert questions([item]) == [("Where?", ("x", "y")), (SUMMARY, ("x", "y"))]
    assert [q.question_id for q in item.questions][::2] == [
        "longbook_qa_eng-0", "longbook_sum_eng-0",
    ]  # fmt: skip
    assert bad(item.questions) == [
        "longbook_qa_eng.jsonl:2: `options` is not a list of strings; fix it"
    ]


def exam(instruction: str, output: str | None, kind: str | None = "exam") -> dict[str, Any]:
    """A row of L-Eval, where an instruction has the options in it."""
    return {"instructions": [instruction], "outputs": [output], "input": BOOK, "evaluation": kind}


@pytest.mark.parametrize(
    ("name", "row", "expected"),  # the question, the number of options, the right one's position
    [
        ("longbench_v2", V2, ("Which\nof them?", 4, 1)),
        ("longbench_v2", {**V2, "answer": " d "}, ("Which\nof them?", 4, 3)),
        *(("infinitebench", {**CHOICE, "answer": answer}, ("Where?", 4, right))
          for answer, right in (("river", 1), (["river", "B"], 1), ("D", 3), ([], None))),
        *(("leval", exam(*asked), expected) for asked, expected in (
            ((EXAM, "(B) a 1990."), ("Which?", 4, 1)), ((EXAM, "C"), ("Which?", 4, 2)),
            ((EXAM, "(E) none"), (EXAM, 0, None)), (("How many?", "12"), ("How many?", 0, None)),
            ((EXAM, "(B) sea", "f1"), (EXAM, 0, None)), (("Who?", "Ann", None), ("Who?", 0, None)),
            (("What is it? A. one B. two C. three", "B"), ("What is it?", 3, 1)))),
    ],
)  # fmt: skip
def test_the_right_option(
    tmp_path: Path, name: str, row: dict[str, Any], expected: tuple[str, int, int | None]
) -> None:
    [item] = read(tmp_path, name, row)
    [question] = item.questions
    right = question.answer_index
    assert item.document.text == BOOK
    assert (question.question, len(question.options), right) == expected
    gold = row.get("outputs", ()) if right is None else [question.options[right]]
    assert question.references == tuple(gold)


def test_what_a_row_tells_of_its_question_and_document(tmp_path: Path) -> None:
    """Reports group answers by the type of the question; LongBench's tasks name their metric."""
    trec = {**LONG, "_id": "2", "input": "Type?", "dataset": "trec_e", "all_classes": ["x", "y"]}
    first, second = asked(read(tmp_path, "longbench", LONG, trec))
    assert (first.question_type, first.task, first.classes) == ("qasper", "qasper", ())
    assert (second.question_type, second.task, second.classes) == ("trec", "trec", ("x", "y"))
    [choice] = asked(read(tmp_path, "longbench_v2", V2))
    assert (choice.question_type, choice.options) == ("Law", ("a", "b\nc", "c", "d"))
    about = {"sub_domain": "s", "difficulty": "hard", "length": "short"}
    assert json.loads(choice.metadata) == about
    row = {**exam("Who?", "Ann", "f1"), "source": "quality"}
    [item] = read(tmp_path, "leval", row)
    assert item.questions[0].question_type == "f1"
    assert json.loads(item.document.metadata) == {"source": "quality"}
