"""Questions and filler sessions for tests of compiled histories, and histories taken apart."""

import json
from pathlib import Path
from typing import Any

from stages.corpora import Loaded
from tests.support.texts.loading import loaded

Turns = list[dict[str, Any]]


def session(name: str, num_words: int = 10) -> Turns:
    """Two turns with `name` as every word."""
    return [
        {"role": role, "content": " ".join([name] * (num_words // 2))}
        for role in ("user", "assistant")
    ]


def question(number: int, *evidence: str, **change: Any) -> dict[str, Any]:
    """A question with these sessions as its evidence, dated 2023/05/10, 11, 12 ..."""
    ids = [f"answer_{name}" for name in evidence]
    return {
        "question_id": f"q{number}",
        "question_type": "multi-session",
        "question": f"Who is {number}?",
        "answer": "Ann",
        "question_date": "2023/05/30 (Tue) 10:00",
        "haystack_session_ids": ids,
        "haystack_dates": [f"2023/05/{10 + n} (Wed) 08:00" for n, _ in enumerate(evidence)],
        "haystack_sessions": [session(name) for name in evidence],
        "answer_session_ids": ids,
        **change,
    }


def files(folder: Path, questions: list[Any], fillers: list[Any]) -> dict[str, Any]:
    """Both files, as arguments of `histories`."""
    path = folder / "longmemeval_oracle.json"
    path.write_text(json.dumps(questions), encoding="utf-8")
    (folder / "fillers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in fillers))
    return {"path": path, "name": "longmemeval_haystack", "fillers": str(folder / "fillers.jsonl")}


def histories(folder: Path, questions: list[Any], fillers: list[Any], **keys: Any) -> list[Loaded]:
    """The corpus of these questions and fillers."""
    return loaded(**files(folder, questions, fillers), **keys)


def parts(item: Loaded) -> list[tuple[str, str]]:
    """Date and text of each session of the document."""
    assert item.document.problem is None, item.document.detail
    found = [part.partition("]\n") for part in item.document.text.split("\f[")[1:]]
    return [(date, text.strip()) for date, _, text in found]


def shown(turns: Turns) -> str:
    """The text that a session of plain turns should have."""
    return "\n\n".join(f"{turn['role']}: {turn['content']}" for turn in turns)


def gold(item: Loaded) -> list[str]:
    """The text of the evidence spans."""
    text = item.document.text
    return [text[span.start_char : span.end_char] for span in item.questions[0].evidence]
