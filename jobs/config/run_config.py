"""The configuration of a run: its validated, frozen form, the reader of command lines and stored
configs, and the check for settings that cannot work together.

All default values are in conf/. A mistake is one line: the key, its value and what is wrong.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    SerializeAsAny,
    ValidationError,
)

from pipeline.core.compose import compose
from pipeline.core.engine import ENGINES, EngineSettings
from pipeline.core.errors import UsageError
from pipeline.core.registry import conf_folders
from pipeline.core.settings import CONF, ClusterSettings, Settings, sha
from pipeline.engines.embedder import EmbedderSettings
from pipeline.files.storage import as_path
from pipeline.work.methods import stage_specs
from pipeline.work.stage import ROLES, Role
from stages.builtin import load_builtin
from stages.corpora import Corpus, corpus_of

load_builtin()
MOST_RUN_NAME = 200
SECTIONS: Mapping[Role, str] = {
    "reader": "engine", "memory": "memory_engine", "extractor": "extractor",
    "query_expander": "query_expander", "judge": "rater",
}  # fmt: skip
"""The config section that sets a role's engine."""
METHOD_NAME = r"^\w[\w .+:@/-]{0,99}$"  # of another system, as tables and SQL show it

OneWord = Annotated[str, Field(pattern=r"^[^\s'\"#$`\\]+$")]  # that #SBATCH lines take as it is


def _with_variables(runtime_env: dict[str, Any]) -> dict[str, Any]:
    variables = runtime_env.get("env_vars", {})
    if not isinstance(variables, dict) or not all(isinstance(v, str) for v in variables.values()):
        raise UsageError(  # without the values: they may be secrets
            'cluster.runtime_env: env_vars are names with texts; write {env_vars: {NAME: "text"}}'
        )
    return runtime_env


RuntimeEnv = Annotated[dict[str, Any], AfterValidator(_with_variables)]


class LocalCluster(ClusterSettings):
    """This machine: `inline` is one worker in the process of the command, `local` a Ray that the
    run starts."""

    name: Literal["inline", "local"]
    address: None


class RayCluster(ClusterSettings):
    """A running Ray cluster."""

    name: Literal["ray"]
    address: str
    runtime_env: RuntimeEnv  # Ray's, of the job; working_dir is set by gistmill


class KubeRayCluster(ClusterSettings):
    """A Ray cluster that KubeRay starts for the run and deletes after it."""

    name: Literal["kuberay"]
    address: None
    image: str
    namespace: str
    runtime_env: RuntimeEnv
    gpus: NonNegativeInt | None  # per worker pod; null: those of one engine
    max_workers: PositiveInt  # pods
    worker_cpus: PositiveInt
    worker_memory: str
    worker_storage: str | None  # ephemeral, that a node must have left; null: not asked for
    head_cpus: PositiveInt
    head_memory: str
    head_storage: str | None
    node_selector: dict[str, str]  # of the worker pods
    tolerations: list[dict[str, Any]]
    secret: str | None  # its keys become environment variables
    service_account: str | None
    volume_claim: str | None  # mounted in every pod at volume_path
    volume_path: str
    model_cache: str | None  # HF_HOME: a claim, or a folder of the nodes
    model_cache_path: str  # where every pod has it
    auth: Literal["token", "disabled"] | None  # of the Ray; null: left to Ray and the operator
    active_deadline_seconds: PositiveInt | None
    overlay: str | None  # a YAML file, by which kustomize patches the manifest
    backoff_limit: NonNegativeInt  # restarts of a failed job; each resumes
    ttl_seconds: NonNegativeInt  # after the job, until its pods are deleted


class SlurmCluster(ClusterSettings):
    """Nodes that Slurm allocates, with a Ray that the batch script starts and stops."""

    name: Literal["slurm"]
    address: None
    nodes: PositiveInt
    gpus_per_node: NonNegativeInt | None  # null: those of one engine
    cpus_per_task: PositiveInt  # one task per node
    memory: OneWord | None
    time: OneWord
    partition: OneWord | None
    account: OneWord | None
    exclusive: bool  # no other job on the nodes
    sbatch: list[Annotated[str, Field(pattern=r"^--[^\n]+$")]]  # more #SBATCH options
    setup: list[str]  # shell lines before anything else


AnyCluster = Annotated[
    LocalCluster | RayCluster | KubeRayCluster | SlurmCluster,
    Field(discriminator="name"),
]


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
        return self.model_dump(exclude={"name", "stages"}, exclude_none=True)


class SameAsReader(Settings):
    """`reader`: the reader's engine takes this role, too. `none` (raters only): no engine does."""

    name: Literal["reader", "none"]


RoleEngine = SerializeAsAny[EngineSettings | SameAsReader]


class RunConfig(Settings):
    """The resolved configuration of a run. Only fields that runs of earlier versions lack have a
    default here; all other default values are in conf/."""

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
    query_expander: RoleEngine = SameAsReader(name="reader")
    raters: tuple[RoleEngine, ...]
    # auto: constrained where the engine can enforce it.
    reply_format: Literal["auto", "free", "constrained"]
    shuffle_options: bool = False
    reply_tokens: dict[str, PositiveInt]  # by prompt; what is not here is the family's
    embedder: EmbedderSettings
    cluster: AnyCluster
    methods: str  # empty only where there are predictions
    # Files with the answers of other systems, by method name.
    predictions: dict[Annotated[str, Field(pattern=METHOD_NAME)], str] = Field(default_factory=dict)
    audit_of: str | None = None  # the run whose raters this run gives answers of known worth
    limit: PositiveInt | None
    sample: PositiveInt | None
    family: str | None
    repeats: PositiveInt = Field(le=1000)  # each is a step of its own
    # What each repeat makes again, and all that follows from it.
    repeat_from: Literal["memory", "questions"] = "questions"
    questions_per_unit: PositiveInt
    max_problem_rate: NonNegativeFloat = Field(le=1)
    max_fallback_rate: NonNegativeFloat = Field(le=1)

    def engines(self, role: Role) -> list[EngineSettings]:
        """The engines of a role without duplicates: all raters for `judge`, else one."""
        chosen = self.raters if role == "judge" else (getattr(self, SECTIONS[role]),)
        engines = [
            engine if isinstance(engine, EngineSettings) else self.engine
            for engine in chosen
            if engine.name != "none"
        ]
        return list({sha(engine.identity()): engine for engine in engines}.values())

    def is_constrained(self, engine: EngineSettings) -> bool:
        """True if the engine is given the legal replies (structured output)."""
        return self.reply_format != "free" and engine.takes_constraints


def read_config(overrides: Sequence[str]) -> RunConfig:
    """The config of a command line. Raises UsageError for words that make none."""
    return parsed_config(composed_values(overrides))


def composed_values(overrides: Sequence[str]) -> dict[str, Any]:
    """The plain values of a config: those of conf/ and of plugins, with the overrides applied."""
    plugins = [word.partition("=")[2] for word in overrides if word.startswith("plugins=")]
    values = compose(overrides, conf_folders(plugins[-1] if plugins else None)[:-1])
    values["raters"] = [values.pop("rater")]
    values.pop("experiment", None)
    return values


def parsed_config(values: Mapping[str, Any]) -> RunConfig:
    """The config of plain values. Raises UsageError for a value that is not of its kind."""
    sections = [key for key in ("corpus", *SECTIONS.values()) if key in values]
    parsed = {key: _section(key, values[key]) for key in sections}
    raters = tuple(_section("rater", rater) for rater in values["raters"])
    try:
        return RunConfig.model_validate({**values, **parsed, "raters": raters})
    except ValidationError as error:
        raise _refusal(error) from None


def _section(key: str, section: Any) -> Corpus | EngineSettings | SameAsReader:
    if not isinstance(section, Mapping):
        raise UsageError(f"{key}={str(section)[:80]}: write a section, or {key}=NAME")
    try:
        if key == "corpus":
            return corpus_of(section)
        kinds: dict[str, type[EngineSettings | SameAsReader]] = {n: ENGINES[n] for n in ENGINES}
        if key != "engine":
            kinds |= {"reader": SameAsReader, "none": SameAsReader}
        name = str(section.get("name"))
        if name in kinds:
            return kinds[name].model_validate(dict(section))
    except ValidationError as error:
        raise _refusal(error, key) from None
    names = ", ".join(sorted(kinds))
    raise UsageError(f"{key}.name={name[:80]}: no such choice; it is one of {names}")


def _refusal(error: ValidationError, *section: str) -> UsageError:
    """The first error of validation, with the key as it is written on the command line."""
    first = error.errors()[0]
    parts = [*section, *(str(part) for part in first["loc"])]
    if parts[0] == "cluster":  # cluster.local.deadline is written cluster.deadline
        parts = [parts[0], *parts[2:]]
    # Of a whole section only the key is shown: its values may be secrets.
    value = "" if isinstance(first["input"], Mapping) else f"={str(first['input'])[:80]}"
    return UsageError(f"{'.'.join(parts)}{value}: {first['msg']}")


def check_config(config: RunConfig) -> None:
    """Raise UsageError for settings that contradict each other or name nothing usable."""
    if config.cluster.deadline is not None:
        deadline(config.cluster.deadline, datetime.now(), may_be_past=True)
    warehouse, memory = config.warehouse, config.memory
    if warehouse.startswith(("http://", "https://")) or not warehouse.strip():
        raise UsageError(
            f"warehouse={warehouse}: cannot be written; name a folder, or s3://, gs://"
        )
    as_path(warehouse)
    if config.limit and config.sample:
        raise UsageError("limit and sample are both set; set one of them to null")
    specs = stage_specs(f"memory={memory.name}", memory.stages)
    settings = {name for spec in specs for name in spec.stage.model_fields}
    for key in memory.overrides():
        if key not in settings:
            files = (CONF / "memory").glob("*.yaml")
            names = " or ".join(sorted(f.stem for f in files if f.stem != memory.name))
            raise UsageError(f"memory.{key} does nothing here; add memory={names} or remove it")
    engines = [engine for role in ROLES for engine in config.engines(role)]
    if config.reply_format == "constrained" and not any(e.takes_constraints for e in engines):
        raise UsageError(
            f"reply_format=constrained: engine={config.engine.name} cannot constrain replies; "
            "use vllm or openai, or reply_format=free"
        )


def refuse_elsewhere(cluster: ClusterSettings) -> None:
    """Raise UsageError if the cluster can only be used through `gistmill submit`."""
    if cluster.name in ("kuberay", "slurm"):
        raise UsageError(f"cluster={cluster.name}: gistmill submit sends a run there")
    if cluster.address and "://" in cluster.address:
        raise UsageError(
            "cluster.address: gistmill submit sends a run to an address; on a machine of the "
            "cluster itself use cluster.address=auto"
        )


def deadline(text: str, now: datetime, may_be_past: bool = False) -> datetime:
    """Parse HH:MM, the next such time after `now`, or an ISO 8601 date and time; without a zone it
    is in the time of this machine. Raises UsageError if it is malformed or in the past."""
    try:
        if len(text) <= len("07:00"):
            clock = datetime.strptime(text, "%H:%M")
            moment = now.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0)
            return moment if moment > now else moment + timedelta(days=1)
        moment = datetime.fromisoformat(text)
        is_past = moment.timestamp() <= now.timestamp()  # refuses years at the calendar's ends
    except (ValueError, OverflowError):
        raise UsageError(
            f"cluster.deadline={text}: not a time; write 07:00, 2026-12-01T07:00 or "
            "2026-12-01T07:00+02:00"
        ) from None
    if is_past and not may_be_past:
        raise UsageError(f"cluster.deadline={text}: is in the past; give a later one")
    return moment
