"""Read a RunConfig from the words of a command, and refuse settings that cannot work."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from fsspec import available_protocols
from pydantic import ValidationError

from jobs.config.deadline import parse_deadline
from jobs.config.run_config import RunConfig
from jobs.graph.repeats import refuse_equal_repeats
from pipeline.core.compose import compose
from pipeline.core.errors import UsageError
from pipeline.core.plugins import load_plugins, plugin_folders
from pipeline.core.prompts import PROMPTS
from pipeline.core.registry import hint
from pipeline.core.settings import CONF, refuse_nonsense
from pipeline.files.place import as_path
from pipeline.work.check_family import wrong_settings
from pipeline.work.methods import stage_specs
from pipeline.work.stage import ROLES
from stages.corpora import Corpus, corpus_of

GROUPS = ("corpus", "memory", "engine", "rater", "cluster", "experiment")


def read_config(overrides: Sequence[str]) -> RunConfig:
    """The config of a command line. Raises UsageError, a single line, for every mistake."""
    if any(word.startswith("predictions=") for word in overrides):
        raise UsageError("predictions= is a word of score: gistmill score predictions=FILE method=")
    return validated_config(composed_values(overrides))


def composed_values(overrides: Sequence[str]) -> dict[str, Any]:
    """The plain values of a command line, not yet checked."""
    named = [word.partition("=")[2] for word in overrides if word.startswith("plugins=")]
    confs = load_plugins(plugin_folders(named[-1] if named else None))
    values = compose(overrides, confs)
    values["raters"] = [values.pop("rater")]
    values.pop("experiment", None)
    return values


def validated_config(values: Mapping[str, Any]) -> RunConfig:
    """The config of plain values, with all checks that need not read the corpus.

    Raises UsageError.
    """
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
        config = RunConfig.model_validate(
            {**values, "corpus": corpus, "raters": tuple(values["raters"])}
        )
    except ValidationError as error:
        raise UsageError(_first(error)) from None
    try:
        _check(config)
    except (OSError, ValueError) as error:  # of a name that no file can have
        raise UsageError(f"a path in the settings cannot be read: {error}; set another") from None
    return config


def _check(config: RunConfig) -> None:
    if config.cluster.deadline is not None:
        parse_deadline(config.cluster.deadline, datetime.now())
    _check_warehouse(config.warehouse)
    if config.limit and config.sample:
        raise UsageError("limit and sample are both set; set one of them to null")
    _refuse_useless(config)
    if config.reply_format == "constrained" and not _takes_constraints(config):
        raise UsageError(
            f"reply_format=constrained: engine={config.engine.name} cannot constrain replies; "
            "use vllm or openai, or reply_format=free"
        )
    if config.cluster.name == "inline":
        _refuse_several_workers(config)
    if not config.family_folder.is_dir():
        known = ", ".join(sorted(f.name for f in (CONF / "prompts").iterdir()))
        key, family = "family", config.family
        if family is None:
            key, family = "corpus.family", config.corpus.family
        raise UsageError(f"{key}={family}: no such family or folder; there are {known}")
    _check_family(config)
    refuse_equal_repeats(config)


def _check_warehouse(warehouse: str) -> None:
    """Raise UsageError for an address that nothing can be written to."""
    protocol = warehouse.partition("://")[0] if "://" in warehouse else ""
    if protocol in ("http", "https") or not warehouse.strip():
        raise UsageError(
            f"warehouse={warehouse}: cannot be written; name a folder, or s3://, gs://"
        )
    if protocol and protocol not in available_protocols():
        raise UsageError(
            f"warehouse={warehouse}: no filesystem {protocol}; name a folder, or s3://"
        )
    as_path(warehouse)


def _refuse_useless(config: RunConfig) -> None:
    """Raise UsageError for settings of the memory that none of its stages has."""
    memory = config.memory
    fields = {name for spec in stage_specs(f"memory={memory.name}", memory.stages)
              for name in spec.stage.model_fields}  # fmt: skip
    for key in memory.overrides():
        if key not in fields:
            files = (CONF / "memory").glob("*.yaml")
            other = " or ".join(sorted(f.stem for f in files if f.stem != memory.name))
            raise UsageError(f"memory.{key} does nothing here; add memory={other} or remove it")


def _check_family(config: RunConfig) -> None:
    """Raise UsageError for a setting that no stage has, a budget of an unknown prompt, or a
    template that cannot be rendered: before the run, rather than in every unit."""
    family = config.family_resolved()
    for line in wrong_settings(family):
        raise UsageError(line)
    for name in config.reply_tokens:
        if name not in PROMPTS:
            near = hint(name, sorted(PROMPTS))
            raise UsageError(f"reply_tokens.{name}: no such prompt; {near}")
    judging = stage_specs(f"{family.folder}: judging", family.judging)
    memory = stage_specs(f"memory={config.memory.name}", config.memory.stages)
    methods = [spec for method in config.expanded() for spec in method.stages]
    stages = [spec.stage for spec in (*memory, *methods, *judging)]
    for prompt in dict.fromkeys(p for s in stages for p in (*s.prompts, *s.leaves_room_for)):
        for sample in prompt.samples():
            family.render(sample)


def _refuse_several_workers(config: RunConfig) -> None:
    for role in ROLES:
        for engine in config.engines(role):
            if engine.min_workers > 1:
                key = f"{config.section(role)}.min_workers={engine.min_workers}"
                raise UsageError(f"{key}: cluster=inline has one worker; add cluster=local")


def _takes_constraints(config: RunConfig) -> bool:
    return any(engine.takes_constraints for role in ROLES for engine in config.engines(role))


_UNIONS = ("engine", "cluster", "memory_engine", "extractor")  # sections chosen by their `name`


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
