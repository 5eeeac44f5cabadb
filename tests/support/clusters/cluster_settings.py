"""Clusters as conf/cluster/ has them."""

from jobs.graph.read_config import read_config
from pipeline.core.settings import ClusterSettings


def cluster(*words: str) -> ClusterSettings:
    """The `cluster` section of a config."""
    settings: ClusterSettings = read_config(list(words)).cluster
    return settings


LOCAL = cluster()
