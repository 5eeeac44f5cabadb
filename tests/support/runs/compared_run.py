"""Runs of a warehouse filled by hand, with scores chosen by the test."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.store.runs.run_folder import RunFolder
from tests.support.command import gistmill, one_line, succeeded
from tests.support.runs.warehouse import (
    Warehouse,
    chunk,
    document,
    document_unit,
    question,
    score,
    step,
)

COLUMNS = {
    "any": [{"measure": "evidence_recall", "heading": "recall", "place": 60}],
    "free": [
        {"measure": "squad_em", "heading": "squad_em", "place": 40, "more_is_better": True},
        {"measure": "geometric", "heading": "geo", "place": 41,
         "geometric_mean_of": ["part_1", "part_2"]},
        {"measure": "by_group", "heading": "by group", "place": 42,
         "mean_of_means": ["squad_em", "question_type"]},
    ],
    "choice": [{"measure": "accuracy", "heading": "Accuracy", "place": 50}],
}  # fmt: skip
FACTS = {
    "corpus": "tests", "engine": "x", "is_model": True, "judging": ["rate"], "family": "x",
    "wording": "ours", "reply_format": "free", "stages": [],
}  # fmt: skip
Values = Mapping[str, float | None]
"""A value by question, whose document is the letter before its number: a1 is of document a."""


class ComparedRun:
    """A warehouse of runs; `words` are those of every command over it."""

    def __init__(self, folder: Path) -> None:
        self.warehouse = Warehouse(folder / "warehouse")
        self.words = [f"warehouse={self.warehouse.folder}"]

    def add(
        self,
        run: str,
        scores: Mapping[str, Mapping[str, Values]],
        repeats: Sequence[Mapping[str, Mapping[str, Values]]] = (),
        asked: Mapping[str, str] | None = None,
        version: int = 1,
    ) -> None:
        """A run with `scores` by method and metric; `repeats` are those of repeat 1, 2 ... `asked`:
        texts of questions; `version` of all steps, so that two runs have rows of their own."""
        metrics = [values for own in (scores, *repeats) for of in own.values()
                   for values in of.values()]  # fmt: skip
        questions = sorted({name for values in metrics for name in values})
        planned = [*self._corpus(questions, asked or {}, version)]
        for repeat, own in enumerate((scores, *repeats)):
            for method, of in own.items():
                scored = step("scores", method, repeat, version)
                planned.append((scored, self._scores(scored, of)))
        self.warehouse.plan(run, *planned)
        facts = {**FACTS, "methods": list(scores), "columns": COLUMNS}
        RunFolder(self.warehouse.folder, run).start({"report": facts}, {}, True)

    def _corpus(self, questions: Sequence[str], asked: Mapping[str, str], version: int) -> Any:
        documents, of_corpus = (
            step("documents", version=version),
            step("questions", version=version),
        )
        letters = sorted({name[0] for name in questions})
        whole = [document_unit(documents, letter) for letter in letters]
        for unit, letter in zip(whole, letters, strict=True):
            self.warehouse.commit(documents, unit, [document(letter)])
        units = []
        for letter in letters:
            own = [name for name in questions if name[0] == letter]
            unit = chunk(of_corpus, letter, *own)
            rows = [question(n, letter, **({"question": asked[n]} if n in asked else {}))
                    for n in own]  # fmt: skip
            self.warehouse.commit(of_corpus, unit, rows)
            units.append(unit)
        return (documents, whole), (of_corpus, units)

    def _scores(self, of: Any, metrics: Mapping[str, Values]) -> list[Any]:
        names = sorted({name for values in metrics.values() for name in values})
        units = []
        for letter in sorted({name[0] for name in names}):
            own = [name for name in names if name[0] == letter]
            unit = chunk(of, letter, *own)
            rows = [score(name, metric, values[name], letter)
                    for name in own for metric, values in sorted(metrics.items())
                    if name in values]  # fmt: skip
            self.warehouse.commit(of, unit, rows)
            units.append(unit)
        return units

    def compared(self, *words: str) -> str:
        return succeeded(gistmill("compare", *words, *self.words))

    def refused(self, *words: str) -> str:
        return one_line(gistmill("compare", *words, *self.words))
