"""Runs of a warehouse filled by hand, with scores chosen by the test."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.store.runs.run_folder import RunFolder
from pipeline.work.units import Step, Unit
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
    """A warehouse of runs, of the run `r` with these scores; `words` are those of every command
    over it."""

    def __init__(
        self, folder: Path, scores: Mapping[str, Mapping[str, Values]] | None = None
    ) -> None:
        self.warehouse = Warehouse(folder / "warehouse")
        self.words = [f"warehouse={self.warehouse.folder}"]
        if scores:
            self.add("r", scores)

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
        letters = sorted({name[0] for name in questions})
        documents = step("documents", version=version)
        units = [document_unit(documents, letter) for letter in letters]
        for unit, letter in zip(units, letters, strict=True):
            self.warehouse.commit(documents, unit, [document(letter)])
        texts = {name: {"question": text} for name, text in (asked or {}).items()}
        rows: dict[str, list[Any]]
        rows = {name: [question(name, name[0], **texts.get(name, {}))] for name in questions}
        of_corpus = step("questions", version=version)
        planned = [(documents, units), (of_corpus, self._committed(of_corpus, rows))]
        for repeat, own in enumerate((scores, *repeats)):
            for method, of in own.items():
                names = sorted({name for values in of.values() for name in values})
                rows = {
                    name: [score(name, metric, values[name], name[0])
                           for metric, values in sorted(of.items()) if name in values]
                    for name in names
                }  # fmt: skip
                scored = step("scores", method, repeat, version)
                planned.append((scored, self._committed(scored, rows)))
        self.warehouse.plan(run, *planned)
        facts = {**FACTS, "methods": list(scores), "columns": COLUMNS}
        RunFolder(self.warehouse.folder, run).start({"report": facts}, {}, True)

    def _committed(self, of: Step, rows: Mapping[str, Sequence[Any]]) -> list[Unit]:
        """The units of these rows by question, one for each document."""
        units = []
        for letter in sorted({name[0] for name in rows}):
            own = [name for name in rows if name[0] == letter]
            units.append(chunk(of, letter, *own))
            self.warehouse.commit(of, units[-1], [row for name in own for row in rows[name]])
        return units

    def compared(self, *words: str) -> str:
        return succeeded(gistmill("compare", *words, *self.words))

    def refused(self, *words: str) -> str:
        return one_line(gistmill("compare", *words, *self.words))
