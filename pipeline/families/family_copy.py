"""Copy a prompt family, with all it inherits, into one folder that a user can read and change."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pipeline.core.errors import UsageError
from pipeline.core.plugins import conf_folders
from pipeline.core.prompts import PROMPTS
from pipeline.families.family import find_family, load_family
from pipeline.families.family_file import GENERIC, FamilyFile, family_layers, text_of

_COMMENT = re.compile(r"^  (\w+):.*?\s#\s+(.+)$", re.MULTILINE)  # of a setting, on its line


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
    """The copy of a family. `templates`: by file name, the family that each came from."""

    folder: str
    templates: Mapping[str, str]


def export_family(name: str, folder: Path, plugins: str | None) -> Exported:
    """Copy a family, with all that it inherits, to a new folder.

    The copy renders the same texts, so steps made with it have the same names. `name`: of a shipped
    family or a plugin's, or a folder. Raises UsageError where there is none, or `folder` has files.
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


def _yaml(name: str, family: Any, layers: Mapping[Path, FamilyFile]) -> str:
    """The family.yaml of the copy: every value, with the comment that explains it."""
    base = [name] if name and name != GENERIC else next(iter(layers.values())).base
    origin = name or " ".join(family.folder.split())
    parts = [f"# A copy of {origin}, with all that it inherits."]
    if base:
        parts.append(f"base: {_line([*base])}  # where what you delete here comes from")
    parts.append(f"wording: {family.wording}")
    parts += ["settings:", *_settings(family.settings, layers)]
    parts += ["judging:", *(f"  {stage}: {_line(kind)}" for stage, kind in family.judging.items())]
    own = [prompt for name, prompt in sorted(PROMPTS.items()) if f"{name}.jinja" in family.sources]
    budgets = [f"  {prompt.name}: {family.max_reply_tokens(prompt)}" for prompt in own]
    parts += ["reply_tokens:  # in the engine's tokens", *budgets]
    forms = {prompt.name: family.form(prompt) for prompt in own}
    parts += ["forms:  # of constrained replies; {} stands for the value"]
    parts += [f"  {name}: {_line(form)}" for name, form in forms.items() if form is not None]
    parts += ["refusals:  # words of replies that refuse, by prompt", *_refusals(family)]
    return "\n".join([*parts, *_examples(layers), ""])


def _refusals(family: Any) -> Iterator[str]:
    for prompt, words in family.refusals.items():
        yield f"  {prompt}:"
        yield from (
            f"    {key}: {_line(value)}" for key, value in words.model_dump(mode="json").items()
        )


def _settings(settings: Mapping[str, Any], layers: Mapping[Path, FamilyFile]) -> Iterator[str]:
    comments: dict[str, str] = {}
    for layer in layers:
        if (layer / "family.yaml").is_file():
            for key, comment in _COMMENT.findall(text_of(layer / "family.yaml")):
                comments.setdefault(key, comment)
    for key, value in settings.items():
        comment = f"  # {comments[key]}" if key in comments else ""
        yield f"  {key}: {_line(value)}{comment}"


def _examples(layers: Mapping[Path, FamilyFile]) -> Iterator[str]:
    """The example replies of every prompt, from the first family that has any."""
    found: dict[str, Any] = {}
    for file in layers.values():
        for prompt, examples in file.examples.items():
            found.setdefault(prompt, examples)
    if found:
        yield "examples:  # of replies, and the values to read in them: `gistmill prompts check`"
    for prompt, examples in found.items():
        yield f"  {prompt}:"
        yield from (f"    - {_line(example.model_dump(mode='json'))}" for example in examples)


def _line(value: Any) -> str:
    """A value as YAML on one line."""
    dumped = yaml.dump(
        value, Dumper=_OneLine, default_flow_style=True, width=math.inf, allow_unicode=True,
        sort_keys=False,
    )  # fmt: skip
    return str(dumped).removesuffix("\n").removesuffix("\n...")
