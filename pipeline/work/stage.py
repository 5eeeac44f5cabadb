"""The base class of stages: an async function from the rows of one unit to new rows of one table.

Importing a stage's module registers its class in `STAGES` by name and kind.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, Literal

from pipeline.asking.ask import Ask
from pipeline.core.errors import AccountingError, Problem
from pipeline.core.prompts import Prompt
from pipeline.core.registry import register
from pipeline.core.rows import IndexRow, Record, UnitRows, is_per_question
from pipeline.core.settings import Settings

Role = Literal["reader", "memory", "extractor", "judge"]
ROLES: tuple[Role, ...] = ("reader", "memory", "extractor", "judge")
STAGES: "dict[str, dict[str, type[Stage]]]" = {}  # name -> kind -> class

ASKED = ("question", "options", "asked_at")  # fields of a question that prompts show
GOLD = ("references", "answer_index", "evidence")  # fields that only judges and scores may use


@dataclass(frozen=True)
class Column:
    """A column of the report: a measure of the view `measures`, and its heading.

    `place`: columns are sorted by it. `has_interval`: the measure's spread is printed, too.
    `more_is_better`: a higher mean is a better one, so the best is marked. `is_judged`: it comes
    from a rater that is a model, which may fail. With `geometric_mean_of`, measures of the view, it
    is the geometric mean of their means. With `mean_of_means`, a measure of the view and a column
    of questions, it is the mean of the measure's means over the questions of each value of that
    column. `about`: the definition of the measure, as a paper states it.
    """

    measure: str
    heading: str
    place: int
    has_interval: bool = True
    geometric_mean_of: Sequence[str] = ()
    mean_of_means: Sequence[str] = ()
    about: str = ""
    more_is_better: bool = False
    is_judged: bool = False


class Stage(Settings):
    """Base class of stages; its fields are its settings, all hashed into the step's name. A setting
    that a method's YAML leaves out is taken from the family, the corpus or the run.

    `run` gets the rows named in `reads` (the document always, the questions if `writes` has a
    question_id) and returns the unit's rows of `writes`, in the order of their key.
    """

    name: ClassVar[str]
    kind: ClassVar[str] = ""  # distinguishes stages of the same name
    version: ClassVar[int]  # raise when the rows it makes change meaning
    reads: ClassVar[tuple[type[Record], ...]] = ()
    writes: ClassVar[type[Record]]
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = ()  # all that it may ask
    # Prompts of later stages that its choices leave room for in the context; their reply budgets
    # are hashed, too.
    leaves_room_for: ClassVar[tuple[type[Prompt[Any]], ...]] = ()
    role: ClassVar[Role] = "reader"  # selects the engine
    # The only fields of a document and of a question, besides ids, that it is given. Units are
    # named by a hash of them, so a change of other fields redoes nothing.
    document_fields: ClassVar[tuple[str, ...]] = ("text", "num_words")
    question_fields: ClassVar[tuple[str, ...]] = ASKED
    # Those of `reads` that belong to another memory than the rows it writes.
    reads_other_memory: ClassVar[tuple[type[Record], ...]] = ()
    starts_memory: ClassVar[bool] = False  # a pagination, on which other index rows are based
    asks_in_turn: ClassVar[bool] = False  # calls for a document or question are sequential

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        if "version" not in cls.__dict__ and "kind" not in cls.__dict__:
            return  # an abstract base class
        kinds = STAGES.setdefault(cls.name, {})
        register(kinds, cls.kind, cls, f"is the stage {cls.label()}")

    @classmethod
    def label(cls) -> str:
        """The stage's name and kind, for messages."""
        return f"{cls.name} (kind {cls.kind})" if cls.kind else cls.name

    @abstractmethod
    async def run(self, rows: UnitRows, ask: Ask) -> Sequence[Record]:
        """The unit's new rows. A failure of the model becomes a row with a problem."""

    @abstractmethod
    def failed(self, rows: UnitRows, problem: Problem, detail: str | None) -> Sequence[Record]:
        """Rows with `problem`, one for each input of the unit, instead of those of `run`."""

    def check(self, rows: UnitRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless `made` has the rows that these inputs require."""

    def expected(self, rows: UnitRows) -> int | None:
        """The number of questions or pages that its calls are about, for the progress inside a
        unit; None if only `run` can report it (`ask.progress`)."""
        if self.asks_in_turn:
            return None
        if self.per_question():
            return len(rows.questions)
        return max((len(rows[record]) for record in self.reads), default=None)

    def why_unusable(self, rows: UnitRows) -> str | None:
        """The reason why the unit cannot run at all: the first failed document or index row; None
        if it can.

        Rows of single questions are left to `run`.
        """
        whole = [rows.document, *(row for record in self.reads if not is_per_question(record)
                                  for row in rows[record])]  # fmt: skip
        return next((reason for row in whole if (reason := row.why_unusable())), None)

    def prompts_used(self) -> tuple[type[Prompt[Any]], ...]:
        """The prompts that it asks with these settings."""
        return self.prompts

    def hashed(self) -> dict[str, Any]:
        """Its kind and settings as JSON, for the hash in the step's name."""
        return {**({"kind": self.kind} if self.kind else {}), **self.model_dump(mode="json")}

    def inputs_per_question(self) -> Mapping[str, Any]:
        """Inputs of single questions that the stage itself supplies, as JSON by question_id. They
        are hashed with the question's other inputs, so a change redoes that question only."""
        return {}

    def refuse_unusable(self, place: str) -> None:
        """Raise UsageError, naming `place`, if the stage cannot run on this machine."""

    def columns(self) -> Mapping[Literal["any", "free", "choice"], tuple[Column, ...]]:
        """Its columns of the report by kind of question: any, free (if some questions are
        free-form), choice (if some have options)."""
        return {}

    @classmethod
    def per_question(cls) -> bool:
        """True if a unit is a chunk of a document's questions, false if it is the document."""
        return is_per_question(cls.writes)

    @classmethod
    def is_index(cls) -> bool:
        """True if it writes rows of a document's memory."""
        return issubclass(cls.writes, IndexRow)


def refuse_gaps(rows: UnitRows, made: Sequence[Record], number: str) -> None:
    """Raise AccountingError unless rows are grouped by question, in question order, and the column
    `number` counts up from 0 in each group."""
    groups = groupby(((getattr(row, "question_id", ""), getattr(row, number)) for row in made),
                     key=lambda pair: pair[0])  # fmt: skip
    numbered = [(question_id, [pair[1] for pair in pairs]) for question_id, pairs in groups]
    whole = all(numbers == list(range(len(numbers))) for _, numbers in numbered)
    if not whole or [q for q, _ in numbered] != [q.question_id for q in rows.questions]:
        raise AccountingError(f"{rows.document.document_id}: {number} has gaps or is out of order")
