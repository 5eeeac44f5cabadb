"""Read the run that a command line describes."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from jobs.config.run_config import RunConfig, SameAsReader
from jobs.graph.resolved_run import ResolvedRun, resolve
from pipeline.core.compose import compose
from pipeline.core.engine import ENGINES, EngineSettings
from pipeline.core.errors import UsageError
from pipeline.core.registry import conf_folders
from pipeline.core.settings import refuse_nonsense
from stages.corpora import Corpus, corpus_of

GROUPS = ("corpus", "memory", "engine", "rater", "cluster", "experiment")


def read_run(overrides: Sequence[str]) -> ResolvedRun:
    """The run of a command line. Raises UsageError, a single line, for every mistake."""
    return resolve(read_config(overrides))


def read_config(overrides: Sequence[str]) -> RunConfig:
    """The config of a command line. Raises UsageError as `parsed_config`."""
    if any(word.startswith("predictions=") for word in overrides):
        raise UsageError("predictions= is a word of score: gistmill score predictions=FILE method=")
    return parsed_config(composed_values(overrides))


def composed_values(overrides: Sequence[str]) -> dict[str, Any]:
    """The plain values of a command line, unchecked."""
    named = [word.partition("=")[2] for word in overrides if word.startswith("plugins=")]
    values = compose(overrides, conf_folders(named[-1] if named else None)[:-1])
    values["raters"] = [values.pop("rater")]
    values.pop("experiment", None)
    return values


def run_of(values: Mapping[str, Any]) -> ResolvedRun:
    """The run of plain values. Raises UsageError as `parsed_config` and `resolve` do."""
    return resolve(parsed_config(values))


def parsed_config(values: Mapping[str, Any]) -> RunConfig:
    """The config of plain values. Raises UsageError for one that is not of its kind."""
    refuse_nonsense({key: value for key, value in values.items() if key != "corpus"})
    section = values["corpus"]
    if not isinstance(section, Corpus | Mapping):
        raise UsageError(f"corpus={str(section)[:80]}: write a section, or corpus=NAME")
    if isinstance(section, Mapping):
        refuse_nonsense(section, "corpus")
    try:
        corpus = section if isinstance(section, Corpus) else corpus_of(section)
    except ValidationError as error:
        raise UsageError(_first(error, "corpus")) from None
    engines = {key: _engine(key, values[key]) for key in _ENGINES if key in values}
    raters = tuple(_engine("rater", section) for section in values["raters"])
    try:
        made = {**values, "corpus": corpus, **engines, "raters": raters}
        return RunConfig.model_validate(made)
    except ValidationError as error:
        raise UsageError(_first(error)) from None


_ENGINES = ("engine", "memory_engine", "extractor", "query_expander")


def _engine(key: str, section: Any) -> EngineSettings | SameAsReader:
    """The engine of a section, by its `name`."""
    if isinstance(section, EngineSettings | SameAsReader):
        return section
    if not isinstance(section, Mapping):
        raise UsageError(f"{key}={str(section)[:80]}: write a section, or {key}=NAME")
    known: dict[str, type[EngineSettings | SameAsReader]] = {n: ENGINES[n] for n in sorted(ENGINES)}
    if key != "engine":
        known |= {"reader": SameAsReader, "none": SameAsReader}
    name = str(section.get("name"))
    if name not in known:
        expected = ", ".join(known)
        raise UsageError(f"{key}.name={name[:80]}: no such choice; it is one of {expected}")
    try:
        return known[name].model_validate(dict(section))
    except ValidationError as error:
        raise UsageError(_first(error, key)) from None


def _first(error: ValidationError, *section: str) -> str:
    """The first error of validation, with the key as it is written on the command line."""
    first = error.errors()[0]
    parts = [*section, *(str(part) for part in first["loc"])]
    if parts[0] == "cluster":  # cluster.local.deadline is written cluster.deadline
        parts = [parts[0], *parts[2:]]
    if first["type"] == "union_tag_invalid":  # `input` is the whole section then
        tags = {key: str(value).replace("'", "") for key, value in first["ctx"].items()}
        key = ".".join([*parts, tags["discriminator"]])
        return f"{key}={tags['tag'][:80]}: no such choice; it is one of {tags['expected_tags']}"
    return f"{'.'.join(parts)}={str(first['input'])[:80]}: {first['msg']}"
