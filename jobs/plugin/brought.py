"""List what a plugin brings, and make the words of a run that uses it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jobs.graph.resolved_run import ResolvedRun
from pipeline.core.errors import UsageError
from pipeline.core.plugins import PARENT
from pipeline.core.registry import LISTED
from pipeline.core.rows import RECORDS
from pipeline.work.stage import ROLES

_FILES = {  # in the folder `conf`
    "method": "method/*.yaml", "corpus": "corpus/*.yaml", "memory": "memory/*.yaml",
    "engine": "engine/*.yaml", "rater": "rater/*.yaml", "experiment": "experiment/*.yaml",
}  # fmt: skip
_DOCUMENT = {  # of 1200 words, with three questions that it answers
    "corpus": "synthetic", "corpus.num_documents": "1", "corpus.words": "1200",
    "corpus.questions": "3",
}  # fmt: skip
_USED = """
select distinct 'metric', measure from measures
union select distinct 'prompt', prompt from calls"""
_OF_THE_CHECK = ("plugins", "cluster", "warehouse", "run")
Brought = Sequence[tuple[str, str]]
"""Kinds and names."""


def brought(folder: Path) -> Brought:
    """All that a loaded plugin has registered, and the files of its `conf`."""
    module, conf = f"{PARENT}.{folder.name}.", folder / "conf"
    found = {key: None for key, one in _registered() if one.__module__.startswith(module)}
    for kind, pattern in _FILES.items():
        found.update(dict.fromkeys((kind, file.stem) for file in sorted(conf.glob(pattern))))
    families = sorted(conf.glob("prompts/*/family.yaml"))
    return [*found, *(("family", file.parent.name) for file in families)]


def _registered() -> Iterator[tuple[tuple[str, str], Any]]:
    """All that is registered by kind and name, and its class or function."""
    yield from ((("table", name), record) for name, record in RECORDS.items())
    for kind, listed in LISTED.items():
        yield from (((kind.removesuffix("s"), name), found.one) for name, found in listed.items())


def words_of(folder: Path, found: Brought, given: Sequence[str]) -> list[str]:
    """The words of a run on one document, the built-in one unless the plugin has a corpus: all of
    the plugin's methods, the first of its engines, corpora and families. A file `sample.*` beside
    its modules is what its corpus reads. `given` words take the place of these.

    Raises UsageError for words that a check sets itself."""

    def names(kind: str) -> list[str]:
        return [name for what, name in found if what == kind]

    words = {"plugins": str(folder), "limit": "1", "cluster": "inline"}
    words["methods"] = ",".join(names("method")) or "gist_only"
    words |= {kind: names(kind)[0] for kind in ("engine", "family") if names(kind)}
    if corpora := names("corpus"):
        words["corpus"] = corpora[0]
        if samples := sorted(folder.glob("sample.*")):
            words["corpus.path"] = str(samples[0])
    elif not any(word.startswith(("corpus=", "experiment=")) for word in given):
        words |= _DOCUMENT
    keys = {word.partition("=")[0] for word in given}
    if own := keys.intersection(_OF_THE_CHECK):
        raise UsageError(f"{min(own)}=: a check has its own; leave it out")
    return [*(f"{key}={value}" for key, value in words.items() if key not in keys), *given]


def used(resolved: ResolvedRun, connection: Any) -> set[tuple[str, str]]:
    """All that a run has used, of a plugin or not: kinds and names."""
    stages = [step.stage for step in resolved.steps if step.stage is not None]
    config = resolved.config
    return {
        *(("stage", stage.label()) for stage in stages),
        *(("table", stage.writes.table) for stage in stages),
        *(("rubric", name) for stage in stages for name in getattr(stage, "rubrics", ())),
        *(("method", Path(method.file).stem) for method in resolved.methods),
        *(("engine", engine.name) for role in ROLES for engine in config.engines(role)),
        *(("rater", engine.name) for engine in config.engines("judge")),
        ("corpus", config.corpus.name),
        ("format", config.corpus.format),
        ("memory", config.memory.name),
        ("experiment", config.name or ""),
        ("family", Path(resolved.family.folder).name),
        *connection.execute(_USED).fetchall(),
    }
