"""A corpus with something wrong in it: loaded, written, and its rows told apart."""

import copy
import json
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from pipeline.core.compose import compose
from pipeline.core.rows import Document, Question
from stages.corpora import Corpus, Loaded, load
from stages.corpora import corpus_of as of_section
from tests.support.command import DATA

__all__ = ["DATA", "asked", "bad", "corpus_of", "details", "good", "loaded", "written"]


@cache
def _section(name: str) -> dict[str, Any]:
    section: dict[str, Any] = compose([f"corpus={name}", "corpus.path=."])["corpus"]
    return section


def corpus_of(path: Path, name: str, **changed: Any) -> Corpus:
    """conf/corpus/<name>.yaml with this path; of `fields` only the keys given are changed."""
    section = {**copy.deepcopy(_section(name)), "path": str(path)}
    section.get("fields", {}).update(changed.pop("fields", {}))
    return of_section({**section, **changed})


def loaded(path: Path, name: str, **changed: Any) -> list[Loaded]:
    """The whole corpus, checked: ids are unique, every detail names a file and what to do."""
    corpus = list(load(corpus_of(path, name, **changed)))
    questions = asked(corpus)
    document_ids = Counter(item.document.document_id for item in corpus)
    question_ids = Counter(question.question_id for question in questions)
    assert max([1, *document_ids.values(), *question_ids.values()]) == 1
    for item in corpus:
        assert {q.document_id for q in item.questions} <= {item.document.document_id}
    rows: list[Document | Question] = [*(item.document for item in corpus), *questions]
    for row in rows:
        assert row.problem is None or (row.problem == "bad_input" and row.detail)
        assert row.detail is None or (":" in row.detail and ";" in row.detail)
        str(row).encode()
    return corpus


def asked(corpus: Iterable[Loaded]) -> list[Question]:
    """All questions, document by document."""
    return [question for item in corpus for question in item.questions]


def details(corpus: Iterable[Loaded]) -> list[str]:
    """What is wrong with each bad row: a document's, then its questions'."""
    rows: list[Document | Question] = []
    for item in corpus:
        rows += [item.document, *item.questions]
    return [row.detail for row in rows if row.detail and _is_bad(row)]


def _is_bad(row: Document | Question) -> bool:
    return row.problem is not None or (isinstance(row, Document) and row.skipped)


def written(path: Path, *rows: Any) -> Path:
    """`path`, holding a line for each row: a string as it is, anything else as JSON."""
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def good(rows: tuple[Question, ...]) -> list[str]:
    return [row.question for row in rows if row.problem is None]


def bad(rows: tuple[Question, ...]) -> list[str]:
    return [row.detail or "" for row in rows if row.problem]
