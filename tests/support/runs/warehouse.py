"""Rows, steps and units for warehouses that tests fill by hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from upath import UPath

from pipeline.core.rows import RECORDS, Document, Question, Record
from pipeline.store import Shards
from pipeline.store.runs.run_folder import RunFolder
from pipeline.work.units import Step, Unit, unit_name
from stages.builtin import load_builtin
from stages.tables.answers import Answer, Score
from stages.tables.pages import Gist, Page
from tests.support.runs.written_plan import write_units

load_builtin()
STAGES = {  # table -> the stage that writes it
    "documents": "documents", "questions": "questions", "pages": "paginate", "gists": "gist",
    "lookups": "look_up", "nodes": "tree", "visits": "navigate", "answers": "answer",
    "ratings": "rate", "scores": "score",
}  # fmt: skip


def step(table: str, method: str | None = None, repeat: int = 0, version: int = 1) -> Step:
    """A step that writes `table`."""
    return Step(
        corpus="tests", name=STAGES[table], version=version, writes=RECORDS[table],
        settings={"words": 40}, method=method, repeat=repeat,
    )  # fmt: skip


def document_unit(of: Step, document_id: str) -> Unit:
    name = unit_name([document_id])
    return Unit(step_id=of.id, unit=name, document_id=document_id, is_done=False)


def chunk(of: Step, document_id: str, *question_ids: str) -> Unit:
    """A unit of questions; what each is made from is named after it."""
    inputs = {question_id: f"input-{question_id}" for question_id in question_ids}
    name = unit_name(inputs.values())
    return Unit(step_id=of.id, unit=name, document_id=document_id, inputs=inputs, is_done=False)


def document(document_id: str = "d1", **values: Any) -> Document:
    return Document(document_id=document_id, **{"text": "One two.", "num_words": 2, **values})


def question(question_id: str = "q1", document_id: str = "d1", **values: Any) -> Question:
    asked = {"question": f"What of {question_id}?", "references": ("A mill.",), **values}
    return Question(document_id=document_id, question_id=question_id, **asked)


def page(index: int, text: str = "One two.", document_id: str = "d1") -> Page:
    return Page(
        document_id=document_id, page_index=index, start_char=0, end_char=len(text), text=text,
        num_words=len(text.split()), chosen_by="rule",
    )  # fmt: skip


def gist(index: int, text: str = "One.", document_id: str = "d1") -> Gist:
    return Gist(document_id=document_id, page_index=index, gist=text, num_words=len(text.split()))


def answer(question_id: str = "q1", document_id: str = "d1", **values: Any) -> Answer:
    told = {"reader": "hand", "answer": "A mill.", **values}
    return Answer(document_id=document_id, question_id=question_id, **told)


def score(question_id: str, metric: str, value: float | None, document_id: str = "d1") -> Score:
    return Score(document_id=document_id, question_id=question_id, metric=metric, value=value)


class Warehouse:
    """Commits rows and plans runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shards = Shards(folder)

    def commit(
        self, of: Step, unit: Unit, rows: Sequence[Record], record: type[Record] | None = None
    ) -> UPath:
        """The shard of `rows`, which is the first of its unit; `record` for another than the
        step's own."""
        record = record or of.writes
        assert self.shards.commit(record, of, unit, rows)
        return self.shards.path(record.table, of.id, unit.unit, unit.attempt)

    def plan(self, run: str, *planned: tuple[Step, Sequence[Unit]]) -> None:
        """A run with these units, whether they are committed or not."""
        units = [unit for _, own in planned for unit in own]
        write_units(RunFolder(self.folder, run), [of for of, _ in planned], units)
