"""What a stage is: an async function from the rows of one unit to new rows of one table.

A stage class is found by its name and kind in `STAGES` once its module is imported.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, Literal

from pipeline.ask import Ask
from pipeline.errors import AccountingError, Problem
from pipeline.names import register
from pipeline.prompts import Prompt
from pipeline.rows import IndexRow, Record, UnitRows, is_per_question
from pipeline.settings import Settings

Role = Literal["reader", "memory", "extractor", "judge"]
ROLES: tuple[Role, ...] = ("reader", "memory", "extractor", "judge")
STAGES: "dict[str, dict[str, type[Stage]]]" = {}  # name -> kind -> class

ASKED = ("question", "options", "asked_at")  # fields of a question that prompts show
GOLD = ("references", "answer_index", "evidence")  # and those that only judges may see


@dataclass(frozen=True)
class Column:
    """A column of the report: a measure of the view `measures`, its heading, and its place (columns
    stand in the order of their places). `has_interval`: its spread is printed, too.

    With `geometric_mean_of`, measures of the view, it is the geometric mean of their means.
    """

    measure: str
    heading: str
    place: int
    has_interval: bool = True
    geometric_mean_of: Sequence[str] = ()


class Stage(Settings):
    """Settings are its fields; those of them that a method's YAML leaves out are the family's, the
    corpus's or the run's of the same name. All are hashed into the step's name.

    `run` gets the rows named in `reads` (the document always, the questions where `writes` has
    a question_id) and returns the unit's rows of `writes`, in the order of their key.
    """

    name: ClassVar[str]
    kind: ClassVar[str] = ""  # tells it from other stages of the same name
    version: ClassVar[int]  # raise when the rows it makes change meaning
    reads: ClassVar[tuple[type[Record], ...]] = ()
    writes: ClassVar[type[Record]]
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = ()  # all that it may ask
    # Prompts that it does not ask but leaves room for in the context: their reply budgets shape it.
    leaves_room_for: ClassVar[tuple[type[Prompt[Any]], ...]] = ()
    role: ClassVar[Role] = "reader"  # whose engine is asked
    # All that it is given of a document (beside its id) and of a question; so these are what a
    # unit is named by, and no other change of a row redoes it.
    document_fields: ClassVar[tuple[str, ...]] = ("text", "num_words")
    question_fields: ClassVar[tuple[str, ...]] = ASKED
    starts_memory: ClassVar[bool] = False  # other index rows rest on what it writes: a pagination
    asks_in_turn: ClassVar[bool] = False  # each call for a document or question waits for the last

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        if "version" not in cls.__dict__ and "kind" not in cls.__dict__:
            return  # a base of others
        kinds = STAGES.setdefault(cls.name, {})
        register(kinds, cls.kind, cls, f"is the stage {cls.label()}")

    @classmethod
    def label(cls) -> str:
        """Its name and kind, for messages."""
        return f"{cls.name} (kind {cls.kind})" if cls.kind else cls.name

    @abstractmethod
    async def run(self, rows: UnitRows, ask: Ask) -> Sequence[Record]:
        """The unit's new rows. Whatever a model does wrong is a row with a problem."""

    @abstractmethod
    def failed(self, rows: UnitRows, problem: Problem, detail: str | None) -> Sequence[Record]:
        """A row with `problem` for each input of the unit, in place of what `run` would return."""

    def check(self, rows: UnitRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless `made` is what these rows must lead to."""

    def lack(self, rows: UnitRows) -> str | None:
        """What every input of the unit needs and the document or its memory lacks; null where all
        is there. Rows of questions are for `run` to look at, one by one."""
        whole = [rows.document, *(row for record in self.reads if not is_per_question(record)
                                  for row in rows[record])]  # fmt: skip
        return next((lack for row in whole if (lack := row.lack())), None)

    def asked(self) -> tuple[type[Prompt[Any]], ...]:
        """The prompts that it asks with its settings."""
        return self.prompts

    def hashed(self) -> dict[str, Any]:
        """Its settings as JSON: all that names its step beside prompts, engine and inputs."""
        return {**({"kind": self.kind} if self.kind else {}), **self.model_dump(mode="json")}

    def refuse_unusable(self, place: str) -> None:
        """Raise UsageError, naming `place`, where it lacks something on this machine."""

    def columns(self) -> Mapping[Literal["any", "free", "choice"], tuple[Column, ...]]:
        """The columns it brings to the report: whatever the questions are, where some are
        free-form, where some have options."""
        return {}

    @classmethod
    def per_question(cls) -> bool:
        """Whether a unit is a chunk of a document's questions rather than the document."""
        return is_per_question(cls.writes)

    @classmethod
    def is_index(cls) -> bool:
        """Whether it writes a document's memory, which no method owns."""
        return issubclass(cls.writes, IndexRow)


def refuse_gaps(rows: UnitRows, made: Sequence[Record], number: str) -> None:
    """Raise AccountingError unless each question's rows stand together, in question order, and
    their `number` column counts up from 0."""
    groups = groupby(((getattr(row, "question_id", ""), getattr(row, number)) for row in made),
                     key=lambda pair: pair[0])  # fmt: skip
    numbered = [(question_id, [pair[1] for pair in pairs]) for question_id, pairs in groups]
    whole = all(numbers == list(range(len(numbers))) for _, numbers in numbered)
    if not whole or [q for q, _ in numbered] != [q.question_id for q in rows.questions]:
        raise AccountingError(f"{rows.document.document_id}: {number} does not add up")
