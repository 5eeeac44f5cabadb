"""The base class of stages: an async function from the rows of one unit to new rows of one table.
Importing a stage's module registers its class in `STAGES`.

The class is checked then, so that a mistake in a plugin is one line, not a failure of every
document; the rows that a stage returns are checked before they are committed.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args, get_type_hints

from pipeline.core.errors import AccountingError, Problem, UsageError
from pipeline.core.prompts import Prompt
from pipeline.core.registry import Registry, file_of, is_ours
from pipeline.core.rows import (
    IndexRow,
    Record,
    UnitRows,
    arrow_type,
    is_per_question,
    wrong_value,
)
from pipeline.core.settings import Settings

if TYPE_CHECKING:  # a command that only reads a warehouse needs no engines, which this imports
    from pipeline.asking.ask import Ask

Role = Literal["reader", "memory", "extractor", "query_expander", "judge"]
ROLES: tuple[Role, ...] = get_args(Role)
STAGES: "Registry[type[Stage]]" = Registry("is the stage {}", "stages", True)  # by label
COLUMNS: "Registry[type[Stage]]" = Registry("has the column {!r}", "columns")  # of reports
# The function or class that makes each measure: one metric, one rubric of a judge, or one of our
# tables by its SQL.
MEASURES: Registry[Any] = Registry("makes the measure {!r}")

# Marks a setting added later: it is hashed only if it differs from its default, so existing steps
# keep their ids.
CAME_LATER = "came later"
QuestionKind = Literal["any", "free", "choice"]  # any; some are free-form; some have options
ASKED = ("question", "options", "asked_at")  # fields of a question that prompts show
GOLD = ("references", "answer_index", "evidence")  # fields that only judges and scores may use


@dataclass(frozen=True)
class Column:
    """A column of the report: a measure of the view `measures`, and its heading."""

    measure: str
    heading: str
    place: int  # columns are sorted by it
    has_interval: bool = True  # the measure's spread is printed, too
    geometric_mean_of: Sequence[str] = ()  # measures: the column is that of their means
    # A measure and a column of questions: the mean of the measure's means for each of its values.
    mean_of_means: Sequence[str] = ()
    about: str = ""  # the definition of the measure, as a paper states it
    more_is_better: bool = False  # the highest mean is marked
    is_judged: bool = False  # the rater is a model, which may fail
    right_labels: Sequence[str] = ("yes",)  # of a person, for what a judged measure counts as right


Columns = Mapping[QuestionKind, tuple[Column, ...]]


class Stage(Settings):
    """Base class of stages; its fields are its settings, all hashed into the step's name. A setting
    that a method's YAML leaves out is taken from the family, the corpus or the run.

    `run` gets the rows named in `reads` (the document always, the questions if `writes` has a
    question_id) and returns the unit's rows of `writes`, in the order of their key.
    """

    name: ClassVar[str]
    kind: ClassVar[str] = ""  # distinguishes stages of the same name
    version: ClassVar[int] = 0  # raised when the rows it makes change meaning; a plugin's has one
    reads: ClassVar[tuple[type[Record], ...]] = ()
    writes: ClassVar[type[Record]]
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = ()  # all that it may ask
    # Prompts of later stages for which its choices leave room in the context; their reply budgets
    # are hashed, too.
    leaves_room_for: ClassVar[tuple[type[Prompt[Any]], ...]] = ()
    role: ClassVar[Role] = "reader"  # selects the engine
    # The only fields of a document and of a question, besides ids, that it receives. Units are
    # named by a hash of them, so a change of other fields redoes nothing.
    document_fields: ClassVar[tuple[str, ...]] = ("text", "num_words")
    question_fields: ClassVar[tuple[str, ...]] = ASKED
    # The classes in `reads` that belong to another memory than the rows it writes.
    reads_other_memory: ClassVar[tuple[type[Record], ...]] = ()
    starts_memory: ClassVar[bool] = False  # a pagination, on which other index rows are based
    asks_in_turn: ClassVar[bool] = False  # calls for a document or question are sequential
    report_columns: ClassVar[Columns] = {}  # the columns that it has with any settings

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        declared: Columns = cls.__dict__.get("report_columns", {})
        for column in (column for columns in declared.values() for column in columns):
            if not is_ours(cls) and is_ours(MEASURES.get(column.measure, cls)):
                MEASURES.add(column.measure, cls)  # raises: a mean would be of both
            if column.measure not in COLUMNS:  # several stages may fill it
                COLUMNS.add(column.measure, cls, column.about)
        of_stage = {"version", "kind"} if is_ours(cls) else {"version", "kind", "name"}
        is_base = cls.__abstractmethods__ and not of_stage & {*cls.__dict__}
        if is_base or ABC in cls.__bases__:
            return
        _refuse_wrong_stage(cls)
        STAGES.add(cls.label(), cls)

    @classmethod
    def label(cls) -> str:
        return f"{cls.name} (kind {cls.kind})" if cls.kind else cls.name

    @abstractmethod
    async def run(self, rows: UnitRows, ask: "Ask") -> Sequence[Record]:
        """Make the unit's new rows. A failure of the model becomes a row with a problem."""

    def row_per(self) -> str:
        """The column that identifies a row's input: question_id, page_index for rows of the pages
        in the first of `reads`, or else document_id."""
        if is_per_question(self.writes):
            return "question_id"
        return "page_index" if "page_index" in self.writes.key and self.reads else "document_id"

    def inputs(self, rows: UnitRows) -> Sequence[Record]:
        """The inputs of its rows, in order: the questions, a row of each page, or the document."""
        if is_per_question(self.writes):
            return rows.questions
        if self.row_per() == "document_id":
            return (rows.document,)
        pages = groupby(rows[self.reads[0]], key=attrgetter("page_index"))
        return [next(rows_of_page) for _, rows_of_page in pages]

    def empty(self, rows: UnitRows, about: Record) -> Record:
        """The row for an input, with empty values."""
        return self.writes.about(about)

    def failed(self, rows: UnitRows, problem: Problem, detail: str | None) -> Sequence[Any]:
        """Rows with `problem`, one for each input of the unit, which replace those of `run`."""
        failed: Any = (self.empty(rows, about) for about in self.inputs(rows))
        return [replace(row, problem=problem, detail=detail) for row in failed]

    def check(self, rows: UnitRows, records: Sequence[Record]) -> None:
        """Raise AccountingError unless every input has rows, in the order of the inputs: one row,
        or, if the table's key has more columns, any number with different keys."""
        per, document_id = self.row_per(), rows.document.document_id
        keys = [tuple(getattr(row, name) for name in self.writes.key) for row in records]
        inputs = [key for key, _ in groupby(records, key=attrgetter(per))]
        is_whole = len({*keys}) == len(keys) and all(r.document_id == document_id for r in records)
        if not is_whole or inputs != [getattr(row, per) for row in self.inputs(rows)]:
            what = f"{self.writes.table} do not match {per.split('_')[0]}s"
            raise AccountingError(f"{document_id}: {what}")

    def expected(self, rows: UnitRows) -> int | None:
        """The number of questions or pages that its calls are about, for the progress inside a
        unit; None if only `run` can report it (`ask.progress`)."""
        if self.asks_in_turn:
            return None
        if is_per_question(self.writes):
            return len(rows.questions)
        return max((len(rows[record]) for record in self.reads), default=None)

    def why_unusable(self, rows: UnitRows) -> str | None:
        """The reason why the unit cannot run at all: the first failed document or index row; None
        if it can. `run` handles failed rows of single questions."""
        shared = [record for record in self.reads if not is_per_question(record)]
        whole = [rows.document, *(row for record in shared for row in rows[record])]
        return next((reason for row in whole if (reason := row.why_unusable())), None)

    def prompts_used(self) -> tuple[type[Prompt[Any]], ...]:
        return self.prompts

    def hashed(self) -> dict[str, Any]:
        """Its kind and settings as JSON, for the hash in the step's name."""
        left_out = {
            name
            for name, field in type(self).model_fields.items()
            if CAME_LATER in field.metadata and getattr(self, name) == field.default
        }
        settings = self.model_dump(mode="json", exclude=left_out)
        return {**({"kind": self.kind} if self.kind else {}), **settings}

    def inputs_per_question(self) -> Mapping[str, Any]:
        """Inputs of single questions that the stage itself supplies, as JSON by question_id. They
        are hashed with the question's other inputs, so a change redoes that question only."""
        return {}

    def refuse_unusable(self, place: str) -> None:
        """Raise UsageError, naming `place`, if the stage cannot run on this machine."""

    def refuse_upstream(self, place: str, upstream: Sequence["Stage"]) -> None:
        """Raise UsageError, naming `place`, if its settings do not fit those of `upstream`."""

    def columns(self) -> Columns:
        """Its columns of the report; settings may add to `report_columns`."""
        return self.report_columns

    @classmethod
    def is_index(cls) -> bool:
        """True if it writes rows of a document's memory."""
        return issubclass(cls.writes, IndexRow)


def _refuse_wrong_stage(cls: Any) -> None:
    """Raise UsageError, naming file, class and attribute, unless the stage can be executed."""
    if not isinstance(getattr(cls, "name", None), str):
        raise _error(cls, "name", "is no str; write `name: ClassVar[str] = ...`")
    if cls.__abstractmethods__:
        raise _error(cls, min(cls.__abstractmethods__), "is missing; write it")
    for name in ("reads", "prompts"):
        if not isinstance(getattr(cls, name), tuple):
            raise _error(cls, name, "is no tuple of classes; write `(Name,)`")
    if cls.role not in ROLES:
        raise _error(cls, "role", f"{cls.role!r} is none; there are {', '.join(ROLES)}")
    writes = getattr(cls, "writes", None)
    if not (isinstance(writes, type) and issubclass(writes, Record) and hasattr(writes, "table")):
        raise _error(cls, "writes", "is no Record class with a `table`; name one")
    if not is_ours(cls):  # a test checks our own: it takes 0.1 s of CPU time
        refuse_wrong_parts(writes, cls.prompts)


def refuse_wrong_parts(record: Any, prompts: Sequence[Any]) -> None:
    """Raise UsageError unless rows of the record can be written and each prompt has samples."""
    columns = [field.name for field in dataclasses.fields(record)]
    if unknown := [name for name in record.key if name not in columns]:
        raise _error(record, "key", f"no column {unknown[0]!r}; there are {', '.join(columns)}")
    hints = get_type_hints(record, include_extras=True)
    for name in columns:
        try:
            arrow_type(hints[name])
        except KeyError:
            takes = "str, int, float, bool, datetime, a tuple of one of them, or a dataclass"
            raise _error(record, name, f"is no column's type; a column is {takes}") from None
    for prompt in prompts:
        if not prompt.samples():
            raise _error(prompt, "samples", "is to return examples of the prompt; there are none")


def _error(cls: type, attribute: str, why: str) -> UsageError:
    return UsageError(f"{file_of(cls)}: {cls.__name__}.{attribute} {why}")


def wrong_rows(stage: Stage, inputs: UnitRows, rows: Any, is_checked: bool = True) -> str:
    """Describe the first wrong one of the `rows` that a stage returned, naming its file: a wrong
    class, a column's value, or, with `is_checked`, the error of `Stage.check`. "" if no row is
    wrong."""
    record, wrong = stage.writes, ""
    if not isinstance(rows, list | tuple):
        wrong = f"returned {type(rows).__name__}, not a list of {record.__name__}"
    elif of_other_class := [n for n, row in enumerate(rows) if type(row) is not record]:
        number = of_other_class[0]
        wrong = f"row {number} is of class {type(rows[number]).__name__}, not {record.__name__}"
    elif why := wrong_value(record, rows):
        wrong = f"{record.table}: {why}"
    elif is_checked:
        try:
            stage.check(inputs, rows)
        except AccountingError as error:
            wrong = str(error)
    return wrong and f"{file_of(type(stage))}: stage {stage.label()}: {wrong}"
