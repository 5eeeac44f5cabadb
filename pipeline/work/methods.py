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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pipeline.core.errors import UsageError
from pipeline.core.registry import hint
from pipeline.core.settings import YAML_LOADER, refuse_nonsense
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
    kinds = {stage.kind: stage for stage in STAGES.values() if stage.name == name}
    if not kinds:
        known = ", ".join(sorted({stage.name for stage in STAGES.values()}))
        raise UsageError(f"{place}: {key}: no stage {name!r}; there are {known}")
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


NO_METHODS = "none"
_MOST_VALUES = 10_000  # of one argument; each is a method of its own


@dataclass(frozen=True)
class Method:
    """A method with all its arguments; `name` is the canonical one, `file` its YAML file. `given`:
    the settings of the run that are others for it, as written in square brackets."""

    name: str
    file: str
    stages: tuple[StageSpec, ...]
    given: tuple[tuple[str, str], ...] = ()
    papers: tuple[str, ...] = ()  # that it is from: keys of papers.bib beside the methods' folder
    has_repeats: bool = True  # false: every repeat would be the same


def method_of(
    file: Path, name: str, values: Mapping[str, Any], defaults: Mapping[str, Any] = {}
) -> Method:
    """The method of one YAML file under another name, with the values of all its arguments; it is
    not repeated."""
    return replace(_method(file, _read(file), values, defaults), name=name, has_repeats=False)


def methods_in(folders: Sequence[Path]) -> dict[str, tuple[Path, Mapping[str, Any]]]:
    """The file, arguments and defaults of every method in `folders`; none: optional.

    Raises UsageError where two folders have a method of the same name.
    """
    found: dict[str, tuple[Path, Mapping[str, Any]]] = {}
    for file in _files(folders).values():
        declared = _read(file)
        optional = dict.fromkeys(declared["optional"], "none")
        found[file.stem] = (file, {**declared["arguments"], **optional})
    return found


def _files(folders: Sequence[Path]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for folder in folders:
        for file in sorted(folder.glob("*.yaml")):
            if file.stem in files:
                raise UsageError(
                    f"{file}: the method {file.stem} exists already, in {files[file.stem]}; "
                    "give it another name"
                )
            files[file.stem] = file
    return files


def expand_methods(
    text: str, folders: Sequence[Path], defaults: Mapping[str, Any] = {}
) -> list[Method]:
    """The methods that `text` names, in its order, without duplicates; `defaults` as of
    `stage_specs`.

    `1..6` counts up inclusively, `a|b` are alternatives; several such arguments multiply in the
    order written, and so do settings of the run in square brackets. `none` stands for no method.
    Raises UsageError for unknown methods and for unknown or missing arguments.
    """
    if text.strip() == NO_METHODS:
        return []
    files = _files(folders)
    found: dict[str, Method] = {}
    for part in _split(text):
        for method in _expand_one(part, files, defaults):
            found.setdefault(method.name, method)
    if not found:
        raise UsageError(
            f"methods={text}: names no method; gistmill ls lists them, and methods=none makes "
            "memories alone"
        )
    return list(found.values())


def _split(text: str) -> list[str]:
    """The parts between commas that stand outside brackets."""
    return [part.strip() for part in re.split(r",(?![^(\[]*[)\]])", text) if part.strip()]


def _expand_one(
    part: str, files: Mapping[str, Path], defaults: Mapping[str, Any]
) -> Iterator[Method]:
    match = re.fullmatch(r"([A-Za-z]\w*)\s*(?:\((.*)\))?\s*(?:\[(.*)\])?", part, re.DOTALL)
    if not match:
        raise UsageError(f"methods: {part!r} is not a method; write it like bm25(top_k=3)")
    name, written = match[1], match[2] or ""
    if name == NO_METHODS:
        raise UsageError("methods: none stands alone; leave it or the methods out")
    if name not in files:
        raise UsageError(f"methods: no method {name!r}; {hint(name, sorted(files))}")
    file = files[name]
    declared = _read(file)
    given = _arguments(name, written, declared["arguments"], list(declared["optional"]))
    varied = _varied(name, match[3] or "")
    for values in itertools.product(*given.values()):
        method = _method(file, declared, dict(zip(given, values, strict=True)), defaults)
        for others in itertools.product(*varied.values()):
            yield _with_settings(method, tuple(zip(varied, others, strict=True)))


def _varied(name: str, written: str) -> dict[str, list[str]]:
    """The alternatives of each setting of the run that is written in square brackets."""
    found: dict[str, list[str]] = {}
    for part in (p.strip() for p in written.split(",") if p.strip()):
        key, equals, value = (p.strip() for p in part.partition("="))
        values = [one.strip() for one in value.split("|")]
        if not equals or not all(values) or key in found:
            raise UsageError(
                f"methods: {name}: [{part}]: write settings of the run, each once, as "
                f"{name}[memory=uniform]"
            )
        found[key] = values
    return found


def _with_settings(method: Method, given: tuple[tuple[str, str], ...]) -> Method:
    if not given:
        return method
    printed = ",".join(f"{key}={value}" for key, value in given)
    return replace(method, name=f"{method.name}[{printed}]", given=given)


def _arguments(
    name: str, written: str, declared: Mapping[str, Any], optional: Sequence[str]
) -> dict[str, list[Any]]:
    """The alternatives of each argument that is written."""
    given: dict[str, list[Any]] = {}
    for part in (p.strip() for p in written.split(",") if p.strip()):
        key, equals, value = (p.strip() for p in part.partition("="))
        takes = ", ".join([*declared, *optional]) or "none"
        if not equals or key not in (*declared, *optional):
            raise UsageError(f"methods: {name}: no argument {part!r}; it takes {takes}")
        if key in given:
            raise UsageError(f"methods: {name}: {key} is given twice; write {key}=a|b for both")
        given[key] = list(_alternatives(f"methods: {name}: {key}", value))
    for key, default in declared.items():
        if default is None and key not in given:
            raise UsageError(f"methods: {name}: {key} is missing; write {name}({key}=...)")
    return given


def _alternatives(place: str, written: str) -> Iterator[Any]:
    for part in written.split("|"):
        span = re.fullmatch(r"\s*(\d+)\.\.(\d+)\s*", part)
        if not span:
            yield value_of(place, part)
        elif int(span[1]) > int(span[2]):
            raise UsageError(f"{place}={part.strip()} counts down; write {span[2]}..{span[1]}")
        elif int(span[2]) - int(span[1]) >= _MOST_VALUES:
            raise UsageError(f"{place}={part.strip()[:80]}: write at most {_MOST_VALUES:,} values")
        else:
            yield from range(int(span[1]), int(span[2]) + 1)


def value_of(place: str, written: str) -> str | int | float:
    """A value as YAML reads it. Raises UsageError, which names the place, for what is none."""
    try:
        value = yaml.load(written, YAML_LOADER)
    except (yaml.YAMLError, ValueError):  # ValueError: 2024-13-45 is no date
        value = None
    if not isinstance(value, str | int | float):
        raise UsageError(f"{place}={written.strip()} is not a value; write a number or a word")
    refuse_nonsense(value, place)
    return value


def _method(
    file: Path, declared: Mapping[str, Any], given: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Method:
    values = {**declared["arguments"], **dict.fromkeys(declared["optional"])}
    for key, others in declared["optional"].items():
        values |= others if key in given else {}
    values |= given
    shown = {key: value for key, value in values.items() if value is not None}
    printed = ",".join(f"{key}={_as_yaml(value)}" for key, value in shown.items())
    return Method(
        name=f"{file.stem}({printed})" if printed else file.stem,
        file=str(file),
        stages=stage_specs(str(file), _filled(str(file), declared["stages"], values), defaults),
        papers=tuple(declared["papers"]),
    )


def _as_yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _filled(place: str, value: Any, arguments: Mapping[str, Any]) -> Any:
    """YAML with each `$name` replaced by the argument of that name."""
    if isinstance(value, Mapping):
        return {key: _filled(place, inner, arguments) for key, inner in value.items()}
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    if value[1:] not in arguments:
        known = ", ".join(arguments) or "none"
        raise UsageError(f"{place}: {value}: no such argument; `arguments` has {known}")
    return arguments[value[1:]]


def _refuse_doubles(place: str, node: Any) -> None:
    """Raise UsageError if a key occurs twice: YAML would silently use the second."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    keys = [key.value for key, _ in pairs]
    for key, value in pairs:
        if keys.count(key.value) > 1:
            raise UsageError(f"{place}: {key.value} occurs twice; give one of them another name")
        _refuse_doubles(place, value)


def _read(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
        content = yaml.load(text, YAML_LOADER)
        _refuse_doubles(str(file), yaml.compose(text, YAML_LOADER))
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{file}: not YAML: {' '.join(str(error).split())}") from None
    try:
        refuse_nonsense(content)
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from None
    keys = [str(key) for key in content] if isinstance(content, Mapping) else []
    others = [key for key in keys if key not in ("arguments", "optional", "stages", "papers")]
    if missing := [key for key in ("arguments", "stages") if key not in keys]:
        raise UsageError(f"{file}: {', '.join(missing)} missing; see the other methods")
    if others:
        raise UsageError(
            f"{file}: {', '.join(others)}: no such key; a method has `arguments`, `optional`, "
            "`stages` and `papers`"
        )
    arguments = content["arguments"] or {}
    if not isinstance(arguments, Mapping):
        raise UsageError(f"{file}: arguments: write {{name: default}}, null where it must be given")
    optional = content.get("optional") or {}
    if not isinstance(optional, Mapping) or not all(
        isinstance(others, Mapping) and others.keys() <= arguments.keys()
        for others in optional.values()
    ):
        raise UsageError(
            f"{file}: optional: write {{name: {{argument: its default where name is given}}}}"
        )
    papers = content.get("papers") or []
    if not isinstance(papers, list) or not all(isinstance(key, str) for key in papers):
        raise UsageError(f"{file}: papers: write a list of keys of papers.bib")
    return {
        "arguments": arguments,
        "optional": optional,
        "stages": content["stages"],
        "papers": papers,
    }
