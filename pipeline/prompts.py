"""Prompt families: a folder of templates and a `family.yaml`. Knows nothing of their meaning."""

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypedDict

import jinja2
from jinja2.meta import find_referenced_templates
from jinja2.sandbox import SandboxedEnvironment

from pipeline.errors import UsageError
from pipeline.settings import CONF


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

    What the folder lacks is taken from `generic`: the folder beside it, else the shipped one.
    """

    def __init__(self, folder: Path) -> None:
        """Raises UsageError where the folder has no `family.yaml` or a template is malformed."""
        if not (folder / "family.yaml").is_file():
            raise UsageError(f"{folder}: no family.yaml there; name a folder of prompts")
        self.name = folder.name
        self.folder = folder
        self._environment = SandboxedEnvironment(
            loader=jinja2.FileSystemLoader(
                [folder, folder.parent / "generic", CONF / "prompts" / "generic"]
            ),
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def render(self, fields: Fields) -> tuple[Message, ...]:
        """The messages for `fields`. Raises UsageError where the template uses another name."""
        name = f"{fields.prompt}.jinja"
        values = {f.name: getattr(fields, f.name) for f in dataclasses.fields(fields)}
        try:
            content = self._template(name).render(values)
        except jinja2.TemplateError as error:
            raise UsageError(f"{self._file(name)}: {error}") from error
        return ({"role": "user", "content": content},)

    def sha(self, prompt: str) -> str:
        """8 hex of the sha256 of the prompt's template and of every template it draws in."""
        names = sorted(self._drawn_in(f"{prompt}.jinja", {}))
        sources = [self._file(name).read_bytes() for name in names]
        return hashlib.sha256(b"\0".join(sources)).hexdigest()[:8]

    def shas(self, prompts: tuple[str, ...]) -> Mapping[str, str]:
        return {prompt: self.sha(prompt) for prompt in prompts}

    def _drawn_in(self, name: str, found: dict[str, None]) -> dict[str, None]:
        """The names of a template and of all it imports, includes or extends, and so on."""
        if name not in found:
            found[name] = None
            for other in self._referenced(name):
                if other is None:
                    raise UsageError(f"{self._file(name)}: draws in a computed name; write it out")
                self._drawn_in(other, found)
        return found

    def _referenced(self, name: str) -> tuple[str | None, ...]:
        file = self._file(name)
        with self._found(name):
            return _referenced(file.read_text(encoding="utf-8"), str(file))

    def _file(self, name: str) -> Path:
        loader = self._environment.loader
        assert loader
        with self._found(name):
            return Path(str(loader.get_source(self._environment, name)[1]))

    def _template(self, name: str) -> Any:
        with self._found(name):
            return self._environment.get_template(name)

    @contextmanager
    def _found(self, name: str) -> Iterator[None]:
        """UsageError where a template is not there or malformed."""
        try:
            yield
        except jinja2.TemplateNotFound:
            raise UsageError(f"{self.folder}: no template {name}; add it") from None
        except jinja2.TemplateSyntaxError as error:
            raise UsageError(f"{error.filename}:{error.lineno}: {error.message}") from None


@cache
def _referenced(source: str, file: str) -> tuple[str | None, ...]:
    """The templates a source draws in; null for a computed name. A run asks for a hundred steps."""
    tree = SandboxedEnvironment().parse(source, filename=file)
    return tuple(find_referenced_templates(tree))
