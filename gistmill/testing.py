"""For a plugin's own tests: runs of it on a small document, by an engine with scripted replies.

    from gistmill.testing import run

    def test_it_answers() -> None:
        rows = run("my_plugin", "my_method", [{"prompt": "answer", "reply": "The miller."}])
        assert rows["answers"][0]["answer"] == "The miller."

A run is that of `gistmill run`, with cluster=inline: in this process, without Ray.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gistmill
from pipeline.core.rows import RECORDS
from pipeline.store.sql.connection import query

__all__ = ["DOCUMENT", "QUESTIONS", "run"]

Rows = dict[str, list[dict[str, Any]]]
Replies = Sequence[Mapping[str, Any]] | None

DOCUMENT: Mapping[str, Any] = {  # four paragraphs of 12 words
    "document_id": "mill",
    "title": "The mill",
    "text": "\n\n".join(
        (
            "The miller Ann bought the old mill by the river in spring.",
            "In summer the river fell, and the wheel of the mill stood.",
            "Her brother Tom dug a ditch from the lake to the wheel.",
            "Since autumn the wheel turns again, and Ann sells flour to all.",
        )
    ),
}
QUESTIONS: Sequence[Mapping[str, Any]] = (  # free-form, and with options
    {"question_id": "who", "question": "Who dug the ditch?", "references": ["Tom"]},
    {"question_id": "when", "question": "When did the river fall?", "answer_index": 1,
     "options": ["in spring", "in summer"]},
)  # fmt: skip


def run(
    plugin: str | Path,
    method: str,
    replies: Replies = None,
    *words: str,
    folder: Path | None = None,
    document: Mapping[str, Any] = DOCUMENT,
    questions: Iterable[Mapping[str, Any]] = QUESTIONS,
) -> Rows:
    """Run a method of the plugin's folder; returns the committed rows by table, sorted by key.

    A request gets the first of `replies` whose `prompt` is the request's and whose `match`, a
    regular expression, is found in its text; either may be left out. `finish_reason="length"` makes
    it a truncated one. A request without a reply has problem engine_failed. None: the engine
    `extractive`, which replies by the prompts' own rules.

    The keys of `document` and `questions` are those of corpus=tables. `words`: more words of
    `gistmill run`, which replace those used here: memory=uniform with a page per paragraph,
    rater=none. `folder` keeps the run: the same call again resumes it and asks no answered question
    again. Raises gistmill.UsageError for a mistake, as the command does.
    """
    if folder is None:
        with TemporaryDirectory() as temporary:
            return run(plugin, method, replies, *words, folder=Path(temporary), document=document,
                       questions=questions)  # fmt: skip
    corpus, script = folder / "corpus", folder / "replies.yaml"
    corpus.mkdir(parents=True, exist_ok=True)
    of_document = [{"document_id": document["document_id"], **row} for row in questions]
    for name, rows in (("documents", [document]), ("questions", of_document)):
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        (corpus / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    engine = ["engine=extractive"]
    if replies is not None:
        script.write_text(json.dumps({"replies": [*replies]}), encoding="utf-8")  # JSON is YAML
        engine = ["engine=scripted", f"engine.script={script}"]
    ours = [
        f"plugins={plugin}", f"methods={method}", f"warehouse={folder / 'warehouse'}", "run=test",
        "cluster=inline", "rater=none", "memory=uniform", "memory.words=12",
        "corpus=tables", f"corpus.path={corpus}", *engine,
    ]  # fmt: skip
    replaced = tuple(f"{word.partition('=')[0]}{end}" for word in words for end in "=.")
    ours = [word for word in ours if not word.startswith(replaced)]
    with gistmill.run(*ours, *words).connect() as connection:
        return {
            table: query(connection, f"from {table} order by {', '.join(record.key)}")
            for table, record in sorted(RECORDS.items())
        }
