"""Copy a prompt family, with all it inherits, into one folder that a user can read and change."""

import math
import re
from pathlib import Path
from typing import Any

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


def export_family(name: str, folder: Path, plugins: str | None) -> dict[str, Any]:
    """Copy a family, with all that it inherits, to a new folder; returns `folder` and `templates`
    (file name -> the family that it came from). Steps made with the copy have the same names.

    `name`: a shipped or a plugin's family, or a folder. Raises UsageError if there is none, or
    `folder` has files.
    """
    roots = [conf / "prompts" for conf in conf_folders(plugins)]
    source = find_family(name, roots)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: is there already and not empty; name a new folder")
    layers, family = family_layers(source, roots), load_family(source, roots)
    content = _yaml(source.name if source.parent in roots else "", family, layers)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in {**family.sources, "family.yaml": content}.items():
            (folder / file).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be written: {error.strerror}") from None
    origins = {file: Path(path).parent.name for file, path in sorted(family.files.items())}
    return {"folder": str(folder), "templates": origins}


def _yaml(name: str, family: Family, layers: dict[Path, FamilyFile]) -> str:
    base = [name] if name and name != GENERIC else next(iter(layers.values())).base
    prompts = [p for name, p in sorted(PROMPTS.items()) if f"{name}.jinja" in family.sources]
    forms = {prompt.name: family.form(prompt) for prompt in prompts}
    examples, comments = (
        {},
        dict[str, str](),
    )  # of each prompt or setting, from the first that has any
    for layer, file in reversed(layers.items()):
        for prompt, of_prompt in file.examples.items():
            examples[prompt] = [example.model_dump(mode="json") for example in of_prompt]
        if (layer / "family.yaml").is_file():
            comments |= _COMMENT.findall(text_of(layer / "family.yaml"))
    content = {
        **({"base": [*base]} if base else {}),
        "wording": family.wording,
        "settings": dict(family.settings),
        "judging": dict(family.judging),
        "reply_tokens": {prompt.name: family.max_reply_tokens(prompt) for prompt in prompts},
        "forms": {name: form for name, form in forms.items() if form is not None},
        "refusals": {
            name: words.model_dump(mode="json") for name, words in family.refusals.items()
        },
        "examples": examples,
    }
    written = yaml.dump(
        content, Dumper=_OneLine, width=math.inf, allow_unicode=True, sort_keys=False
    )
    shown = {key: f"  # {comments[key]}" for key in family.settings if key in comments}
    origin = name or " ".join(family.folder.split())
    commented = _KEY.sub(lambda line: line[0] + shown.get(line[1], ""), written)
    return f"# A copy of {origin}, with all that it inherits.\n{commented}"
