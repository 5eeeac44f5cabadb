"""Stages as the YAML of methods, memories and families names them: `name: {settings}` each.

A stage's key is its name within the list. `stage:` names the stage class if the key does not,
`kind:` chooses among classes of that name, and `from: {table: key}` names the earlier stage that a
table is read from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pipeline.core.errors import UsageError
from pipeline.work.stage import STAGES, Stage


@dataclass(frozen=True)
class StageSpec:
    """One entry of `stages`, with arguments filled in. `memory`: the name of the memory that it
    starts, if its stage starts one."""

    key: str
    stage: type[Stage]
    settings: Mapping[str, Any]
    reads_from: Mapping[str, str]  # table -> key of an earlier stage
    memory: str

    def made(self, place: str, values: Mapping[str, Any]) -> Stage:
        """The stage object; `values` supply the settings that its YAML leaves out.

        Raises UsageError naming `place` and the wrong setting.
        """
        own = {name: values[name] for name in self.stage.model_fields if name in values}
        try:
            return self.stage(**{**own, **self.settings})
        except ValidationError as error:
            # A misspelt setting is reported as missing, too; the misspelling is what to fix.
            first = min(error.errors(), key=lambda wrong: wrong["type"] != "extra_forbidden")
            where = ".".join([self.key, *(str(part) for part in first["loc"])])
            raise UsageError(f"{place}: {where}: {self._advice(first)}") from None

    def _advice(self, wrong: ErrorDetails) -> str:
        """The message about a wrong setting, and what to do."""
        if wrong["type"] == "extra_forbidden":
            takes = ", ".join(self.stage.model_fields) or "none"
            return f"no such setting; {self.stage.label()} has {takes}"
        if wrong["type"] == "missing":
            return "is not set, here or by the family; give it a value"
        return wrong["msg"].removeprefix("Value error, ")


def stage_specs(place: str, stages: Any, defaults: Mapping[str, Any] = {}) -> tuple[StageSpec, ...]:
    """Parse the `stages` of a YAML file. `defaults`: the values of settings that it leaves out,
    which a memory's name does not show. Raises UsageError naming `place` and the stage."""
    if not isinstance(stages, Mapping) or not stages:
        raise UsageError(f"{place}: stages: write a list of stages, `name: {{settings}}` each")
    return tuple(_stage_spec(place, str(key), own, defaults) for key, own in stages.items())


def _stage_spec(place: str, key: str, settings: Any, defaults: Mapping[str, Any]) -> StageSpec:
    if settings is not None and not isinstance(settings, Mapping):
        raise UsageError(f"{place}: {key}: write its settings as {{key: value}}")
    own = dict(settings or {})
    name, reads_from = own.pop("stage", key), own.pop("from", {})
    kinds = STAGES.get(name) if isinstance(name, str) else None
    if kinds is None:
        raise UsageError(
            f"{place}: {key}: no stage {name!r}; there are {', '.join(sorted(STAGES))}"
        )
    kind = own.pop("kind", "" if "" in kinds else next(iter(kinds)) if len(kinds) == 1 else None)
    if not isinstance(kind, str) or kind not in kinds:
        what = "kind is missing" if kind is None else f"no kind {kind!r}"
        known = ", ".join(sorted(filter(None, kinds))) or "none"
        raise UsageError(f"{place}: {key}: {what}; the stage {name} has {known}")
    if not isinstance(reads_from, Mapping):
        raise UsageError(f"{place}: {key}: from: write {{table: stage}}")
    reads_from = {str(table): str(stage) for table, stage in reads_from.items()}
    memory = _memory_name(name, kind, own, defaults)
    return StageSpec(key, kinds[kind], own, reads_from, memory)


def _memory_name(
    stage: str, kind: str, settings: Mapping[str, Any], defaults: Mapping[str, Any]
) -> str:
    """The stage's name, its kind and the settings that differ from `defaults`."""
    shown = {"kind": kind} if kind else {}
    shown |= {k: v for k, v in settings.items() if k not in defaults or defaults[k] != v}
    return f"{stage}({','.join(f'{key}={value}' for key, value in sorted(shown.items()))})"
