"""RunConfig: the validated, frozen configuration of a run."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from fsspec import available_protocols
from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    SerializeAsAny,
    ValidationError,
)

from jobs.clusters import AnyCluster
from jobs.deadline import parsed
from pipeline.config import compose
from pipeline.embedder import EmbedderSettings
from pipeline.engine import EngineSettings
from pipeline.engines import AnyEngine, ReplyFormat, is_constrained
from pipeline.errors import UsageError
from pipeline.family import Family, load_family
from pipeline.family_check import wrong_settings
from pipeline.methods import Method, expand, stage_specs
from pipeline.place import place
from pipeline.plugins import load_plugins
from pipeline.prompts import PROMPTS
from pipeline.settings import CONF, Settings, refuse_nonsense, sha
from pipeline.stage import ROLES, Role
from stages.builtin import load_builtin
from stages.corpora import Corpus, corpus_of

load_builtin()
_MOST_RUN_NAME = 200
GROUPS = ("corpus", "memory", "engine", "rater", "cluster", "experiment")


class Memory(Settings):
    """The `memory` section: the stages of the memory that methods share, as in a method's YAML, and
    overrides of their settings. Null: the prompt family's value."""

    name: str
    stages: dict[str, dict[str, Any] | None]
    min_words: PositiveInt | None
    max_words: PositiveInt | None
    tail_words: NonNegativeInt | None
    preceding_words: NonNegativeInt | None
    words: PositiveInt | None

    def overrides(self) -> dict[str, Any]:
        """The settings that are not null."""
        own = self.model_dump(exclude={"name", "stages"})
        return {key: value for key, value in own.items() if value is not None}


class SameAsReader(Settings):
    """`reader`: the reader's engine takes this role, too. `none` (raters only): no engine does."""

    name: Literal["reader", "none"]


RoleEngine = Annotated[AnyEngine | SameAsReader, Field(discriminator="name")]


class RunConfig(Settings):
    """The resolved configuration of a run. All default values are in conf/, none here."""

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
    methods: str
    limit: PositiveInt | None
    sample: PositiveInt | None
    family: str | None
    repeats: PositiveInt = Field(le=1000)  # each is a step of its own
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
        path. Raises UsageError where two conf folders have a family of that name."""
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
        """The methods that `methods` names, ranges and alternatives expanded."""
        return expand(self.methods, [conf / "method" for conf in reversed(self.conf_folders)])

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
        """Whether the engine's replies are constrained."""
        return is_constrained(engine, self.reply_format)

    def hashed(self) -> dict[str, Any]:
        """The settings that change rows and that a named run must keep: all but methods, raters
        and the selection of documents."""
        roles: tuple[Role, ...] = ("memory", "extractor")
        others = {role: [e.identity() for e in self.engines(role)] for role in roles}
        return {
            "corpus": dict(self.corpus.hashed()),
            "memory": self.memory.model_dump(mode="json", exclude={"name"}),
            "engine": {**self.engine.identity(), "constrained": self.is_constrained(self.engine)},
            "seed": self.engine.seed,  # random draws use it whatever the temperature
            "roles": {k: v for k, v in others.items() if v != [self.engine.identity()]},
            "family": self.family_resolved().hashed(),
            "repeats": self.repeats,
            **self.embedder.hashed(),
        }

    def run_name(self) -> str:
        """`run`, else the experiment's or corpus's name and 8 hex of a hash of the settings."""
        if self.run:
            return self.run
        chosen = [self.corpus.selection(), self.limit, self.sample]
        methods = [method.name for method in self.expanded()]
        raters = [rater.identity() for rater in self.engines("judge")]
        content = [self.hashed(), chosen, methods, raters]
        # Only characters legal in a run's name: corpus `My Books (2024)` gives my-books-2024-...
        words = re.findall(r"[a-z0-9_]+", (self.name or self.corpus.name).lower())
        made = "-".join(["-".join(words)[: _MOST_RUN_NAME - 20].rstrip("-"), sha(content, 8)])
        made = made.lstrip("-")
        return made if made[0].isalpha() else f"run-{made}"


def plugin_folders(plugins: str | None) -> list[str]:
    """The folders that `plugins=A,B` names."""
    return [folder.strip() for folder in (plugins or "").split(",") if folder.strip()]


def read_config(overrides: Sequence[str]) -> RunConfig:
    """The config of a command line. Raises UsageError, a single line, for every mistake."""
    named = [word.partition("=")[2] for word in overrides if word.startswith("plugins=")]
    confs = load_plugins(plugin_folders(named[-1] if named else None))
    composed = compose(overrides, confs)
    composed["raters"] = [composed.pop("rater")]
    composed.pop("experiment", None)
    return validated(composed)


def validated(values: Mapping[str, Any]) -> RunConfig:
    """The config of plain values, with all checks that need not read the corpus.

    Raises UsageError.
    """
    refuse_nonsense({key: value for key, value in values.items() if key != "corpus"})
    section = values["corpus"]
    if not isinstance(section, Corpus | Mapping):
        raise UsageError(f"corpus={str(section)[:80]}: write a section, or corpus=NAME")
    if isinstance(section, Mapping):
        refuse_nonsense(section, "corpus")
    try:
        corpus = section if isinstance(section, Corpus) else corpus_of(section)
    except ValidationError as error:
        raise UsageError(_first(error, "corpus")) from None
    try:
        config = RunConfig.model_validate(
            {**values, "corpus": corpus, "raters": tuple(values["raters"])}
        )
    except ValidationError as error:
        raise UsageError(_first(error)) from None
    try:
        _check(config)
    except (OSError, ValueError) as error:  # of a name that no file can have
        raise UsageError(f"a path in the settings cannot be read: {error}; set another") from None
    return config


def _check(config: RunConfig) -> None:
    if config.cluster.deadline is not None:
        parsed(config.cluster.deadline, datetime.now())
    _check_warehouse(config.warehouse)
    if config.limit and config.sample:
        raise UsageError("limit and sample are both set; set one of them to null")
    _refuse_useless(config)
    if config.repeats > 1 and config.engine.is_deterministic:
        name = config.engine.name
        raise UsageError(f"repeats={config.repeats}: engine={name} is deterministic; set repeats=1")
    if config.reply_format == "constrained" and not _takes_constraints(config):
        raise UsageError(
            f"reply_format=constrained: engine={config.engine.name} cannot constrain replies; "
            "use vllm or openai, or reply_format=free"
        )
    if not config.family_folder.is_dir():
        known = ", ".join(sorted(f.name for f in (CONF / "prompts").iterdir()))
        key, family = "family", config.family
        if family is None:
            key, family = "corpus.family", config.corpus.family
        raise UsageError(f"{key}={family}: no such family or folder; there are {known}")
    _check_family(config)


def _check_warehouse(warehouse: str) -> None:
    """Raise UsageError for an address that nothing can be written to."""
    protocol = warehouse.partition("://")[0] if "://" in warehouse else ""
    if protocol in ("http", "https") or not warehouse.strip():
        raise UsageError(
            f"warehouse={warehouse}: cannot be written; name a folder, or s3://, gs://"
        )
    if protocol and protocol not in available_protocols():
        raise UsageError(
            f"warehouse={warehouse}: no filesystem {protocol}; name a folder, or s3://"
        )
    place(warehouse)


def _refuse_useless(config: RunConfig) -> None:
    """Raise UsageError for settings of the memory that none of its stages has."""
    memory = config.memory
    fields = {name for spec in stage_specs(f"memory={memory.name}", memory.stages)
              for name in spec.stage.model_fields}  # fmt: skip
    for key in memory.overrides():
        if key not in fields:
            files = (CONF / "memory").glob("*.yaml")
            other = " or ".join(sorted(f.stem for f in files if f.stem != memory.name))
            raise UsageError(f"memory.{key} does nothing here; add memory={other} or remove it")


def _check_family(config: RunConfig) -> None:
    """Raise UsageError for a setting that no stage has, a budget of an unknown prompt, or a
    template that cannot be rendered: before the run, rather than in every unit."""
    family = config.family_resolved()
    for line in wrong_settings(family):
        raise UsageError(line)
    for name in config.reply_tokens:
        if name not in PROMPTS:
            known = ", ".join(sorted(PROMPTS))
            raise UsageError(f"reply_tokens.{name}: no such prompt; there are {known}")
    judging = stage_specs(f"{family.folder}: judging", family.judging)
    memory = stage_specs(f"memory={config.memory.name}", config.memory.stages)
    methods = [spec for method in config.expanded() for spec in method.stages]
    stages = [spec.stage for spec in (*memory, *methods, *judging)]
    for prompt in dict.fromkeys(p for s in stages for p in (*s.prompts, *s.leaves_room_for)):
        for sample in prompt.samples():
            family.render(sample)


def _takes_constraints(config: RunConfig) -> bool:
    return any(engine.takes_constraints for role in ROLES for engine in config.engines(role))


_UNIONS = ("engine", "cluster", "memory_engine", "extractor")  # sections chosen by their `name`


def _first(error: ValidationError, *section: str) -> str:
    """The first error, with the key as it is written on the command line."""
    first = error.errors()[0]
    parts = [*section, *(str(part) for part in first["loc"])]
    if parts[0] == "raters":  # raters.0.extractive.seed is written rater.seed
        parts = ["rater", *parts[3:]]
    elif parts[0] in _UNIONS:  # engine.extractive.seed is written engine.seed
        parts = [parts[0], *parts[2:]]
    if first["type"] == "union_tag_invalid":  # `input` is the whole section then
        tags = {key: str(value).replace("'", "") for key, value in first["ctx"].items()}
        key = ".".join([*parts, tags["discriminator"]])
        return f"{key}={tags['tag'][:80]}: no such choice; it is one of {tags['expected_tags']}"
    return f"{'.'.join(parts)}={str(first['input'])[:80]}: {first['msg']}"
