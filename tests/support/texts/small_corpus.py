"""A corpus small enough to count by hand: documents of three paragraphs of 40 words."""

import json
from pathlib import Path
from typing import Any

UNIFORM = ("memory=uniform", "memory.words=40")  # one paragraph a page: three pages a document


def document(number: int) -> dict[str, Any]:
    """Three paragraphs of exactly 40 words; every document's words are its own."""
    paragraphs = [
        " ".join(
            f"{topic}{number}" for topic in ("mill", "gist", "page", "river") for _ in range(9)
        )
        + f" paragraph {name} ends here."
        for name in ("one", "two", "three")
    ]
    return {"document_id": f"d{number}", "text": "\n\n".join(paragraphs)}


def question(number: int, of: int, references: int = 1) -> dict[str, Any]:
    """A free-form question about document `of`."""
    texts = [f"reference {index} of question {number}" for index in range(references)]
    return {
        "document_id": f"d{of}",
        "question_id": f"q{number}",
        "question": f"What is said in number {number} about mill{of}?",
        "references": texts,
        "evidence": [{"start_char": 0, "end_char": 10}],
    }


def write(folder: Path, documents: list[dict[str, Any]], questions: list[dict[str, Any]]) -> None:
    """The corpus as corpus=tables reads it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("documents", documents), ("questions", questions)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
