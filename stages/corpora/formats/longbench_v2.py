"""LongBench v2 (THUDM/LongBench-v2): one JSON list of multiple-choice questions with their context.

Fields: _id, question, choice_A to choice_D, answer (a letter), context, domain, sub_domain,
difficulty, length (short, medium, long).
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Literal

from pipeline.core.rows import Question
from stages.corpora.reading.corpus import FileCorpus
from stages.corpora.reading.corpus_files import files_of, rows_of
from stages.corpora.reading.grouped import Format, Text, itself, load_grouped
from stages.corpora.reading.loaded import Loaded
from stages.corpora.reading.row_checks import json_text, label_of, letter_of, question_of, text_of

_CHOICES = tuple(f"choice_{letter}" for letter in "ABCD")
_ABOUT = ("sub_domain", "difficulty", "length")
_KEPT = ("_id", "question", *_CHOICES, "answer", "domain", *_ABOUT)


class LongBenchV2Corpus(FileCorpus):
    """data.json, or its folder."""

    papers: ClassVar[tuple[str, ...]] = ("longbench_v2",)
    format: Literal["longbench_v2"]

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per context. Raises UsageError where nothing can be read."""
        files = files_of(self.path, "*.json", "*.jsonl")
        return load_grouped(self, partial(rows_of, files), _FORMAT)


def _text(row: dict[str, Any]) -> Text:
    return Text(text_of(row, "context"))


def _question(document_id: str, value: dict[str, Any], question_id: str) -> Question:
    options = tuple(text_of(value, choice) for choice in _CHOICES)
    right = letter_of(value, "answer", len(options))
    known = {key: label_of(value, key) for key in _ABOUT}
    return Question(
        document_id=document_id,
        question_id=question_id,
        question=question_of(value, "question"),
        options=options,
        references=() if right is None else (options[right],),
        answer_index=right,
        question_type=label_of(value, "domain"),
        metadata=json_text({key: fact for key, fact in known.items() if fact}),
    )


_FORMAT = Format(
    document_id=None,
    question_id="_id",
    asks=("question", *_CHOICES),
    text=_text,
    asked=partial(itself, _KEPT),
    question=_question,
)
