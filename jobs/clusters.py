"""The kinds of cluster a run may work on; their values are in conf/cluster/."""

from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from pipeline.errors import UsageError
from pipeline.settings import ClusterSettings

# What `kubectl` takes for CPUs and memory, and #SBATCH lines for names, sizes and times.
Quantity = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?([kMGTP]i?|m)?$")]
DnsLabel = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
OneWord = Annotated[str, Field(pattern=r"^[^\s'\"#$`\\]+$")]
OneLine = Annotated[str, Field(pattern=r"^[^\n]*$")]


class LocalCluster(ClusterSettings):
    """A Ray of our own on this machine."""

    name: Literal["local"]
    address: None


class RayCluster(ClusterSettings):
    """A Ray that is up."""

    name: Literal["ray"]
    address: str
    runtime_env: dict[str, Any]  # of the job, as Ray takes it; working_dir is ours


class KubeRayCluster(ClusterSettings):
    """A Ray that KubeRay starts for the run and ends with it."""

    name: Literal["kuberay"]
    address: None
    image: str
    namespace: DnsLabel
    runtime_env: dict[str, Any]
    gpus: NonNegativeInt | None  # of a worker pod; null: what one engine takes
    max_workers: PositiveInt  # pods
    worker_cpus: PositiveInt
    worker_memory: Quantity
    head_cpus: PositiveInt
    head_memory: Quantity
    node_selector: dict[str, str]  # of the worker pods
    tolerations: list[dict[str, Any]]
    secret: DnsLabel | None  # its keys become environment variables
    service_account: DnsLabel | None
    volume_claim: DnsLabel | None  # mounted in every pod at volume_path
    volume_path: OneLine
    backoff_limit: NonNegativeInt  # times that a failed job is started again; each resumes
    ttl_seconds: NonNegativeInt  # that the pods outlive the job


class SlurmCluster(ClusterSettings):
    """Nodes that Slurm lends, with a Ray that its script starts and ends."""

    name: Literal["slurm"]
    address: None
    nodes: PositiveInt
    gpus_per_node: NonNegativeInt | None  # null: what one engine takes
    cpus_per_task: PositiveInt  # of a node: one task each
    memory: OneWord | None
    time: OneWord
    partition: OneWord | None
    account: OneWord | None
    sbatch: list[Annotated[str, Field(pattern=r"^--[^\n]+$")]]  # more #SBATCH options
    setup: list[OneLine]  # shell lines before anything else


AnyCluster = Annotated[
    LocalCluster | RayCluster | KubeRayCluster | SlurmCluster, Field(discriminator="name")
]


def refuse_elsewhere(cluster: ClusterSettings) -> None:
    """Raise UsageError where only `gistmill submit` gets a run to the cluster."""
    if cluster.name in ("kuberay", "slurm"):
        raise UsageError(f"cluster={cluster.name}: gistmill submit sends a run there")
    if cluster.address and "://" in cluster.address:
        raise UsageError(
            "cluster.address: gistmill submit sends a run to an address; on a machine of the "
            "cluster itself say cluster.address=auto"
        )
