"""Methods with their own settings in a run: `gist_only[memory=uniform]`. Each set of settings is a
variant, whose steps are built as those of a run with these settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from jobs.config.run_config import Memory, RunConfig
from pipeline.core.errors import UsageError
from pipeline.core.registry import hint
from pipeline.store.shards.layout import SHARED
from pipeline.work.methods import Method, StageSpec, stage_specs, value_of

_ENGINES = ("engine", "memory_engine", "extractor", "query_expander")
_OF_ENGINE = ("model", "context_tokens", "temperature")
_OF_EMBEDDER = ("model", "chunk_words")
# Their settings make other pages or gists: the memory that methods share is another one.
_OF_MEMORY = ("memory", "engine")


@dataclass(frozen=True)
class Variant:
    """`memory`: the stages of the memory that its methods share, which starts as `shared`."""

    config: RunConfig
    memory: tuple[StageSpec, ...]
    methods: tuple[Method, ...]
    shared: str

    @property
    def specs(self) -> list[StageSpec]:
        return [*self.memory, *(spec for method in self.methods for spec in method.stages)]


def variants(
    config: RunConfig,
    methods: Sequence[Method],
    confs: Sequence[Path],
    defaults: Mapping[str, Any],
) -> list[Variant]:
    """The variants of a run, that of its own settings first, then in the order of the methods.

    Raises UsageError for a setting that a method cannot have, naming it.
    """
    found = [_variant(config, (), defaults, confs)]
    for method in methods:
        own = _variant(config, method.given, defaults, confs)
        places = [n for n, other in enumerate(found) if other.config == own.config]
        if not places:
            found.append(own)
        place = places[0] if places else -1
        found[place] = replace(found[place], methods=(*found[place].methods, method))
    return found


def _variant(
    config: RunConfig,
    given: Sequence[tuple[str, str]],
    defaults: Mapping[str, Any],
    confs: Sequence[Path],
) -> Variant:
    of_memory = [f"{key}={value}" for key, value in given if key.split(".")[0] in _OF_MEMORY]
    shared = f"{SHARED} [{','.join(of_memory)}]" if of_memory else SHARED
    varied = _varied(config, given, confs)
    return Variant(varied, _memory(varied, defaults, shared), (), shared)


def _memory(config: RunConfig, defaults: Mapping[str, Any], shared: str) -> tuple[StageSpec, ...]:
    """The stages of the memory that methods share, which is named `shared`; memories that its
    settings derive from it have names of their own."""
    overrides = config.memory.overrides()
    place = f"memory={config.memory.name}"
    first, *others = stage_specs(place, config.memory.stages, {**defaults, **overrides})
    return (replace(first, memory=shared), *others)


def _varied(
    config: RunConfig, given: Sequence[tuple[str, str]], confs: Sequence[Path]
) -> RunConfig:
    """The config with these settings; memory settings apply to the memory that is named."""
    changed: dict[str, Any] = {}
    try:
        for key, value in sorted(given, key=lambda one: one[0] != "memory"):
            section, _, name = key.partition(".")
            _refuse(config, key, section, name)
            if key == "memory":
                changed["memory"] = Memory.model_validate(_memory_file(value, confs))
            else:
                before = changed.get(section, getattr(config, section))
                values = {**before.model_dump(mode="json"), name: _value(key, value)}
                if values.get("model") != getattr(before, "model", None):
                    values.pop("price", None)  # that of another model is not known
                changed[section] = type(before).model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        written = ",".join(f"{key}={value}" for key, value in given)
        raise UsageError(f"methods: [{written}]: {first['msg']}") from None
    return config.model_copy(update=changed)


def _value(key: str, written: str) -> Any:
    """A setting's value, parsed as YAML; the name of a model is taken literally."""
    if key.endswith(".model"):
        return written
    return None if written == "null" else value_of(f"methods: {key}", written)


def _refuse(config: RunConfig, key: str, section: str, name: str) -> None:
    """Raise UsageError for a setting that methods may not have."""
    memory = [f"memory.{name}" for name in type(config.memory).model_fields][2:]
    engines = [f"{engine}.{name}" for engine in _ENGINES for name in _OF_ENGINE]
    known = ["memory", *memory, *(f"embedder.{name}" for name in _OF_EMBEDDER), *engines]
    if key not in known:
        raise UsageError(f"methods: [{key}=...]: no setting that a method may have; "
                         f"{hint(key, known)}")  # fmt: skip
    if section in _ENGINES and name not in getattr(config, section).model_dump():
        raise UsageError(f"methods: [{key}=...]: {section}={getattr(config, section).name} has no "
                         f"{name}; set {section}=...")  # fmt: skip


def _memory_file(name: str, confs: Sequence[Path]) -> Any:
    files = [conf / "memory" / f"{name}.yaml" for conf in confs]
    if there := [file for file in files if file.is_file()]:
        return yaml.safe_load(there[0].read_text(encoding="utf-8"))
    known = sorted(file.stem for conf in confs for file in (conf / "memory").glob("*.yaml"))
    raise UsageError(f"methods: [memory={name}]: no such memory; {hint(name, known)}")
