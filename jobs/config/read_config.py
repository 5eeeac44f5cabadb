"""Read the config that a command line or a stored run describes, and refuse settings that cannot
work. Every mistake is one line: the key, its value and what is wrong."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from jobs.config.run_config import SECTIONS, RunConfig, SameAsReader, deadline
from pipeline.core.compose import compose
from pipeline.core.engine import ENGINES, EngineSettings
from pipeline.core.errors import UsageError
from pipeline.core.registry import conf_folders
from pipeline.core.settings import CONF, refuse_nonsense
from pipeline.files.storage import as_path
from pipeline.work.methods import stage_specs
from pipeline.work.stage import ROLES
from stages.corpora import Corpus, corpus_of

_SECTIONS = ("corpus", "engine", "memory_engine", "extractor", "query_expander")


def read_config(overrides: Sequence[str]) -> RunConfig:
    """The config of a command line. Raises UsageError as `parsed_config`."""
    if any(word.startswith("predictions=") for word in overrides):
        raise UsageError("predictions= is a word of score: gistmill score predictions=FILE method=")
    return parsed_config(composed_values(overrides))


def composed_values(overrides: Sequence[str]) -> dict[str, Any]:
    plugins = [word.partition("=")[2] for word in overrides if word.startswith("plugins=")]
    values = compose(overrides, conf_folders(plugins[-1] if plugins else None)[:-1])
    values["raters"] = [values.pop("rater")]
    values.pop("experiment", None)
    return values


def parsed_config(values: Mapping[str, Any]) -> RunConfig:
    """The config of plain values. Raises UsageError for one that is not of its kind."""
    refuse_nonsense(values)
    parsed = {key: _section(key, values[key]) for key in _SECTIONS if key in values}
    raters = tuple(_section("rater", rater) for rater in values["raters"])
    try:
        return RunConfig.model_validate({**values, **parsed, "raters": raters})
    except ValidationError as error:
        raise _refusal(error) from None


def _section(key: str, section: Any) -> Corpus | EngineSettings | SameAsReader:
    if not isinstance(section, Mapping):
        raise UsageError(f"{key}={str(section)[:80]}: write a section, or {key}=NAME")
    try:
        if key == "corpus":
            return corpus_of(section)
        kinds: dict[str, type[EngineSettings | SameAsReader]] = {n: ENGINES[n] for n in ENGINES}
        if key != "engine":
            kinds |= {"reader": SameAsReader, "none": SameAsReader}
        name = str(section.get("name"))
        if name in kinds:
            return kinds[name].model_validate(dict(section))
    except ValidationError as error:
        raise _refusal(error, key) from None
    names = ", ".join(sorted(kinds))
    raise UsageError(f"{key}.name={name[:80]}: no such choice; it is one of {names}")


def _refusal(error: ValidationError, *section: str) -> UsageError:
    """The first error of validation, with the key as it is written on the command line."""
    first = error.errors()[0]
    parts = [*section, *(str(part) for part in first["loc"])]
    if parts[0] == "cluster":  # cluster.local.deadline is written cluster.deadline
        parts = [parts[0], *parts[2:]]
    if first["type"] == "union_tag_invalid":  # `input` is the whole section then
        tags = {key: str(value).replace("'", "") for key, value in first["ctx"].items()}
        key = ".".join([*parts, tags["discriminator"]])
        names = tags["expected_tags"]
        return UsageError(f"{key}={tags['tag'][:80]}: no such choice; it is one of {names}")
    # Of a whole section only the key is shown: its values may be secrets.
    value = "" if isinstance(first["input"], Mapping) else f"={str(first['input'])[:80]}"
    return UsageError(f"{'.'.join(parts)}{value}: {first['msg']}")


def check_config(config: RunConfig) -> None:
    """Raise UsageError for settings that contradict each other or name nothing usable."""
    if config.cluster.deadline is not None:
        deadline(config.cluster.deadline, datetime.now(), may_be_past=True)
    warehouse, memory = config.warehouse, config.memory
    if warehouse.startswith(("http://", "https://")) or not warehouse.strip():
        raise UsageError(
            f"warehouse={warehouse}: cannot be written; name a folder, or s3://, gs://"
        )
    as_path(warehouse)
    if config.limit and config.sample:
        raise UsageError("limit and sample are both set; set one of them to null")
    specs = stage_specs(f"memory={memory.name}", memory.stages)
    settings = {name for spec in specs for name in spec.stage.model_fields}
    for key in memory.overrides():
        if key not in settings:
            files = (CONF / "memory").glob("*.yaml")
            others = " or ".join(sorted(f.stem for f in files if f.stem != memory.name))
            raise UsageError(f"memory.{key} does nothing here; add memory={others} or remove it")
    engines = [(role, engine) for role in ROLES for engine in config.engines(role)]
    if config.reply_format == "constrained" and not any(e.takes_constraints for _, e in engines):
        raise UsageError(
            f"reply_format=constrained: engine={config.engine.name} cannot constrain replies; "
            "use vllm or openai, or reply_format=free"
        )
    for role, engine in engines if config.cluster.name == "inline" else ():
        if engine.min_workers > 1:
            key = f"{SECTIONS[role]}.min_workers={engine.min_workers}"
            raise UsageError(f"{key}: cluster=inline has one worker; add cluster=local")
