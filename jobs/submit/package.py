"""Packages a run for a cluster: the command's words there, and the code and files that it needs."""

import math
import shlex
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from jobs.config.clusters import KubeRayCluster, SlurmCluster, absolute_deadline
from jobs.config.run_config import RunConfig
from jobs.graph.resolved_run import ResolvedRun
from pipeline.core.engine import EngineSettings
from pipeline.core.errors import UsageError
from pipeline.core.registry import plugin_folders
from pipeline.core.settings import CONF, ClusterSettings
from pipeline.files.storage import as_path, is_remote

_CODE = Path(__file__).parents[2]
_PACKAGES = ("pipeline", "stages", "jobs", "gistmill")
_FILES = ("script", "chat_template")  # keys of an engine that name files on this machine
# Keys of some kinds of cluster, passed on because the driver there reads conf/cluster/ray.yaml.
_OF_KIND = ("autoscales", "wait_minutes")


def words_on_cluster(
    run: ResolvedRun, words: Sequence[str], moved: Callable[[str, Path], str]
) -> list[str]:
    """The words of `gistmill run` on the cluster.

    `moved(key, path)` returns the path on the cluster of the file that a config key names.
    """
    config, deadline = run.config, run.config.cluster.deadline
    files = {key: moved(key, path) for key, path in named_files(run).items()}
    if plugins := plugin_folders(config.plugins):
        folders = [moved(f"plugins-{n}", Path(folder)) for n, folder in enumerate(plugins)]
        files["plugins"] = ",".join(folders)
    if deadline is not None:
        # A restarted job must not take 07:00 for tomorrow's.
        deadline = absolute_deadline(deadline, datetime.now())
    there = {"cluster": "ray", "cluster.address": "auto", "cluster.deadline": deadline}
    own = {"run": run.name, **files, **there}
    # Other words are passed on, except those that only this kind of cluster knows.
    shared = {f"cluster.{key}" for key in ClusterSettings.model_fields if key != "name"}
    kept, given = list[str](), set[str]()
    for word in words:
        key = word.partition("=")[0]
        if key not in own and (key in shared or not key.startswith("cluster.")):
            kept.append(word)
            given.add(key)
    limits = {f"cluster.{key}": getattr(config.cluster, key) for key in _OF_KIND}
    limits |= _most_workers(config)
    return [
        *kept,
        *(f"{key}={value}" for key, value in own.items() if value is not None),
        *(f"{key}={str(value).lower()}" for key, value in limits.items() if key not in given),
    ]


def _most_workers(config: RunConfig) -> dict[str, int]:
    """The limits of worker pools: as many engines as the GPUs of all pods allow; without limits the
    first pod would get every pod's documents."""
    cluster = config.cluster
    if not isinstance(cluster, KubeRayCluster):
        return {}
    gpus = gpus_of_a_machine(config)
    return {
        f"{section}.max_workers": cluster.max_workers * max(1, int(gpus / needed + 1e-9))
        for section, engine in _engines(config).items()
        if (needed := engine.gpus_elsewhere)
    }


def gpus_of_a_machine(config: RunConfig) -> int:
    """By the cluster's section, else as many as the largest engine needs."""
    cluster = config.cluster
    own = cluster.gpus if isinstance(cluster, KubeRayCluster) else None
    own = cluster.gpus_per_node if isinstance(cluster, SlurmCluster) else own
    if own is not None:
        return own
    raters = [rater for rater in config.raters if isinstance(rater, EngineSettings)]
    return max(math.ceil(engine.gpus_elsewhere) for engine in (*_engines(config).values(), *raters))


def _engines(config: RunConfig) -> dict[str, EngineSettings]:
    """By section; among raters only the last, which this command adds."""
    sections = {
        "engine": config.engine,
        "rater": config.raters[-1],
        "memory_engine": config.memory_engine,
        "extractor": config.extractor,
        "query_expander": config.query_expander,
    }
    return {key: value for key, value in sections.items() if isinstance(value, EngineSettings)}


def command(words: Sequence[str]) -> str:
    """The shell command; `exec` replaces the shell, and signals reach the run itself."""
    return f"exec python {shlex.join(words)}"


def named_files(run: ResolvedRun) -> dict[str, Path]:
    """The files and folders on this machine that the config names, by key, without those shipped
    with gistmill. Raises UsageError if one is missing."""
    found, folder = {}, Path(run.family.folder)
    if CONF not in folder.parents:
        found["family" if run.config.family else "corpus.family"] = folder
    for section, engine in _engines(run.config).items():
        for key in _FILES:
            if named := getattr(engine, key, None):
                found[f"{section}.{key}"] = Path(named)
    for key, path in found.items():
        if not path.exists():
            raise UsageError(f"{key}={path}: no such file")
    return found


def refuse_unshared(config: RunConfig) -> None:
    """Raise UsageError if the config names a folder by a path that only exists here."""
    cluster = config.cluster
    is_bare = isinstance(cluster, KubeRayCluster) and not (cluster.volume_claim or cluster.overlay)
    if is_bare and not is_remote(as_path(config.warehouse)):
        raise UsageError(
            f"warehouse={config.warehouse}: would be lost with its pod; name an object store, "
            "s3://..., or set cluster.volume_claim= (or cluster.overlay=) to mount shared storage"
        )
    named = {"warehouse": config.warehouse, "embedder.model": config.embedder.model}
    for key in ("path", "stories"):
        named[f"corpus.{key}"] = str(getattr(config.corpus, key, None) or "")
    for section, engine in _engines(config).items():
        named[f"{section}.model"] = getattr(engine, "model", None)
    for key, value in named.items():
        if not value or is_remote(as_path(value)) or Path(value).is_absolute():
            continue
        if key == "warehouse" or Path(value).exists():
            raise UsageError(
                f"{key}={value}: the cluster does not see this folder; name storage that it "
                "shares, s3://... or an absolute path of a mounted folder"
            )


def words_in_place(run: ResolvedRun, words: Sequence[str]) -> list[str]:
    """`words_on_cluster` for files that have the same path there: on shared storage or in the
    image. Raises UsageError if the config names one by a path that only exists here."""

    def moved(key: str, path: Path) -> str:
        if isinstance(run.config.cluster, KubeRayCluster) and not path.is_absolute():
            raise UsageError(
                f"{key}={path}: local files are not sent to Kubernetes; put it into the image, and "
                "name it by its absolute path"
            )
        return str(path.absolute())

    refuse_unshared(run.config)
    return words_on_cluster(run, words, moved)


def pack(folder: Path) -> Callable[[str, Path], str]:
    """Copy the code into `folder`; returns a `moved` that copies files there, too."""
    for name in _PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(_CODE / name, folder / name, ignore=ignored)

    def moved(key: str, path: Path) -> str:
        target = Path("files") / key / path.name  # keeps its name, which may be hashed
        (folder / target).parent.mkdir(parents=True)
        copy = shutil.copytree if path.is_dir() else shutil.copy
        copy(path, folder / target)
        return str(target)

    return moved
