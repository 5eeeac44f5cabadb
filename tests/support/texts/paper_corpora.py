"""Two documents of every corpus that experiments name, small but for what ships in tests/data."""

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support.command import DATA, QMSUM

STORY = (
    "The keeper of tower {n} carried oil in a tin can, and nobody thought more of it. On day {n} "
    "the wind turned, and the miller took the sails off before noon. "
)
NARRATIVEQA = [
    "document_id", "set", "kind", "story_url", "story_file_size", "wiki_url", "wiki_title",
    "story_word_count", "story_start", "story_end",
]  # fmt: skip
QAPS = ["document_id", "set", "question", "answer1", "answer2", "question_tokenized",
        "answer1_tokenized", "answer2_tokenized"]  # fmt: skip


def corpus_path(name: str, folder: Path) -> Path:
    """What `corpus.path` is for a corpus; made in `folder` where nothing ships."""
    if name == "qmsum":
        return QMSUM
    if name == "longmemeval":
        return DATA / "longmemeval" / "longmemeval_oracle_16.json"
    return _MADE[name](folder)


def _story(number: int) -> str:
    return STORY.format(n=number) * 40


def _jsonl(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def _quality(folder: Path) -> Path:
    options = ["The keeper", "The miller", "Nobody", "The wind"]
    labels = {"gold_label": 2, "writer_label": 2, "difficult": 1}
    question = {"question": "Who took the sails off?", "options": options, **labels}
    rows = [
        {"article_id": str(n), "title": "The Mill", "article": f"<p>{_story(n)}</p>",
         "questions": [{**question, "question_unique_id": f"{n}_A_1"}]}
        for n in (1, 2)
    ]  # fmt: skip
    return _jsonl(folder / "QuALITY.dev.jsonl", rows)


def _narrativeqa(folder: Path) -> Path:
    """A book and a film of the set valid each, and two of the set test."""
    (folder / "tmp").mkdir(exist_ok=True)
    documents, asked = [], []
    for number, kind in enumerate(("gutenberg", "movie", "gutenberg", "movie"), 1):
        name = f"{number:040x}"
        (folder / "tmp" / f"{name}.content").write_text(_story(number))
        about = [name, "valid", kind, "", "1", "", "The Mill", "1600", "The keeper", "of it ."]
        documents.append(about)
        asked.append([name, "valid", "What did the keeper carry?", "Oil.", "A can of oil.", *"???"])
    for file, head, rows in (
        ("documents.csv", NARRATIVEQA, documents),
        ("qaps.csv", QAPS, asked),
    ):
        with (folder / file).open("w", newline="") as opened:
            csv.writer(opened).writerows([head, *rows])
    return folder


def _ultradomain(folder: Path) -> Path:
    rows = [
        {"_id": str(n), "input": "What did the keeper carry?", "answers": ["oil"], "length": 9,
         "context": _story(n), "context_id": str(n), "label": "cs", "meta": {"title": "Towers"}}
        for n in (1, 2)
    ]  # fmt: skip
    return _jsonl(folder / "cs.jsonl", rows)


def _longbench(folder: Path) -> Path:
    rows = [
        {"_id": str(n), "input": "What did the keeper carry?", "answers": ["oil"], "length": 9,
         "context": _story(n), "dataset": "hotpotqa", "language": "en", "all_classes": None}
        for n in (1, 2)
    ]  # fmt: skip
    return _jsonl(folder / "hotpotqa.jsonl", rows)


def _infinitebench(folder: Path) -> Path:
    rows = [{"id": n, "input": "What did the keeper carry?", "answer": ["oil"], "options": [],
             "context": _story(n)} for n in (1, 2)]  # fmt: skip
    return _jsonl(folder / "longbook_qa_eng.jsonl", rows)


def _scrolls(folder: Path) -> Path:
    rows = [{"id": str(n), "pid": f"{n}_0", "input": _story(n), "output": "Oil was carried."}
            for n in (1, 2)]  # fmt: skip
    return _jsonl(folder / "validation.jsonl", rows)


_MADE = {
    "quality": _quality,
    "narrativeqa": _narrativeqa,
    "ultradomain": _ultradomain,
    "longbench": _longbench,
    "infinitebench": _infinitebench,
    "scrolls": _scrolls,
}
