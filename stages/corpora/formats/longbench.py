"""LongBench (THUDM/LongBench): a jsonl file per task.

Fields: input, context, answers, _id, language, dataset. Summarization tasks have no input. `length`
counts words or characters, depending on the language, and is not used. A question's `task` is its
dataset: the metric `longbench` scores it as LongBench does (stages/score/longbench_metrics.py).
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from stages.corpora.reading.asked import Asked, Value, about, question_or_summary
from stages.corpora.reading.grouped import Layout, RowsCorpus, Text
from stages.corpora.reading.row_checks import label_of, text_of, texts_of

_SUMMARIZE = ("gov_report", "multi_news", "vcsum")


def _text(row: Value) -> Text:
    return Text(text_of(row, "context"), metadata=about(row, "dataset", "language"))


def _task(value: Value) -> str | None:
    return (label_of(value, "dataset") or "").removesuffix("_e") or None


def _question(value: Value) -> str:
    return question_or_summary(value, "input", _task(value) in _SUMMARIZE)


def _more(value: Value) -> Mapping[str, Any]:
    return {"task": _task(value), "classes": texts_of(value, "all_classes")}


class LongBenchCorpus(RowsCorpus):
    """The file of a task, or a folder of such files."""

    papers: ClassVar[tuple[str, ...]] = ("longbench",)
    licences: ClassVar[Mapping[str, str]] = {"LongBench": "MIT; the datasets in it have their own"}
    format: Literal["longbench"]
    layout: ClassVar[Layout] = Layout(
        text=_text,
        without=("context",),
        makes_id=("input",),
        asked=Asked(
            question_id="_id",
            question=_question,
            references="answers",
            question_type=_task,
            metadata=("dataset", "language"),
            more=_more,
        ),
    )
