"""Parse `readagent_p(max_pages=1..6),bm25[memory=uniform]` into methods, and read their YAML files.

A method's YAML file has `arguments` with defaults (null: required) and `stages` in order, each with
its settings, where `$name` stands for an argument. Two keys may be left out: `papers` lists keys of
papers.bib; `optional` has arguments that are null, and not part of the method's name, unless given,
each with the defaults of other arguments that it changes.

Memories and families name stages in the same way, `name: {settings}` each. A stage's key is its
name within the list. `stage:` names the stage class if the key does not, `kind:` chooses among
classes of that name, and `from: {table: key}` names the earlier stage that a table is read from.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.core.errors import UsageError
from pipeline.core.registry import hint
from pipeline.core.settings import YAML_LOADER, read_yaml, text_of
from pipeline.work.stage import STAGES, Stage

NO_METHODS = "none"
_MOST_VALUES = 10_000  # of one argument; each makes another method
_METHOD = re.compile(r"([A-Za-z]\w*)\s*(?:\((.*)\))?\s*(?:\[(.*)\])?", re.DOTALL)


@dataclass(frozen=True)
class StageSpec:
    """One entry of `stages`, with arguments filled in."""

    key: str
    stage: type[Stage]
    settings: Mapping[str, Any]
    reads_from: Mapping[str, str]  # table -> key of an earlier stage
    memory: str  # the name of the memory that the stage starts, if it starts one

    def made(self, place: str, values: Mapping[str, Any]) -> Stage:
        """Make the stage object; `values` supply the settings that its YAML leaves out. Raises
        UsageError naming `place` and the wrong setting."""
        supplied = {name: values[name] for name in self.stage.model_fields if name in values}
        try:
            return self.stage(**{**supplied, **self.settings})
        except ValidationError as error:
            # A misspelt setting is reported as missing, too; the misspelling must be fixed.
            first = min(error.errors(), key=lambda wrong: wrong["type"] != "extra_forbidden")
        key = ".".join([self.key, *(str(part) for part in first["loc"])])
        raise UsageError(f"{place}: {key}: {first['msg'].removeprefix('Value error, ')}")


def stage_specs(place: str, stages: Any, defaults: Mapping[str, Any] = {}) -> tuple[StageSpec, ...]:
    """Parse the `stages` of a YAML file. Settings with their values in `defaults` are left out of a
    memory's name. Raises UsageError naming `place` and the stage."""
    if not isinstance(stages, Mapping) or not stages:
        raise UsageError(f"{place}: stages: write a list of stages, `name: {{settings}}` each")
    specs = []
    for key, written in stages.items():
        at = f"{place}: {key}"
        if written is not None and not isinstance(written, Mapping):
            raise UsageError(f"{at}: write its settings as {{key: value}}")
        settings = dict(written or {})
        name, reads_from = settings.pop("stage", str(key)), settings.pop("from", {})
        kinds = {stage.kind: stage for stage in STAGES.values() if stage.name == name}
        if not kinds:
            names = ", ".join(sorted({stage.name for stage in STAGES.values()}))
            raise UsageError(f"{at}: no stage {name!r}; there are {names}")
        only = "" if "" in kinds else next(iter(kinds)) if len(kinds) == 1 else None
        kind = settings.pop("kind", only)
        if not isinstance(kind, str) or kind not in kinds:
            wrong = "kind is missing" if kind is None else f"no kind {kind!r}"
            names = ", ".join(sorted(filter(None, kinds))) or "none"
            raise UsageError(f"{at}: {wrong}; the stage {name} has {names}")
        if not isinstance(reads_from, Mapping):
            raise UsageError(f"{at}: from: write {{table: stage}}")
        reads_from = {str(table): str(stage) for table, stage in reads_from.items()}
        # A memory is named by its stage, the kind and the settings that differ from `defaults`.
        shown = {"kind": kind} if kind else {}
        shown |= {k: v for k, v in settings.items() if k not in defaults or defaults[k] != v}
        memory = f"{name}({','.join(f'{k}={value}' for k, value in sorted(shown.items()))})"
        specs.append(StageSpec(str(key), kinds[kind], settings, reads_from, memory))
    return tuple(specs)


@dataclass(frozen=True)
class Method:
    """A method with all its arguments."""

    name: str  # the canonical one
    file: str
    stages: tuple[StageSpec, ...]
    given: tuple[tuple[str, str], ...] = ()  # settings of the run, as written in square brackets
    papers: tuple[str, ...] = ()  # its sources: keys of papers.bib beside the methods' folder
    has_repeats: bool = True  # False: every repeat would be identical


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    arguments: dict[str, Any]
    stages: Any
    optional: dict[str, dict[str, Any]] = {}
    papers: list[str] = []


def _read(file: Path) -> _File:
    """A method's file. Raises UsageError, naming file and key, if it describes no method."""
    declared = read_yaml(file, _File)
    nodes = [yaml.compose(text_of(file), YAML_LOADER)]
    for node in nodes:  # which grows: a mapping adds its values
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        keys = Counter(key.value for key, _ in pairs)
        if doubles := [key for key, number in keys.items() if number > 1]:  # YAML uses the last
            raise UsageError(f"{file}: {doubles[0]} occurs twice; give one of them another name")
        nodes += (value for _, value in pairs)
    for name, changed in declared.optional.items():
        if unknown := [key for key in changed if key not in declared.arguments]:
            raise UsageError(f"{file}: optional.{name}.{unknown[0]}: no such argument")
    return declared


def method_of(
    file: Path, name: str, values: Mapping[str, Any], defaults: Mapping[str, Any] = {}
) -> Method:
    """The method of a YAML file as `name`, with all arguments in `values`; it is not repeated."""
    return replace(_method(file, _read(file), values, defaults), name=name, has_repeats=False)


def methods_in(folders: Sequence[Path]) -> dict[str, tuple[Path, Mapping[str, Any]]]:
    """The file, arguments and defaults (none: optional) of every method in `folders`. Raises
    UsageError if two folders have a method of the same name."""
    methods: dict[str, tuple[Path, Mapping[str, Any]]] = {}
    for name, file in _files(folders).items():
        declared = _read(file)
        methods[name] = file, {**declared.arguments, **dict.fromkeys(declared.optional, "none")}
    return methods


def _files(folders: Sequence[Path]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for file in (file for folder in folders for file in sorted(folder.glob("*.yaml"))):
        if (other := files.setdefault(file.stem, file)) is not file:
            exists = f"the method {file.stem} exists already, in {other}"
            raise UsageError(f"{file}: {exists}; give it another name")
    return files


def expand_methods(
    text: str, folders: Sequence[Path], defaults: Mapping[str, Any] = {}
) -> list[Method]:
    """The methods that `text` names, in its order, without duplicates; `defaults` as for
    `stage_specs`. `1..6` counts up inclusively, `a|b` are alternatives; several such arguments
    multiply in the order written, and so do settings of the run in square brackets. Raises
    UsageError for unknown methods and for unknown or missing arguments."""
    if text.strip() == NO_METHODS:
        return []
    files, methods = _files(folders), dict[str, Method]()
    for part in filter(None, map(str.strip, re.split(r",(?![^(\[]*[)\]])", text))):
        for method in _expand_one(part, files, defaults):
            methods.setdefault(method.name, method)
    if not methods:
        raise UsageError(
            f"methods={text}: names no method; gistmill ls lists them, and methods=none makes "
            "memories alone"
        )
    return list(methods.values())


def _expand_one(
    part: str, files: Mapping[str, Path], defaults: Mapping[str, Any]
) -> Iterator[Method]:
    match = _METHOD.fullmatch(part)
    if not match:
        raise UsageError(f"methods: {part!r} is not a method; write it like bm25(top_k=3)")
    name, in_parentheses, in_brackets = match.groups("")
    if name not in files:
        raise UsageError(f"methods: no method {name!r}; {hint(name, sorted(files))}")
    declared = _read(files[name])
    arguments = _arguments(name, in_parentheses, declared)
    varied: dict[str, list[str]] = {}
    for setting, key, value in _pairs(in_brackets):
        alternatives = [alternative.strip() for alternative in value.split("|")]
        if not key or not all(alternatives) or key in varied:
            how = f"write settings of the run, each once, as {name}[memory=uniform]"
            raise UsageError(f"methods: {name}: [{setting}]: {how}")
        varied[key] = alternatives
    for values in itertools.product(*arguments.values()):
        given_values = dict(zip(arguments, values, strict=True))
        method = _method(files[name], declared, given_values, defaults)
        for settings in itertools.product(*varied.values()):
            given = tuple(zip(varied, settings, strict=True))
            printed = f"[{','.join(f'{key}={value}' for key, value in given)}]" if given else ""
            yield replace(method, name=method.name + printed, given=given)


def _pairs(written: str) -> Iterator[tuple[str, str, str]]:
    """The parts of `a=1,b=2`, each with its key and its value; both are "" if `=` is missing."""
    for part in (part.strip() for part in written.split(",") if part.strip()):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        yield part, key if equals else "", value


def _arguments(name: str, written: str, declared: _File) -> dict[str, list[Any]]:
    place, takes = f"methods: {name}", [*declared.arguments, *declared.optional]
    given: dict[str, list[Any]] = {}
    for part, key, value in _pairs(written):
        if key not in takes:
            listed = ", ".join(takes) or "none"
            raise UsageError(f"{place}: no argument {part!r}; it takes {listed}")
        if key in given:
            raise UsageError(f"{place}: {key} is given twice; write {key}=a|b for both")
        given[key] = list(_alternatives(f"{place}: {key}", value))
    for key, default in declared.arguments.items():
        if default is None and key not in given:
            raise UsageError(f"{place}: {key} is missing; write {name}({key}=...)")
    return given


def _alternatives(place: str, written: str) -> Iterator[Any]:
    for part in written.split("|"):
        span = re.fullmatch(r"\s*(\d+)\.\.(\d+)\s*", part)
        if not span:
            yield value_of(place, part)
        elif 0 <= int(span[2]) - int(span[1]) < _MOST_VALUES:
            yield from range(int(span[1]), int(span[2]) + 1)
        else:
            how = f"count up, to at most {_MOST_VALUES:,} values"
            raise UsageError(f"{place}={part.strip()[:80]}: {how}")


def value_of(place: str, written: str) -> str | int | float:
    """A value as YAML reads it. Raises UsageError, naming `place`, if that is no string or
    number."""
    try:
        value = yaml.load(written, YAML_LOADER)
    except (yaml.YAMLError, ValueError):  # ValueError: 2024-13-45 is no date
        value = None
    if not isinstance(value, str | int | float):
        raise UsageError(f"{place}={written.strip()} is not a value; write a number or a word")
    return value


def _method(
    file: Path, declared: _File, given: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Method:
    values = {**declared.arguments, **dict.fromkeys(declared.optional)}
    for key, changed in declared.optional.items():
        values |= changed if key in given else {}
    values |= given
    printed = ",".join(
        f"{key}={str(value).lower() if isinstance(value, bool) else value}"
        for key, value in values.items()
        if value is not None
    )
    return Method(
        name=f"{file.stem}({printed})" if printed else file.stem,
        file=str(file),
        stages=stage_specs(str(file), _filled(str(file), declared.stages, values), defaults),
        papers=tuple(declared.papers),
    )


def _filled(place: str, value: Any, arguments: Mapping[str, Any]) -> Any:
    """YAML with each `$name` replaced by the argument of that name."""
    if isinstance(value, Mapping):
        return {key: _filled(place, inner, arguments) for key, inner in value.items()}
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    if value[1:] not in arguments:
        names = ", ".join(arguments) or "none"
        raise UsageError(f"{place}: {value}: no such argument; `arguments` has {names}")
    return arguments[value[1:]]
