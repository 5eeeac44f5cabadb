"""LongBench v2, InfiniteBench and L-Eval: options, letters and answers of every kind."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from stages.corpora import load
from tests.stages.corpora.formats.test_grouped_corpora import BOOK, questions, read
from tests.support.texts.loading import bad, corpus_of, details, good, loaded, written

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
        ({"answer": None}, None, ""),
        ({"answer": "E"}, None, '`answer` "E" is no letter of ABCD; fix it'),
        ({"answer": "AB"}, None, '`answer` "AB" is no letter'),
        ({"answer": 2}, None, "`answer` is a number, not a string"),
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


def big_list(folder: Path, num_rows: int) -> Path:
    rows = [
        {**CHOICE, "_id": str(n), "context": f"{n} " + "word " * 20_000} for n in range(num_rows)
    ]
    file = folder / "data.json"
    file.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return file


@pytest.mark.slow
def test_longbench_v2_is_one_list_that_is_streamed(tmp_path: Path) -> None:
    file = big_list(tmp_path, 80)
    assert file.stat().st_size > 8_000_000
    tracemalloc.start()
    words = [item.document.num_words for item in load(corpus_of(tmp_path, "longbench_v2"))]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert words == [20_001] * 80 and peak < 4_000_000


@pytest.mark.parametrize("share", [0.5, 0.99, 0.9999])
def test_a_list_torn_in_the_middle_keeps_what_is_before(tmp_path: Path, share: float) -> None:
    file = big_list(tmp_path, 20)
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    corpus = loaded(file, "longbench_v2")
    whole = int(20 * share)
    assert [item.document.num_words for item in corpus] == [20_001] * whole + [0]
    [detail] = details(corpus)
    assert detail.startswith(f"data.json:{whole + 1}: not JSON from here on (")
    assert detail.endswith("; fetch it again")


@pytest.mark.parametrize(
    ("answer", "right", "references"),
    [
        ("river", 1, ("river",)),
        (["river"], 1, ("river",)),
        (["river", "B"], 1, ("river",)),
        (["B"], 1, ("river",)),
        ("D", 3, ("a hill",)),
        ([], None, ()),
        (None, None, ()),
        (["A hill"], None, None),
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
        ("exam", EXAM, "AC", (EXAM, 0, None)),
        ("exam", EXAM, None, (EXAM, 0, None)),
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
        ({"outputs": "ab"}, 0, "`outputs` is a string, not a list"),
        ({"instructions": None}, 0, "`instructions` is null, not a list"),
        ({"instructions": ["one?", 2]}, 1, "instructions[1]: `question` is a number"),
        ({"outputs": ["a", ["b"]]}, 1, "instructions[1]: `output` is a list"),
        ({"evaluation": 7.5}, 2, ""),
    ],
)
def test_leval_rows(tmp_path: Path, change: dict[str, Any], num_good: int, words: str) -> None:
    row = {"instructions": ["one?", "two?"], "outputs": ["a", "b"], "input": BOOK}
    [item] = read(tmp_path, "leval", {**row, **change})
    assert item.document.text == BOOK and len(good(item.questions)) == num_good
    found = bad(item.questions)
    assert len(found) == bool(words)
    assert all(detail.startswith("task.jsonl:1: ") and words in detail for detail in found)
