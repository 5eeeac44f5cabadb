"""LongBench (THUDM/LongBench): a jsonl file per task.

Fields: input, context, answers, _id, language, dataset. Summarization tasks have no input. `length`
counts words or characters, depending on the language, and is not used. A question's `task` is its
dataset: the metric `longbench` scores it as LongBench does (stages/score/longbench_metrics.py).
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Literal

from pipeline.core.rows import Question
from stages.corpora.formats.scrolls import SUMMARY
from stages.corpora.reading.corpus import FileCorpus
from stages.corpora.reading.corpus_files import files_of, rows_of
from stages.corpora.reading.grouped import Format, Text, itself, load_grouped
from stages.corpora.reading.loaded import Loaded
from stages.corpora.reading.row_checks import (
    json_text,
    label_of,
    optional_text,
    question_of,
    text_of,
    texts_of,
)

_KEPT = ("_id", "input", "answers", "dataset", "language", "all_classes")
_SUMMARIZE = ("gov_report", "multi_news", "vcsum")


class LongBenchCorpus(FileCorpus):
    """The file of a task, or a folder of such files."""

    papers: ClassVar[tuple[str, ...]] = ("longbench",)
    format: Literal["longbench"]

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per context. Raises UsageError where no line can be read."""
        return load_grouped(self, partial(rows_of, files_of(self.path, "*.jsonl")), _FORMAT)


def _text(row: dict[str, Any]) -> Text:
    return Text(text_of(row, "context"), metadata=_about(row))


def _about(row: dict[str, Any]) -> dict[str, Any]:
    known = {"dataset": label_of(row, "dataset"), "language": label_of(row, "language")}
    return {key: fact for key, fact in known.items() if fact}


def _question(document_id: str, value: dict[str, Any], question_id: str) -> Question:
    task = (label_of(value, "dataset") or "").removesuffix("_e")
    summarizes = task in _SUMMARIZE and not (optional_text(value, "input") or "").strip()
    return Question(
        document_id=document_id,
        question_id=question_id,
        question=SUMMARY if summarizes else question_of(value, "input"),
        references=texts_of(value, "answers"),
        question_type=task or None,
        task=task or None,
        classes=texts_of(value, "all_classes"),
        metadata=json_text(_about(value)),
    )


_FORMAT = Format(
    document_id=None,
    question_id="_id",
    asks=("input",),
    text=_text,
    asked=partial(itself, _KEPT),
    question=_question,
)
