"""Copy a prompt family, with all it inherits, into one folder that a user can read and change."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from pipeline.core.errors import UsageError
from pipeline.core.prompts import PROMPTS
from pipeline.core.registry import conf_folders
from pipeline.core.settings import text_of
from pipeline.families.family import (
    GENERIC,
    Family,
    FamilyFile,
    family_layers,
    find_family,
    load_family,
)

_COMMENT = re.compile(r"^  (\w+):.*?\s#\s+(.+)$", re.MULTILINE)  # a setting's comment, on its line
_KEY = re.compile(r"^  (\w+):.*$", re.MULTILINE)


class _OneLine(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    """A YAML dumper that writes every text on one line, even one with line breaks."""


_OneLine.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style='"' if "\n" in text else None
    ),
)


@dataclass(frozen=True)
class Exported:
    """The copy of a family. `templates`: file name -> the family that it came from."""

    folder: str
    templates: Mapping[str, str]


def export_family(name: str, folder: Path, plugins: str | None) -> Exported:
    """Copy a family, with all that it inherits, to a new folder.

    The copy renders the same texts, so steps made with it have the same names. `name`: a shipped or
    a plugin's family, or a folder. Raises UsageError if there is none, or `folder` has files.
    """
    roots = [conf / "prompts" for conf in conf_folders(plugins)]
    source = find_family(name, roots)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: is there already and not empty; name a new folder")
    layers = family_layers(source, roots)
    family = load_family(source, roots)
    is_named = any(source.parent == root for root in roots)
    content = _yaml(source.name if is_named else "", family, layers)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in {**family.sources, "family.yaml": content}.items():
            (folder / file).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be written: {error.strerror}") from None
    return Exported(
        str(folder), {name: Path(file).parent.name for name, file in sorted(family.files.items())}
    )


def _yaml(name: str, family: Family, layers: dict[Path, FamilyFile]) -> str:
    base = [name] if name and name != GENERIC else next(iter(layers.values())).base
    own = [prompt for name, prompt in sorted(PROMPTS.items()) if f"{name}.jinja" in family.sources]
    forms = {prompt.name: family.form(prompt) for prompt in own}
    examples = {  # of each prompt, from the first family that has any
        prompt: [example.model_dump(mode="json") for example in of_prompt]
        for file in reversed(layers.values())
        for prompt, of_prompt in file.examples.items()
    }
    content = {
        **({"base": [*base]} if base else {}),
        "wording": family.wording,
        "settings": dict(family.settings),
        "judging": dict(family.judging),
        "reply_tokens": {prompt.name: family.max_reply_tokens(prompt) for prompt in own},
        "forms": {name: form for name, form in forms.items() if form is not None},
        "refusals": {name: own.model_dump(mode="json") for name, own in family.refusals.items()},
        "examples": examples,
    }
    written = yaml.dump(
        content, Dumper=_OneLine, width=math.inf, allow_unicode=True, sort_keys=False
    )
    comments: dict[str, str] = {}
    for layer in (layer for layer in reversed(layers) if (layer / "family.yaml").is_file()):
        comments |= _COMMENT.findall(text_of(layer / "family.yaml"))
    shown = {key: f"  # {comments[key]}" for key in family.settings if key in comments}
    origin = name or " ".join(family.folder.split())
    commented = _KEY.sub(lambda line: line[0] + shown.get(line[1], ""), written)
    return f"# A copy of {origin}, with all that it inherits.\n{commented}"
