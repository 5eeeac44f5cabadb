"""RunConfig: the validated, frozen configuration of a run; the kinds of cluster and deadlines.

All default values are in conf/. A deadline is a time of day, or an ISO 8601 date and time with or
without a zone.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    SerializeAsAny,
)

from pipeline.core.engine import EngineSettings
from pipeline.core.errors import UsageError
from pipeline.core.settings import ClusterSettings, Settings, sha
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


# Formats that Kubernetes accepts for CPUs, memory and names, and #SBATCH lines for values.
Quantity = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?([kMGTP]i?|m)?$")]
DnsLabel = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
OneWord = Annotated[str, Field(pattern=r"^[^\s'\"#$`\\]+$")]
_CLAIM_OR_FOLDER = r"^(/[^\n]*|[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)$"
Folder = Annotated[str, Field(pattern=r"^/[^\n]*$")]
OneLine = Annotated[str, Field(pattern=r"^[^\n]*$")]


def _with_variables(given: dict[str, Any]) -> dict[str, Any]:
    variables = given.get("env_vars", {})
    if not isinstance(variables, dict) or not all(isinstance(v, str) for v in variables.values()):
        raise UsageError(  # without the values: they may be secrets
            'cluster.runtime_env: env_vars are names with texts; write {env_vars: {NAME: "text"}}'
        )
    return given


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
    namespace: DnsLabel
    runtime_env: RuntimeEnv
    gpus: NonNegativeInt | None  # per worker pod; null: those of one engine
    max_workers: PositiveInt  # pods
    worker_cpus: PositiveInt
    worker_memory: Quantity
    worker_storage: Quantity | None  # ephemeral, that a node must have left; null: not asked for
    head_cpus: PositiveInt
    head_memory: Quantity
    head_storage: Quantity | None
    node_selector: dict[str, str]  # of the worker pods
    tolerations: list[dict[str, Any]]
    secret: DnsLabel | None  # its keys become environment variables
    service_account: DnsLabel | None
    volume_claim: DnsLabel | None  # mounted in every pod at volume_path
    volume_path: OneLine
    model_cache: Annotated[str, Field(pattern=_CLAIM_OR_FOLDER)] | None  # HF_HOME
    model_cache_path: Folder  # where every pod has it
    auth: Literal["token", "disabled"] | None  # of the Ray; null: left to Ray and the operator
    active_deadline_seconds: PositiveInt | None  # null: until after the deadline, if there is one
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
    # Slurm signals a job 1,092 minutes (65,535 seconds) before its end at most.
    grace_minutes: Annotated[float, Field(gt=0, le=1091)]
    sbatch: list[Annotated[str, Field(pattern=r"^--[^\n]+$")]]  # more #SBATCH options
    setup: list[OneLine]  # shell lines before anything else


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
    # auto: constrained where the engine can enforce it.
    reply_format: Literal["auto", "free", "constrained"]
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


def refuse_elsewhere(cluster: ClusterSettings) -> None:
    """Raise UsageError if the cluster can only be used through `gistmill submit`."""
    if cluster.name in ("kuberay", "slurm"):
        raise UsageError(f"cluster={cluster.name}: gistmill submit sends a run there")
    if cluster.address and "://" in cluster.address:
        raise UsageError(
            "cluster.address: gistmill submit sends a run to an address; on a machine of the "
            "cluster itself use cluster.address=auto"
        )


class PassedError(UsageError):
    """The deadline is in the past."""


def deadline(given: str, now: datetime, may_be_past: bool = False) -> datetime:
    """Parse `given`: HH:MM (the next such time after `now`) or ISO 8601, without a zone of this
    machine's clock. Raises UsageError if it is malformed, PassedError if it is in the past."""
    try:
        if len(given) <= len("07:00"):
            clock = datetime.strptime(given, "%H:%M")
            moment = now.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0)
            return moment if moment > now else moment + timedelta(days=1)
        moment = datetime.fromisoformat(given)
        is_past = moment.timestamp() <= now.timestamp()  # refuses years at the calendar's ends
    except (ValueError, OverflowError):
        raise UsageError(
            f"cluster.deadline={given}: not a time; write 07:00, 2026-12-01T07:00 or "
            "2026-12-01T07:00+02:00"
        ) from None
    if is_past and not may_be_past:
        raise PassedError(f"cluster.deadline={given}: is in the past; give a later one")
    return moment
