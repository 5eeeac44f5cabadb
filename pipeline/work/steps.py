"""Steps: stages with all that determines their rows, named by its hash. Reads no files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pipeline.core.rows import Record, is_per_question
from pipeline.core.settings import sha
from pipeline.work.stage import Stage


@dataclass(frozen=True, kw_only=True)
class Step:
    """A stage with its settings, prompts, engine and inputs; `id` is a hash of them.

    `stage` is None for the two steps that load a corpus. `upstream`: the steps it reads; `memory`:
    the pagination that page indexes in its rows refer to (`shared` for the run's own).
    """

    corpus: str
    name: str
    version: int
    writes: type[Record]
    settings: Mapping[str, Any]
    prompts: Mapping[str, Any] = field(default_factory=dict)  # name -> template, budget, form
    engine: Mapping[str, Any] | None = None  # identity; None if no prompt is asked
    method: str | None = None
    repeat: int = 0
    memory: str | None = None
    upstream: tuple["Step", ...] = ()
    stage: Stage | None = field(default=None, compare=False)

    @cached_property
    def id(self) -> str:
        return f"{self.name}-{sha(self.description(), 8)}"

    def description(self) -> dict[str, Any]:
        """Everything that is hashed into `id`, as JSON."""
        starts_memory = self.stage is not None and self.stage.starts_memory
        return {
            "stage": self.name,
            "version": self.version,
            "settings": dict(self.settings),
            "prompts": dict(self.prompts),
            "engine": self.engine,
            "method": self.method,
            "repeat": self.repeat,
            "upstream": [step.id for step in self.upstream],
            **({"memory": self.memory} if starts_memory else {}),
        }

    @property
    def table(self) -> str:
        return self.writes.table

    @property
    def per_question(self) -> bool:
        return is_per_question(self.writes)

    @property
    def document_fields(self) -> tuple[str, ...] | None:
        """The fields of a document that name its units; None: all (loading steps)."""
        return self.stage.document_fields if self.stage else None

    @property
    def question_fields(self) -> tuple[str, ...] | None:
        """The fields of a question that name its units; None: all (loading steps)."""
        return self.stage.question_fields if self.stage else None
