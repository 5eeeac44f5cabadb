"""`cluster.overlay`: a YAML file that is merged into the manifest of a RayJob."""

from pathlib import Path
from typing import Any

import yaml

from pipeline.core.errors import UsageError

_SECTIONS = ("metadata", "spec")
_KEYS = ("name", "groupName")  # by which elements of a list are matched, as Kubernetes does


def with_overlay(manifest: dict[str, Any], file: Path) -> dict[str, Any]:
    """The manifest with the file's values over its own.

    Sections are merged key by key, lists of named elements (containers, env, volumes, worker
    groups) name by name; any other list and value replaces the manifest's, and a YAML null removes
    it. Raises UsageError if the file is no such section, or has a section in a value's place.
    """
    content = _read(file)
    for key, section in content.items():
        if key not in _SECTIONS:
            raise UsageError(f"{file}: {key}: no section; an overlay has {', '.join(_SECTIONS)}")
        if section is not None and not isinstance(section, dict):
            raise UsageError(
                f"{file}: {key}: the manifest has a section there, not {_kind(section)}"
            )
    if {"name", "namespace"} & {*(content.get("metadata") or {})}:
        raise UsageError(f"{file}: metadata: the run names the job; set run=, cluster.namespace=")
    made: dict[str, Any] = _merged(manifest, content, str(file))
    return made


def _read(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cluster.overlay={file}: {error.strerror}; name a YAML file") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: of a date
        raise UsageError(f"{file}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise UsageError(f"{file}: write sections, such as metadata: {{labels: ...}}")
    return content


def _merged(below: Any, above: Any, place: str) -> Any:
    """`above` over `below`; `place` names them in errors."""
    if below is None or above is None:
        return above
    if _kind(below) != _kind(above):
        raise UsageError(f"{place}: the manifest has {_kind(below)} there, not {_kind(above)}")
    if isinstance(above, dict):
        values = {k: _merged(below.get(k), v, f"{place}: {k}") for k, v in above.items()}
        return {k: v for k, v in {**below, **values}.items() if v is not None}
    if isinstance(above, list) and (key := _key(below)) and key == _key(above):
        named = {one[key]: one for one in below}
        for one in above:
            named[one[key]] = _merged(named.get(one[key]), one, f"{place}: {one[key]}")
        return [*named.values()]
    return above


def _key(elements: list[Any]) -> str | None:
    """The key that names each element of a list; None if there is none."""
    for key in _KEYS:
        if elements and all(isinstance(e, dict) and isinstance(e.get(key), str) for e in elements):
            return key
    return None


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "a section"
    return "a list" if isinstance(value, list) else "a value"
