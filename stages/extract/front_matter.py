"""The front matter of Markdown: YAML between two lines `---` at the top of a file."""

import math
import re
from typing import Any

import yaml

from pipeline.core.settings import YAML_LOADER
from stages.extract.extracted import Extracted

_FRONT_MATTER = re.compile(r"\A---[^\S\n]*\n(.*?\n)(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)\s*", re.DOTALL)
_MOST_CHARS = 2**16  # more is no front matter


def without_front_matter(text: str) -> Extracted:
    """The text below the front matter, which is the metadata; the whole text where it has none, or
    one that is no YAML object."""
    found = _FRONT_MATTER.match(text[:_MOST_CHARS])
    if found is None:
        return Extracted(text)
    try:
        # What is named and repeated can unfold to any size.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(found[1], YAML_LOADER)):
            return Extracted(text)
        values = _plain(yaml.load(found[1], YAML_LOADER))
    except (yaml.YAMLError, ValueError, RecursionError):
        return Extracted(text)
    if not isinstance(values, dict):
        return Extracted(text)
    return Extracted(text[found.end() :], metadata=values)


def _plain(value: Any) -> Any:
    """The value as JSON can have it: keys, and numbers that are not finite, as text."""
    if isinstance(value, dict):
        return {str(key): _plain(value[key]) for key in value}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
