"""RunConfig: the validated, frozen configuration of a run."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    SerializeAsAny,
)

from jobs.config.clusters import AnyCluster
from pipeline.asking.reader import ReplyFormat, is_constrained
from pipeline.core.engine import EngineSettings
from pipeline.core.settings import Settings, sha
from pipeline.engines.embedder import EmbedderSettings
from pipeline.work.stage import Role
from stages.builtin import load_builtin
from stages.corpora import Corpus

load_builtin()
MOST_RUN_NAME = 200
SECTIONS: Mapping[Role, str] = {
    "reader": "engine", "memory": "memory_engine", "extractor": "extractor",
    "query_expander": "query_expander", "judge": "rater",
}  # fmt: skip
"""The config section that sets a role's engine."""
METHOD_NAME = r"^\w[\w .+:@/-]{0,99}$"  # of another system, as tables and SQL show it


class Memory(Settings):
    """The `memory` section: the stages of the memory that methods share, as in a method's YAML, and
    overrides of their settings. A setting that is None has the prompt family's value."""

    name: str
    stages: dict[str, dict[str, Any] | None]
    min_words: PositiveInt | None
    max_words: PositiveInt | None
    tail_words: NonNegativeInt | None
    preceding_words: NonNegativeInt | None
    words: PositiveInt | None

    def overrides(self) -> dict[str, Any]:
        own = self.model_dump(exclude={"name", "stages"})
        return {key: value for key, value in own.items() if value is not None}


class SameAsReader(Settings):
    """`reader`: the reader's engine takes this role, too. `none` (raters only): no engine does."""

    name: Literal["reader", "none"]


RoleEngine = SerializeAsAny[EngineSettings | SameAsReader]


class RunConfig(Settings):
    """The resolved configuration of a run. All default values are in conf/, none here
    but of what runs of earlier versions lack."""

    name: str | None
    # A file's name has 255 characters at most, of which temporary names take 50.
    run: str | None = Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=MOST_RUN_NAME)
    warehouse: str
    plugins: str | None
    corpus: SerializeAsAny[Corpus]
    memory: Memory
    engine: SerializeAsAny[EngineSettings]
    memory_engine: RoleEngine
    extractor: RoleEngine
    # Runs of earlier versions lack this key.
    query_expander: RoleEngine = SameAsReader(name="reader")
    raters: tuple[RoleEngine, ...]
    reply_format: ReplyFormat
    shuffle_options: bool = False  # runs of earlier versions lack this key
    reply_tokens: dict[str, PositiveInt]  # by prompt; what is not here is the family's
    embedder: EmbedderSettings
    cluster: AnyCluster
    methods: str  # empty only where there are predictions
    # Files with the answers of other systems, by method name. Runs of earlier versions have none.
    predictions: dict[Annotated[str, Field(pattern=METHOD_NAME)], str] = Field(default_factory=dict)
    audit_of: str | None = None  # the run whose raters it gives answers of known worth
    limit: PositiveInt | None
    sample: PositiveInt | None
    family: str | None
    repeats: PositiveInt = Field(le=1000)  # each is a step of its own
    # The part made again in each. Runs of earlier versions, which had one repeat, lack this key.
    repeat_from: Literal["memory", "questions"] = "questions"
    questions_per_unit: PositiveInt
    max_problem_rate: NonNegativeFloat = Field(le=1)
    max_fallback_rate: NonNegativeFloat = Field(le=1)

    def engines(self, role: Role) -> list[EngineSettings]:
        """The engines of a role without duplicates: all raters for `judge`, else one."""
        chosen: tuple[EngineSettings | SameAsReader, ...] = {
            "reader": (self.engine,),
            "memory": (self.memory_engine,),
            "extractor": (self.extractor,),
            "query_expander": (self.query_expander,),
            "judge": self.raters,
        }[role]
        found: dict[str, EngineSettings] = {}
        for engine in chosen:
            if isinstance(engine, EngineSettings):
                found[sha(engine.identity())] = engine
            elif engine.name == "reader":
                found[sha(self.engine.identity())] = self.engine
        return list(found.values())

    def is_constrained(self, engine: EngineSettings) -> bool:
        return is_constrained(engine, self.reply_format)
