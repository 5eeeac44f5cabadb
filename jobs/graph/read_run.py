"""Read the run that the words of a command make."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from jobs.config.run_config import RunConfig
from jobs.graph.resolved_run import ResolvedRun, resolve
from pipeline.core.compose import compose
from pipeline.core.errors import UsageError
from pipeline.core.plugins import conf_folders
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
    """The plain values of a command line, not yet checked."""
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
    try:
        return RunConfig.model_validate(
            {**values, "corpus": corpus, "raters": tuple(values["raters"])}
        )
    except ValidationError as error:
        raise UsageError(_first(error)) from None


# Sections chosen by their `name`.
_UNIONS = ("engine", "cluster", "memory_engine", "extractor", "query_expander")


def _first(error: ValidationError, *section: str) -> str:
    """The first error of validation, with the key as it is written on the command line."""
    first = error.errors()[0]
    parts = [*section, *(str(part) for part in first["loc"])]
    if parts[0] == "raters":  # raters.0.extractive.seed is written rater.seed
        parts = ["rater", *parts[3:]]
    elif parts[0] in _UNIONS:  # engine.extractive.seed is written engine.seed
        parts = [parts[0], *parts[2:]]
    if first["type"] == "union_tag_invalid":  # `input` is the whole section then
        tags = {key: str(value).replace("'", "") for key, value in first["ctx"].items()}
        key = ".".join([*parts, tags["discriminator"]])
        return f"{key}={tags['tag'][:80]}: no such choice; it is one of {tags['expected_tags']}"
    return f"{'.'.join(parts)}={str(first['input'])[:80]}: {first['msg']}"
