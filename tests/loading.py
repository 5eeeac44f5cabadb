"""A corpus with something wrong in it: loaded, written, and its rows told apart."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from pipeline.records import Document, Question
from stages.corpora import Corpus, Loaded, load


def loaded(path: Path, kind: str, clean: str = "none") -> list[Loaded]:
    """The whole corpus; ids are checked to be unique and every detail to name a file and a mend."""
    section = {"name": "c", "format": kind, "path": path, "clean": clean, "paragraphs": "auto"}
    corpus = list(load(Corpus.model_validate(section)))
    questions = [question for item in corpus for question in item.questions]
    document_ids = Counter(item.document.document_id for item in corpus)
    question_ids = Counter(question.question_id for question in questions)
    assert max([*document_ids.values(), *question_ids.values()]) == 1
    for item in corpus:
        assert {q.document_id for q in item.questions} <= {item.document.document_id}
    rows: list[Document | Question] = [*(item.document for item in corpus), *questions]
    for row in rows:
        assert (row.problem == "bad_input") == (row.detail is not None)
        assert row.detail is None or (":" in row.detail and ";" in row.detail)
        str(row).encode()
    return corpus


def written(path: Path, *rows: Any) -> Path:
    """`path`, holding a line for each row: a string as it is, anything else as JSON."""
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def good(rows: tuple[Question, ...]) -> list[str]:
    return [row.question for row in rows if row.problem is None]


def bad(rows: tuple[Question, ...]) -> list[str]:
    return [row.detail or "" for row in rows if row.problem]
