"""Two documents of every corpus that experiments name, small but for what ships in tests/data."""

import csv
import json
from collections.abc import Callable, Mapping
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
    if name == "narrativeqa":
        return _narrativeqa(folder)
    file, row = _ROWS[name]
    lines = (json.dumps(row(number, _story(number))) for number in (1, 2))
    (folder / file).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder / file


def _story(number: int) -> str:
    return STORY.format(n=number) * 40


def _narrativeqa(folder: Path) -> Path:
    """Of the split valid two books and two films."""
    (folder / "tmp").mkdir(exist_ok=True)
    documents, questions = [NARRATIVEQA], [QAPS]
    for number, kind in enumerate(("gutenberg", "movie", "gutenberg", "movie"), 1):
        name = f"{number:040x}"
        (folder / "tmp" / f"{name}.content").write_text(_story(number))
        about = [name, "valid", kind, "", "1", "", "The Mill", "1600", "The keeper", "of it ."]
        documents.append(about)
        questions.append([name, "valid", _ASKED, "Oil.", "A can of oil.", *"???"])
    for file, rows in (("documents.csv", documents), ("qaps.csv", questions)):
        with (folder / file).open("w", newline="") as opened:
            csv.writer(opened).writerows(rows)
    return folder


_ASKED = "What did the keeper carry?"
_QUALITY = {
    "question": "Who took the sails off?", "gold_label": 2, "writer_label": 2, "difficult": 1,
    "options": ["The keeper", "The miller", "Nobody", "The wind"],
}  # fmt: skip
_LONG = {"input": _ASKED, "answers": ["oil"], "length": 9}
_ROWS: Mapping[str, tuple[str, Callable[[int, str], dict[str, Any]]]] = {
    "quality": ("QuALITY.dev.jsonl", lambda n, story: {
        "article_id": str(n), "title": "The Mill", "article": f"<p>{story}</p>",
        "questions": [{**_QUALITY, "question_unique_id": f"{n}_A_1"}]}),
    "ultradomain": ("cs.jsonl", lambda n, story: {
        **_LONG, "_id": str(n), "context": story, "context_id": str(n), "label": "cs",
        "meta": {"title": "Towers"}}),
    "longbench": ("hotpotqa.jsonl", lambda n, story: {
        **_LONG, "_id": str(n), "context": story, "dataset": "hotpotqa", "language": "en",
        "all_classes": None}),
    "infinitebench": ("longbook_qa_eng.jsonl", lambda n, story: {
        "id": n, "input": _ASKED, "answer": ["oil"], "options": [], "context": story}),
    "scrolls": ("validation.jsonl", lambda n, story: {
        "id": str(n), "pid": f"{n}_0", "input": story, "output": "Oil was carried."}),
}  # fmt: skip
