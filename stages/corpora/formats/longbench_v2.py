"""LongBench v2 (THUDM/LongBench-v2): one JSON list of multiple-choice questions with their context.

Fields: _id, question, choice_A to choice_D, answer (a letter), context, domain, sub_domain,
difficulty, length (short, medium, long).
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

from stages.corpora.reading.asked import Asked
from stages.corpora.reading.grouped import Layout, RowsCorpus
from stages.corpora.reading.row_checks import letter_of, text_of

_CHOICES = tuple(f"choice_{letter}" for letter in "ABCD")


class LongBenchV2Corpus(RowsCorpus):
    """data.json, or its folder."""

    papers: ClassVar[tuple[str, ...]] = ("longbench_v2",)
    licences: ClassVar[Mapping[str, str]] = {"LongBench v2": "Apache-2.0"}
    format: Literal["longbench_v2"]
    files: ClassVar[tuple[str, ...]] = ("*.json", "*.jsonl")
    layout: ClassVar[Layout] = Layout(
        text="context",
        makes_id=("question", *_CHOICES),
        asked=Asked(
            question_id="_id",
            question="question",
            options=lambda value: tuple(text_of(value, choice) for choice in _CHOICES),
            right=lambda value, num_options: letter_of(value, "answer", num_options),
            question_type="domain",
            metadata=("sub_domain", "difficulty", "length"),
        ),
    )
