"""Rows with a random value in a random place: nothing but UsageError is ever raised, and every
row before and after is read."""

import copy
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.texts.loading import asked, loaded

pytestmark = pytest.mark.sampled

BOOK = "The mill stood by the river. Ann kept it."
TURNS = [{"role": "user", "content": "We leave at noon.", "has_answer": True}]
SPEECH = [{"speaker": "A", "content": "one"}, {"speaker": "B", "content": "two"}]
SPANS = [["0", "1"]]
CHOICES = {f"choice_{letter}": letter.lower() for letter in "ABCD"}
# The rows of a corpus: one that is left as it is, with {} for its number.
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "ultradomain": ("a.jsonl", {"_id": "i{}", "input": "Q{}?", "answers": ["a"], "context": BOOK,
                                "context_id": "c", "meta": {"title": "T"}, "label": "cs"}),
    "scrolls": ("a.jsonl", {"id": "i{}", "input": f"Q{{}}?\n\n{BOOK}", "output": "x"}),
    "longbench": ("a.jsonl", {"_id": "i{}", "input": "Q{}?", "context": BOOK, "answers": ["a"],
                              "dataset": "qasper", "language": "en", "all_classes": None}),
    "longbench_v2": ("a.json", {"_id": "i{}", "question": "Q{}?", **CHOICES, "answer": "A",
                                "context": BOOK, "domain": "Law", "difficulty": "easy"}),
    "infinitebench": ("a.jsonl", {"id": "i{}", "input": "Q{}?", "context": BOOK, "answer": ["a"],
                                  "options": ["a", "b"]}),
    "leval": ("a.jsonl", {"instructions": ["Q{}? (A) x (B) y"], "outputs": ["(A) x"],
                          "input": BOOK, "evaluation": "exam", "source": "s"}),
    "longmemeval": ("longmemeval_s.json", {
        "question_id": "i{}", "question_type": "t", "question": "Q{}?", "answer": "a",
        "question_date": "2023/05/30 (Tue) 21:48", "haystack_session_ids": ["s"],
        "haystack_dates": ["2023/05/30 (Tue) 21:48"], "haystack_sessions": [TURNS],
        "answer_session_ids": ["s"]}),
    "qmsum": ("a.jsonl", {"meeting_transcripts": SPEECH, "general_query_list": [],
                          "specific_query_list": [{"query": "Q{}?", "answer": "a",
                                                   "relevant_text_span": SPANS}]}),
    "quality": ("a.dev", {"article_id": "i{}", "article": "<p>one</p>", "title": "T", "year": 1,
                          "questions": [{"question": "Q{}?", "question_unique_id": "i{}",
                                         "options": ["x", "y"], "gold_label": 1}]}),
    "records": ("a.jsonl", {"text": BOOK, "question": "Q{}?", "options": ["a"], "label": 0,
                            "metadata": {"k": 1}}),
}  # fmt: skip
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "\0", " ", "A", "{{ x }}", "\f[x]", "<p>", "i0", "中。", "0", "_abs"])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
_IDS = ("_id", "id", "context_id", "article_id", "question_id", "question_unique_id")


def numbered(row: dict[str, Any], number: int) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(row).replace("{}", str(number)))
    return made


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value within."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, entry in inner if isinstance(value, (dict, list)) else ():
        yield (*path, key)
        if isinstance(entry, (dict, list)):
            yield from places(entry, (*path, key))


def changed(row: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    row = copy.deepcopy(row)
    at: Any = row
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return row


@pytest.mark.parametrize("name", ROWS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_an_odd_value_anywhere_costs_only_its_row(name: str, data: Any) -> None:
    file, row = ROWS[name]
    rows = [numbered(row, number) for number in range(3)]
    path = data.draw(st.sampled_from(list(places(rows[1]))))
    rows[1] = changed(rows[1], path, data.draw(ODD))
    text = json.dumps(rows) if file.endswith("json") else "\n".join(map(json.dumps, rows))
    more = (
        {"fields": {"options": ["options"], "answer_index": "label"}} if name == "records" else {}
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / file).write_text(text, encoding="utf-8")
        corpus = loaded(Path(folder), name, **more)
    good = [q.question for q in asked(corpus) if q.problem is None]
    assert [q for q in good if q in ("Q0?", "Q2?")] == ["Q0?", "Q2?"] or path[-1] in _IDS
    assert any(item.document.problem is None for item in corpus)
