"""What submissions to all kinds of cluster share: words, code, files and templates."""

import json
import math
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from jobs.config.run_config import (
    SECTIONS,
    KubeRayCluster,
    RunConfig,
    SlurmCluster,
    deadline,
)
from jobs.graph.resolved_run import ResolvedRun
from pipeline.core.engine import EngineSettings
from pipeline.core.errors import IncompleteError, UsageError, redacted
from pipeline.core.registry import plugin_folders
from pipeline.core.settings import CONF, ClusterSettings
from pipeline.files.storage import as_path, is_remote

INCOMPLETE = IncompleteError.exit_code
_CODE = Path(__file__).parents[2]
_PACKAGES = ("pipeline", "stages", "jobs", "gistmill")
_FILES = ("script", "chat_template")  # keys of an engine that name files on this machine
# Keys of some kinds of cluster, passed on because the driver there reads conf/cluster/ray.yaml.
_OF_KIND = ("autoscales", "wait_minutes")
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


@dataclass(frozen=True)
class Submission:
    run: str
    job: str  # the Ray job's id, or the output of kubectl or sbatch
    status: str  # SENT, or Ray's status of a job that is over: SUCCEEDED, FAILED, STOPPED
    exit_code: int  # of the command


def print_to_stderr(line: str) -> None:
    sys.stderr.write(redacted(f"gistmill: {line}\n"))


def command(words: Sequence[str]) -> str:
    """The shell command; `exec` replaces the shell, and signals reach the run itself."""
    return f"exec python {shlex.join(words)}"


def words_on_cluster(
    run: ResolvedRun, words: Sequence[str], moved: Callable[[str, Path], str]
) -> list[str]:
    """The words of `gistmill run` there. `moved(key, path)` returns the path there of a file that
    a config key names. Raises UsageError if one is missing."""
    config, cluster = run.config, run.config.cluster
    replaced = {"run": run.name}
    replaced |= {key: moved(key, path) for key, path in _named_files(run).items()}
    if plugins := plugin_folders(config.plugins):
        folders = [moved(f"plugins-{n}", Path(folder)) for n, folder in enumerate(plugins)]
        replaced["plugins"] = ",".join(folders)
    replaced |= {"cluster": "ray", "cluster.address": "auto"}
    if cluster.deadline is not None:  # a restarted job must not take 07:00 for tomorrow's
        moment = deadline(cluster.deadline, datetime.now()).astimezone()
        replaced["cluster.deadline"] = moment.isoformat(timespec="seconds")
    # Other words are passed on, except those that only this kind of cluster knows.
    shared = {f"cluster.{key}" for key in ClusterSettings.model_fields.keys() - {"name"}}
    passed_on = [
        (key, word)
        for word, key in ((word, word.partition("=")[0]) for word in words)
        if key not in {*replaced, "cluster.deadline"}
        and (key in shared or not key.startswith("cluster."))
    ]
    limits = {f"cluster.{key}": getattr(cluster, key) for key in _OF_KIND}
    if isinstance(cluster, KubeRayCluster):
        # As many engines as the GPUs of all pods allow; without limits the first pod would get
        # every pod's documents.
        gpus = gpus_of_a_machine(config)
        for section, engine in _engines(config).items():
            if needed := engine.gpus_elsewhere:
                engines = max(1, int(gpus / needed + 1e-9))
                limits[f"{section}.max_workers"] = cluster.max_workers * engines
    return [
        *(word for _, word in passed_on),
        *(f"{key}={value}" for key, value in replaced.items()),
        *(f"{key}={str(value).lower()}" for key, value in limits.items()
          if key not in dict(passed_on)),
    ]  # fmt: skip


def words_in_place(run: ResolvedRun, words: Sequence[str]) -> list[str]:
    """For files with the same path there. Raises UsageError for a path that only exists here."""

    def moved(key: str, path: Path) -> str:
        if isinstance(run.config.cluster, KubeRayCluster) and not path.is_absolute():
            raise UsageError(f"{key}={path}: local files are not sent to Kubernetes; use the image")
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


def _named_files(run: ResolvedRun) -> dict[str, Path]:
    """The files and folders that the config names, by key, without those shipped with gistmill.
    Raises UsageError if one is missing."""
    files, folder = dict[str, Path](), Path(run.family.folder)
    if CONF not in folder.parents:
        files["family" if run.config.family else "corpus.family"] = folder
    for section, engine in _engines(run.config).items():
        for key in _FILES:
            if name := getattr(engine, key, None):
                files[f"{section}.{key}"] = Path(name)
    for key, path in files.items():
        if not path.exists():
            raise UsageError(f"{key}={path}: no such file")
    return files


def refuse_unshared(config: RunConfig) -> None:
    """Raise UsageError if the config names a folder by a path that only exists here: a run that
    has waited for its machines all night would say it in the morning."""
    cluster = config.cluster
    is_bare = isinstance(cluster, KubeRayCluster) and not (cluster.volume_claim or cluster.overlay)
    if is_bare and not is_remote(as_path(config.warehouse)):
        raise UsageError(
            f"warehouse={config.warehouse}: would be lost with its pod; name an object store, "
            "s3://..., or set cluster.volume_claim= (or cluster.overlay=) to mount shared storage"
        )
    folders = {"warehouse": config.warehouse, "embedder.model": config.embedder.model}
    folders |= {f"corpus.{key}": getattr(config.corpus, key, None) for key in ("path", "stories")}
    models = {f"{key}.model": getattr(e, "model", None) for key, e in _engines(config).items()}
    for key, value in {**folders, **models}.items():
        if not value or is_remote(as_path(value)) or Path(value).is_absolute():
            continue
        if key == "warehouse" or Path(value).exists():
            raise UsageError(
                f"{key}={value}: the cluster does not see this folder; name storage that it "
                "shares, s3://... or an absolute path of a mounted folder"
            )


def gpus_of_a_machine(config: RunConfig) -> int:
    """By the cluster's section, else as many as the largest engine needs."""
    cluster = config.cluster
    given = cluster.gpus if isinstance(cluster, KubeRayCluster) else None
    given = cluster.gpus_per_node if isinstance(cluster, SlurmCluster) else given
    if given is not None:
        return given
    raters = [rater for rater in config.raters if isinstance(rater, EngineSettings)]
    return max(math.ceil(engine.gpus_elsewhere) for engine in (*_engines(config).values(), *raters))


def _engines(config: RunConfig) -> dict[str, EngineSettings]:
    """By section; among raters only the last, which this command adds."""
    sections = {"engine": config.engine, "rater": config.raters[-1]}
    sections |= {key: getattr(config, key) for key in SECTIONS.values() if key not in sections}
    return {key: value for key, value in sections.items() if isinstance(value, EngineSettings)}


def _quoted(value: Any) -> str:
    """JSON, which is YAML if no sign in it is a line break or not printable there."""
    text = json.dumps(value, ensure_ascii=False)
    return _NOT_YAML.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def filled_template(file: str, **fields: Any) -> str:
    """A template beside this module, filled with `fields`; its filter `quoted` makes YAML."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["quoted"] = _quoted
    return environment.get_template(file).render(fields)


def hand_over(to: Sequence[str], text: str = "") -> str:
    """Give `text` to `kubectl` or `sbatch`; returns the output. Raises UsageError if the command is
    not installed or fails."""
    if shutil.which(to[0]) is None:
        hint = "--print shows what would be submitted" if text else "cluster.overlay needs it"
        raise UsageError(f"{to[0]}: not installed here; {hint}")
    done = subprocess.run(to, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(f"{to[0]}: {' '.join(done.stderr.split())}")
    return done.stdout.strip()
