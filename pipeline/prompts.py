"""Prompt families: a folder of templates and a `family.yaml`. Knows nothing of their meaning."""

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypedDict

import jinja2
from jinja2.sandbox import SandboxedEnvironment

from pipeline.errors import UsageError


class Message(TypedDict):
    """One chat message."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Fields:
    """The values of one prompt. Each prompt has one subclass, `prompt` is its name."""

    prompt: ClassVar[str]


class Family:
    """The templates of one family folder, each `<prompt>.jinja` rendered to one user message.

    A prompt the folder lacks is taken from `generic`, the folder beside it.
    """

    def __init__(self, folder: Path) -> None:
        """Raises UsageError where the folder has no `family.yaml` or a template is malformed."""
        if not (folder / "family.yaml").is_file():
            raise UsageError(f"{folder}: no family.yaml there; name a folder of prompts")
        self.name = folder.name
        self.folder = folder
        self._environment = SandboxedEnvironment(
            loader=jinja2.FileSystemLoader([folder, folder.parent / "generic"]),
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def render(self, fields: Fields) -> tuple[Message, ...]:
        """The messages for `fields`. Raises UsageError where the template uses another name."""
        values = {f.name: getattr(fields, f.name) for f in dataclasses.fields(fields)}
        try:
            content = self._template(fields.prompt).render(values)
        except jinja2.TemplateError as error:
            raise UsageError(f"{self._file(fields.prompt)}: {error}") from error
        return ({"role": "user", "content": content},)

    def sha(self, prompt: str) -> str:
        """8 hex of the sha256 of the prompt's template text, shared parts included."""
        sources = [self._file(prompt).read_bytes()]
        sources += [f.read_bytes() for f in self._shared_files()]
        return hashlib.sha256(b"\0".join(sources)).hexdigest()[:8]

    def shas(self, prompts: tuple[str, ...]) -> Mapping[str, str]:
        return {prompt: self.sha(prompt) for prompt in prompts}

    def _shared_files(self) -> list[Path]:
        folders = (self.folder.parent / "generic", self.folder)  # a part of its own comes first
        found = {file.name: file for folder in folders for file in folder.glob("_*.jinja")}
        return [found[name] for name in sorted(found)]

    def _file(self, prompt: str) -> Path:
        return Path(str(self._template(prompt).filename))

    def _template(self, prompt: str) -> Any:
        try:
            return self._environment.get_template(f"{prompt}.jinja")
        except jinja2.TemplateNotFound:
            raise UsageError(f"{self.folder}: no template {prompt}.jinja; add it") from None
        except jinja2.TemplateSyntaxError as error:
            raise UsageError(f"{error.filename}:{error.lineno}: {error.message}") from None
