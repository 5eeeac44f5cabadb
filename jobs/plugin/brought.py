"""List what a plugin brings, and make the words of a run that uses it."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
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


def words_of(folder: Path, found: Brought, given: Sequence[str]) -> list[list[str]]:
    """The words of runs on one document, so many that each of the plugin's engines, families,
    memories and corpora, and each extractor that has a sample, is in one; all methods are in each.
    `given` words take the place of these.

    Raises UsageError for words that a check sets itself."""
    keys = {word.partition("=")[0] for word in given}
    if own := keys.intersection(_OF_THE_CHECK):
        raise UsageError(f"{min(own)}=: a check has its own; leave it out")
    if "experiment" in keys and words_of_each("experiment", folder, found, given):
        return []
    words = {**_small(folder), "methods": ",".join(_names(found, "method")) or "gist_only"}
    choices = [
        [{kind: name} for name in _names(found, kind)] or [{}]
        for kind in ("engine", "family", "memory")
        if kind not in keys
    ]
    if not keys & {"corpus", "experiment"}:
        choices.append(_corpora(folder, found))
    number = max(map(len, choices), default=1)
    runs = [
        reduce(or_, [own[min(index, len(own) - 1)] for own in choices], words)
        for index in range(number)
    ]
    return [_with(run, given) for run in runs]


def words_of_each(
    kind: str, folder: Path, found: Brought, given: Sequence[str]
) -> dict[str, list[str]]:
    """By name the words of a run with each of the plugin's experiments; with the one alone
    that is `given`."""
    chosen = [word.partition("=")[2] for word in given if word.startswith(f"{kind}=")]
    names = [name for name in _names(found, kind) if name in chosen or not chosen]
    return {name: _with({**_small(folder), kind: name}, given) for name in names}


def _small(folder: Path) -> dict[str, str]:
    return {"plugins": str(folder), "limit": "1", "cluster": "inline"}


def _with(words: Mapping[str, str], given: Sequence[str]) -> list[str]:
    """The words, those `given` in place of others of their keys."""
    keys = {word.partition("=")[0] for word in given}
    return [*(f"{key}={value}" for key, value in words.items() if key not in keys), *given]


def _names(found: Brought, kind: str) -> list[str]:
    return [name for what, name in found if what == kind]


def _corpora(folder: Path, found: Brought) -> list[dict[str, str]]:
    """The words that choose each corpus of the plugin, or the built-in one, and each extractor. Of
    the files `sample.*` beside its modules one with an extractor's ending is that one's, another
    one what the corpora read."""
    endings = {f".{ending}" for ending in _names(found, "extractor")}
    samples = sorted(folder.glob("sample.*"))
    paths = [{"corpus.path": str(file)} for file in samples if file.suffix not in endings][:1]
    corpora = [{"corpus": name, **(paths or [{}])[0]} for name in _names(found, "corpus")]
    files = [file for file in samples if file.suffix in endings]
    return [*(corpora or [_DOCUMENT]), *({"corpus": "text", "corpus.path": str(f)} for f in files)]


def used(words: Sequence[str], resolved: ResolvedRun, connection: Any) -> set[tuple[str, str]]:
    """All that a run of these words has used, of a plugin or not: kinds and names."""
    stages = [step.stage for step in resolved.steps if step.stage is not None]
    columns = [own for stage in stages for own in stage.columns().values()]
    config = resolved.config
    return {
        *((key, value) for key, _, value in (word.partition("=") for word in words)),
        *(("stage", stage.label()) for stage in stages),
        *(("table", stage.writes.table) for stage in stages),
        *(("column", column.measure) for own in columns for column in own),
        *(("rubric", name) for stage in stages for name in getattr(stage, "rubrics", ())),
        *(("method", Path(method.file).stem) for method in resolved.methods),
        *(("engine", engine.name) for role in ROLES for engine in config.engines(role)),
        *(("rater", engine.name) for engine in config.engines("judge")),
        ("format", config.corpus.format),
        ("extractor", Path(str(getattr(config.corpus, "path", ""))).suffix.removeprefix(".")),
        ("memory", config.memory.name),
        ("experiment", config.name or ""),
        ("family", Path(resolved.family.folder).name),
        *connection.execute(_USED).fetchall(),
    }
