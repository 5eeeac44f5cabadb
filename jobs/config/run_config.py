"""RunConfig: the validated, frozen configuration of a run."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    SerializeAsAny,
)

from jobs.config.clusters import AnyCluster
from pipeline.asking.readers import AnyEngine, ReplyFormat, is_constrained
from pipeline.core.engine import EngineSettings
from pipeline.core.errors import UsageError
from pipeline.core.plugins import load_plugins, plugin_folders
from pipeline.core.settings import CONF, Settings, sha
from pipeline.engines.embedder import EmbedderSettings
from pipeline.families.family import Family, load_family
from pipeline.work.methods import Method, expand_methods, method_of
from pipeline.work.stage import Role
from stages.builtin import load_builtin
from stages.corpora import Corpus

load_builtin()
_MOST_RUN_NAME = 200
_GIVEN = CONF / "predictions.yaml"  # a method's layout
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
        """The settings that are not None."""
        own = self.model_dump(exclude={"name", "stages"})
        return {key: value for key, value in own.items() if value is not None}


class SameAsReader(Settings):
    """`reader`: the reader's engine takes this role, too. `none` (raters only): no engine does."""

    name: Literal["reader", "none"]


RoleEngine = Annotated[AnyEngine | SameAsReader, Field(discriminator="name")]


class RunConfig(Settings):
    """The resolved configuration of a run. All default values are in conf/, none here
    but of what runs of earlier versions lack."""

    name: str | None
    # A file's name has 255 characters at most, of which temporary names take 50.
    run: str | None = Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=_MOST_RUN_NAME)
    warehouse: str
    plugins: str | None
    corpus: SerializeAsAny[Corpus]
    memory: Memory
    engine: AnyEngine
    memory_engine: RoleEngine
    extractor: RoleEngine
    raters: tuple[RoleEngine, ...]
    reply_format: ReplyFormat
    reply_tokens: dict[str, PositiveInt]  # by prompt; what is not here is the family's
    embedder: EmbedderSettings
    cluster: AnyCluster
    methods: str  # empty only where there are predictions
    # Files with the answers of other systems, by method name. Runs of earlier versions have none.
    predictions: dict[Annotated[str, Field(pattern=METHOD_NAME)], str] = Field(default_factory=dict)
    limit: PositiveInt | None
    sample: PositiveInt | None
    family: str | None
    repeats: PositiveInt = Field(le=1000)  # each is a step of its own
    # The part made again in each. Runs of earlier versions, which had one repeat, lack this key.
    repeat_from: Literal["memory", "questions"] = "questions"
    questions_per_unit: PositiveInt
    max_problem_rate: NonNegativeFloat = Field(le=1)
    max_fallback_rate: NonNegativeFloat = Field(le=1)

    @property
    def conf_folders(self) -> list[Path]:
        """The `conf` folders of the plugins, then our own. Imports the plugins' modules."""
        return [*load_plugins(plugin_folders(self.plugins)), CONF]

    @property
    def family_folder(self) -> Path:
        """The folder of `family`, or else of the corpus's family: a name in some conf/prompts, or a
        path. Raises UsageError if two conf folders have a family of that name."""
        name = self.family or self.corpus.family
        named = [conf / "prompts" / name for conf in self.conf_folders]
        found = [folder for folder in named if (folder / "family.yaml").is_file()]
        if len(found) > 1:
            raise UsageError(
                f"{found[0]}: a family {name} exists already, {found[1]}; give it another name"
            )
        return found[0] if found else Path(name)

    def family_resolved(self) -> Family:
        """The prompt family, completed from `generic`, with the overrides of `reply_tokens`."""
        roots = [conf / "prompts" for conf in self.conf_folders]
        return load_family(self.family_folder, roots, self.reply_tokens)

    def expanded(self) -> list[Method]:
        """The methods that `methods` names, ranges and alternatives expanded, and those of
        `predictions`."""
        folders = [conf / "method" for conf in reversed(self.conf_folders)]
        own = expand_methods(self.methods, folders) if self.methods else []
        given = (method_of(_GIVEN, n, {"file": f}) for n, f in self.predictions.items())
        return [*own, *given]

    def engines(self, role: Role) -> list[EngineSettings]:
        """The engines of a role without duplicates: all raters for `judge`, else one."""
        chosen: tuple[EngineSettings | SameAsReader, ...] = {
            "reader": (self.engine,),
            "memory": (self.memory_engine,),
            "extractor": (self.extractor,),
            "judge": self.raters,
        }[role]
        found: dict[str, EngineSettings] = {}
        for engine in chosen:
            if isinstance(engine, EngineSettings):
                found[sha(engine.identity())] = engine
            elif engine.name == "reader":
                found[sha(self.engine.identity())] = self.engine
        return list(found.values())

    def section(self, role: Role) -> str:
        """The config section that sets a role's engine."""
        return {"reader": "engine", "memory": "memory_engine", "judge": "rater"}.get(role, role)

    def is_constrained(self, engine: EngineSettings) -> bool:
        """True if the engine's replies are constrained."""
        return is_constrained(engine, self.reply_format)

    def hashed(self) -> dict[str, Any]:
        """The settings that change rows and that a named run must keep: all but methods, raters,
        repeats and the selection of documents."""
        roles: tuple[Role, ...] = ("memory", "extractor")
        others = {role: [e.identity() for e in self.engines(role)] for role in roles}
        return {
            "corpus": dict(self.corpus.hashed()),
            "memory": self.memory.model_dump(mode="json", exclude={"name"}),
            "engine": {**self.engine.identity(), "constrained": self.is_constrained(self.engine)},
            "seed": self.engine.seed,  # random draws use it whatever the temperature
            "roles": {k: v for k, v in others.items() if v != [self.engine.identity()]},
            "family": self.family_resolved().hashed(),
            **self.embedder.hashed(),
        }

    def run_name(self) -> str:
        """`run`, else the experiment's or corpus's name and 8 hex of a hash of the settings."""
        if self.run:
            return self.run
        chosen = [self.corpus.selection(), self.limit, self.sample]
        methods = [method.name for method in self.expanded()]
        raters = [rater.identity() for rater in self.engines("judge")]
        repeats = [self.repeats, self.repeat_from] if self.repeats > 1 else []
        content = [self.hashed(), chosen, methods, raters, *repeats]
        # Only characters legal in a run's name: corpus `My Books (2024)` gives my-books-2024-...
        words = re.findall(r"[a-z0-9_]+", (self.name or self.corpus.name).lower())
        made = "-".join(["-".join(words)[: _MOST_RUN_NAME - 20].rstrip("-"), sha(content, 8)])
        made = made.lstrip("-")
        return made if made[0].isalpha() else f"run-{made}"
