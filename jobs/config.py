"""The one frozen object a run is made from, and the steps that follow from it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
)

from jobs.clusters import AnyCluster
from pipeline.config import compose
from pipeline.embedder import EmbedderSettings
from pipeline.engine import EngineSettings
from pipeline.errors import UsageError
from pipeline.prompts import Family
from pipeline.settings import CONF, Settings, sha
from stages.corpora import AnyCorpus
from stages.engines import AnyEngine, ReplyFormat, identity
from stages.family import SAMPLES, FamilySettings, load_family
from stages.methods import Method, expand

GROUPS = ("corpus", "memory", "engine", "rater", "cluster", "experiment")


class Memory(Settings):
    """How a document becomes pages and gists. Null: the prompt family's value."""

    pagination: Literal["model", "uniform"]
    min_words: PositiveInt | None
    max_words: PositiveInt | None
    tail_words: NonNegativeInt | None
    preceding_words: NonNegativeInt | None
    words: PositiveInt | None
    gist_reply_tokens: PositiveInt | None


class NamedRater(Settings):
    """`reader`: the engine that answered rates too. `none`: nobody does."""

    name: Literal["reader", "none"]


class RunConfig(Settings):
    """A run, resolved. Everything has its value from conf/, nothing a default here."""

    name: str | None
    run: str | None = Field(pattern=r"^[a-z][a-z0-9_-]*$")
    warehouse: str
    corpus: AnyCorpus
    memory: Memory
    engine: AnyEngine
    raters: tuple[Annotated[AnyEngine | NamedRater, Field(discriminator="name")], ...]
    reply_format: ReplyFormat
    embedder: EmbedderSettings
    cluster: AnyCluster
    methods: str
    limit: PositiveInt | None
    sample: PositiveInt | None
    family: str | None
    repeats: PositiveInt
    questions_per_unit: PositiveInt
    max_problem_rate: NonNegativeFloat = Field(le=1)
    max_fallback_rate: NonNegativeFloat = Field(le=1)

    @property
    def family_folder(self) -> Path:
        """`family`, or the corpus's: a name in conf/prompts or the path of a folder."""
        name = self.family or self.corpus.family
        shipped = CONF / "prompts" / name
        return shipped if shipped.is_dir() else Path(name)

    def family_settings(self) -> FamilySettings:
        return load_family(self.family_folder)

    def expanded(self) -> list[Method]:
        return expand(self.methods, CONF / "method")

    def rater_engines(self) -> list[EngineSettings]:
        """The engine of each rater, `reader` being the reader's own; each once."""
        engines: dict[str, EngineSettings] = {}
        for rater in self.raters:
            if isinstance(rater, EngineSettings):
                engines[sha(rater.identity())] = rater
            elif rater.name == "reader":
                engines[sha(self.engine.identity())] = self.engine
        return list(engines.values())

    def identity(self, engine: EngineSettings) -> dict[str, Any]:
        """What names an engine in a step of this run."""
        return identity(engine, self.family_folder, self.reply_format)

    def hashed(self) -> dict[str, Any]:
        """What shapes every row of the run, but for what a named run may grow by."""
        prompts = Family(self.family_folder)
        settings = self.family_settings().model_dump(exclude={"examples", "forms"})
        names = sorted(file.stem for file in (CONF / "prompts" / "generic").glob("[a-z]*.jinja"))
        return {
            "corpus": dict(self.corpus.hashed()),
            "memory": self.memory.model_dump(),
            "engine": self.identity(self.engine),
            "seed": self.engine.seed,  # random_pages draws with it whatever the temperature
            "family": {"name": prompts.name, "settings": sha(settings, 8)},
            "prompts": prompts.shas(tuple(names)),
            "repeats": self.repeats,
            **self.embedder.hashed(),
        }

    def run_name(self) -> str:
        """`run`, or experiment or corpus and 8 hex of what the run is made from."""
        chosen = [self.corpus.selection(), self.limit, self.sample]
        methods = [method.name for method in self.expanded()]
        raters = [self.identity(engine) for engine in self.rater_engines()]
        content = [self.hashed(), chosen, methods, raters]
        # Only what may stand in a run's name: the corpus `My Books (2024)` makes my-books-2024-...
        words = re.findall(r"[a-z0-9_]+", (self.name or self.corpus.name).lower())
        made = "-".join([*words, sha(content, 8)])
        return self.run or (made if made[0].isalpha() else f"run-{made}")


def read_config(overrides: Sequence[str]) -> RunConfig:
    """The config of a command line. Raises UsageError, in one line, for whatever is wrong."""
    composed = compose(overrides)
    composed["raters"] = [composed.pop("rater")]
    composed.pop("experiment", None)
    return validated(composed)


def validated(values: Mapping[str, Any]) -> RunConfig:
    """The config of plain values, checked as far as can be without reading the corpus."""
    try:
        config = RunConfig.model_validate({**values, "raters": tuple(values["raters"])})
    except ValidationError as error:
        raise UsageError(_first(error)) from None
    _check(config)
    return config


_MODEL_ONLY = ("min_words", "tail_words", "preceding_words")  # of pagination by a model


def _check(config: RunConfig) -> None:
    if config.limit and config.sample:
        raise UsageError("limit and sample are both set; set one of them to null")
    useless = ("words",) if config.memory.pagination == "model" else _MODEL_ONLY
    for key in useless:
        if getattr(config.memory, key) is not None:
            other = {"model": "uniform", "uniform": "model"}[config.memory.pagination]
            raise UsageError(f"memory.{key} does nothing here; add memory={other} or remove it")
    if config.repeats > 1 and config.engine.is_deterministic:
        name = config.engine.name
        raise UsageError(f"repeats={config.repeats}: engine={name} is deterministic; set repeats=1")
    if config.reply_format == "constrained" and not _takes_constraints(config):
        raise UsageError(
            f"reply_format=constrained: engine={config.engine.name} replies in its own form; "
            "use vllm or openai, or reply_format=free"
        )
    if not config.family_folder.is_dir():
        known = ", ".join(sorted(f.name for f in (CONF / "prompts").iterdir()))
        key, family = "family", config.family
        if family is None:
            key, family = "corpus.family", config.corpus.family
        raise UsageError(f"{key}={family}: no such family or folder; there are {known}")
    prompts = Family(config.family_folder)
    for fields in SAMPLES:  # a template that cannot be rendered is found now, not in every unit
        prompts.render(fields)


def _takes_constraints(config: RunConfig) -> bool:
    raters = [rater for rater in config.raters if isinstance(rater, EngineSettings)]
    return any(engine.takes_constraints for engine in (config.engine, *raters))


def _first(error: ValidationError) -> str:
    """The first thing wrong, named as it is written on the command line."""
    first = error.errors()[0]
    parts = [str(part) for part in first["loc"]]
    if parts[0] == "raters":  # raters.0.extractive.seed is rater.seed to who wrote it
        parts = ["rater", *parts[3:]]
    elif parts[0] in ("engine", "corpus", "cluster"):  # engine.extractive.seed likewise
        parts = [parts[0], *parts[2:]]
    if first["type"] == "union_tag_invalid":  # the input is the whole section
        told = {key: str(value).replace("'", "") for key, value in first["ctx"].items()}
        key = ".".join([*parts, told["discriminator"]])
        return f"{key}={told['tag']}: there is none; it is one of {told['expected_tags']}"
    return f"{'.'.join(parts)}={first['input']}: {first['msg']}"
