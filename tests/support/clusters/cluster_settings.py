"""Clusters as conf/cluster/ has them."""

from jobs.graph.resolved_run import read_run
from pipeline.core.settings import ClusterSettings


def cluster(*words: str) -> ClusterSettings:
    """The `cluster` section of a config."""
    settings: ClusterSettings = read_run(list(words)).config.cluster
    return settings


LOCAL = cluster()
