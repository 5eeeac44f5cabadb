"""The kinds of cluster a run may work on; their values stand in conf/cluster/."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.settings import ClusterSettings


class LocalCluster(ClusterSettings):
    """A Ray of our own on this machine."""

    name: Literal["local"]
    address: None


class RayCluster(ClusterSettings):
    """A Ray that is up."""

    name: Literal["ray"]
    address: str


AnyCluster = Annotated[LocalCluster | RayCluster, Field(discriminator="name")]
