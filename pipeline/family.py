"""A prompt family: a folder of templates with a `family.yaml`. Knows nothing of their meaning.

Templates and settings that the folder lacks come from `generic`: first the folder of that name
beside it, then a plugin's, then the shipped one. A `Family` is self-contained, so workers on other
machines receive one and read no files.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import jinja2
import yaml
from jinja2.meta import find_referenced_templates
from jinja2.sandbox import SandboxedEnvironment
from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError, field_validator

from pipeline.errors import UsageError
from pipeline.prompts import PROMPTS, Message, Prompt
from pipeline.settings import sha

_GENERIC = "generic"
# Keys of family.yaml in the layout before `settings`, and what replaced them.
_OLD_KEYS = {"words": "`words` is `wording` now", "pagination": "`uniform_words` is `words` now"}
_OLD_SETTINGS = ("first_page", "pagination", "answer_each_look_up", "answer_words",
                 "constant_answer", "metrics", "judged")  # fmt: skip


class Example(BaseModel):
    """A reply and the value that its prompt's parser must read from it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    reply: str
    reads: int | str | tuple[int | str, ...] | None

    @field_validator("reads", mode="before")
    @classmethod
    def _no_bool(cls, reads: object) -> object:
        if isinstance(reads, bool):
            raise ValueError("YAML reads yes and no as booleans; put them in quotes")
        return reads


class FamilyFile(BaseModel):
    """A `family.yaml`. A key left out is taken from generic, or else from the prompt's module."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    wording: Literal["ours", "authors"] | None = None  # who wrote the templates
    settings: dict[str, Any] = {}  # defaults of stages' settings, by name
    judging: dict[str, dict[str, Any] | None] | None = None  # stages that follow every method
    reply_tokens: dict[str, PositiveInt] = {}  # reply budgets, by prompt
    forms: dict[str, str] = {}  # of constrained replies, by prompt; {} stands for the value
    examples: dict[str, tuple[Example, ...]] = {}  # by prompt, for `gistmill prompts check`

    def wrong_prompts(self) -> Iterator[str]:
        """One line per key that names no prompt, and per form that cannot be used."""
        for key in ("reply_tokens", "forms", "examples"):
            for name in getattr(self, key):
                if name not in PROMPTS:
                    yield f"{key}.{name}: no such prompt; there are {', '.join(sorted(PROMPTS))}"
        for name, form in self.forms.items():
            if form.count("{}") != 1:
                yield f"forms.{name}: write {{}} once, where the value goes"
            elif name in PROMPTS and PROMPTS[name].form is None:
                yield f"forms.{name}: replies to this prompt are free text; remove the form"


@dataclass(frozen=True)
class Family:
    """A resolved family. `sources`: its templates by file name; `files`: the path of each."""

    name: str
    folder: str
    wording: str
    settings: Mapping[str, Any]
    judging: Mapping[str, Mapping[str, Any]]
    reply_tokens: Mapping[str, int]
    forms: Mapping[str, str]
    sources: Mapping[str, str]
    files: Mapping[str, str]

    def render(self, prompt: Prompt[Any]) -> tuple[Message, ...]:
        """The messages of `prompt`: a single user message.

        Raises UsageError where the template is missing, malformed or uses a name that is no field
        of the prompt.
        """
        values = {field.name: getattr(prompt, field.name) for field in fields(prompt)}
        file = f"{prompt.name}.jinja"
        with self._found(file):
            template = self._environment.get_template(file)
        try:
            content = template.render(values)
        except jinja2.TemplateError as error:
            raise UsageError(f"{self.files[file]}: {error}") from error
        return ({"role": "user", "content": content},)

    def max_reply_tokens(self, prompt: type[Prompt[Any]]) -> int:
        """The reply budget of a prompt, in the engine's tokens."""
        return self.reply_tokens.get(prompt.name, prompt.max_reply_tokens)

    def form(self, prompt: type[Prompt[Any]]) -> str | None:
        """The form of a constrained reply; null where replies to the prompt are free text."""
        return self.forms.get(prompt.name, prompt.form)

    def sha(self, prompt: type[Prompt[Any]]) -> str:
        """8 hex of the sha256 of the prompt's template and of every template it includes."""
        names = sorted(self._included(f"{prompt.name}.jinja", {}))
        texts = [self.sources[name].encode() for name in names]
        return hashlib.sha256(b"\0".join(texts)).hexdigest()[:8]

    def _included(self, name: str, found: dict[str, None]) -> dict[str, None]:
        """The names of a template and of all it imports, includes or extends, recursively."""
        if name not in found:
            found[name] = None
            with self._found(name):
                if name not in self.sources:
                    raise jinja2.TemplateNotFound(name)
                referenced = _referenced(self.sources[name], self.files[name])
            for other in referenced:
                if other is None:
                    raise UsageError(
                        f"{self.files[name]}: includes a computed name; write the name out"
                    )
                self._included(other, found)
        return found

    @cached_property
    def _environment(self) -> SandboxedEnvironment:
        return SandboxedEnvironment(
            loader=jinja2.DictLoader(dict(self.sources)),
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    @contextmanager
    def _found(self, file: str) -> Iterator[None]:
        """Turn jinja's errors for missing and malformed templates into UsageError."""
        try:
            yield
        except jinja2.TemplateNotFound as error:
            raise UsageError(f"{self.folder}: no template {error.name}; add it") from None
        except jinja2.TemplateSyntaxError as error:
            place = self.files.get(error.name or file, error.filename or file)
            raise UsageError(f"{place}:{error.lineno}: {error.message}") from None

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)

    def hashed(self) -> dict[str, Any]:
        """The family's settings, budgets and templates for a run's name, as JSON with hashes."""
        return {
            "name": self.name,
            "settings": sha([self.settings, self.judging], 8),
            "reply_tokens": dict(self.reply_tokens),  # not hashed: commands may override them
            "templates": {name: sha(text, 8) for name, text in sorted(self.sources.items())},
        }


def load_family(
    folder: Path, roots: Sequence[Path], reply_tokens: Mapping[str, int] | None = None
) -> Family:
    """The family in `folder`, completed from the `generic` family beside it and in `roots`.

    `roots`: folders of families, in order of precedence. `reply_tokens` overrides reply budgets by
    prompt. Raises UsageError naming the file and the wrong key, or what to change in a family of an
    earlier layout.
    """
    _refuse_shadows(roots)
    generic = [root / _GENERIC for root in (folder.parent, *roots)]
    layers = list(dict.fromkeys([folder, *(path for path in generic if path.is_dir())]))
    files = [read_family_file(layer) for layer in layers if (layer / "family.yaml").is_file()]
    if not (folder / "family.yaml").is_file():
        raise UsageError(f"{folder}: no family.yaml there; name a folder of prompts")
    templates = {t.name: t for layer in reversed(layers) for t in sorted(layer.glob("*.jinja"))}
    return Family(
        name=folder.name,
        folder=str(folder),
        wording=next((f.wording for f in files if f.wording), "ours"),
        settings=_merged([f.settings for f in files]),
        judging={k: v or {} for k, v in next((f.judging for f in files if f.judging), {}).items()},
        reply_tokens=_merged([reply_tokens or {}, *(f.reply_tokens for f in files)]),
        forms=_merged([f.forms for f in files]),
        sources={name: _text(path) for name, path in templates.items()},
        files={name: str(path) for name, path in templates.items()},
    )


def _merged(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All keys, sorted; the first layer that has one wins."""
    found = {key: value for layer in reversed(layers) for key, value in layer.items()}
    return dict(sorted(found.items()))


def read_family_file(folder: Path) -> FamilyFile:
    """`family.yaml` in a folder. Raises UsageError naming the file and the wrong key."""
    path = folder / "family.yaml"
    try:
        content = yaml.safe_load(_text(path)) or {}
        _refuse_old_layout(path, content)
        file = FamilyFile.model_validate(content)
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UsageError(f"{path}: {key}: {first['msg'].removeprefix('Value error, ')}") from error
    for line in file.wrong_prompts():
        raise UsageError(f"{path}: {line}")
    return file


def _refuse_old_layout(path: Path, content: Any) -> None:
    """Raise UsageError with what to change, for a file with keys of an earlier version."""
    keys = set(content) if isinstance(content, dict) else set()
    changes = [line for key, line in _OLD_KEYS.items() if key in keys]
    moved = [key for key in _OLD_SETTINGS if key in keys]
    if moved:
        changes.append(f"what is in {', '.join(moved)} belongs under `settings`")
    if changes:
        raise UsageError(
            f"{path}: the layout of an earlier version: {'; '.join(changes)}; `reply_tokens` and "
            "`forms` are by prompt (compare conf/prompts/generic/family.yaml)"
        )


def _refuse_shadows(roots: Sequence[Path]) -> None:
    """Raise UsageError where two `generic` families have a template of the same name."""
    found: dict[str, Path] = {}
    for template in (t for root in roots for t in sorted((root / _GENERIC).glob("*.jinja"))):
        other = found.setdefault(template.name, template)
        if other != template:
            raise UsageError(
                f"{other}: a template of that name exists already, {template}; put it in a "
                "family of its own"
            )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 ({error.reason}); save it as UTF-8") from error


@cache
def _referenced(source: str, file: str) -> tuple[str | None, ...]:
    """The templates that a source includes; null for a computed name. Cached: many steps ask."""
    tree = SandboxedEnvironment().parse(source, filename=file)
    return tuple(find_referenced_templates(tree))
