"""A prompt family: a folder of templates with a `family.yaml`. Independent of the meaning of
prompts.

Templates and settings that the folder lacks come from its bases, then from `generic`: first the
folder of that name beside it, then a plugin's, then the shipped one. A `Family` is self-contained:
workers on other machines receive one and read no files.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import jinja2
from jinja2.meta import find_referenced_templates
from jinja2.sandbox import SandboxedEnvironment
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, field_validator

from pipeline.core.errors import UsageError
from pipeline.core.prompts import PROMPTS, Constraint, Message, Prompt, Refusals, rendered_values
from pipeline.core.registry import hint
from pipeline.core.reply_forms import plain_text, read_reply
from pipeline.core.settings import read_yaml, sha, text_of

GENERIC = "generic"
_Name = Annotated[str, Field(max_length=63)]  # at most 255 bytes, as a folder's must be


class Example(BaseModel):
    """A reply, and the value that its prompt's parser must read from it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    reply: str
    reads: int | str | tuple[int | str | tuple[str, ...], ...] | None

    @field_validator("reads", mode="before")
    @classmethod
    def _no_bool(cls, reads: object) -> object:
        if isinstance(reads, bool):
            raise ValueError("YAML reads yes and no as booleans; put them in quotes")
        return reads


class FamilyFile(BaseModel):
    """The content of a `family.yaml`. A missing key is taken from the first base that has it, then
    from generic, or else from the prompt's module."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    base: tuple[_Name, ...] = ()  # families whose parts it takes before generic's, in order
    wording: Literal["ours", "authors"] | None = None  # whose words the templates are in
    settings: dict[str, Any] = {}  # values of stages' settings, by their names
    judging: dict[str, dict[str, Any] | None] | None = None  # stages that follow every method
    reply_tokens: dict[str, PositiveInt] = {}  # budgets, by prompt
    forms: dict[str, str] = {}  # of constrained replies, by prompt; {} stands for the value
    refusals: dict[str, Refusals] = {}  # words of replies that refuse, by prompt
    known_answers: dict[str, tuple[str, ...]] = {}  # words that audits of raters make answers of
    examples: dict[str, tuple[Example, ...]] = {}  # by prompt: `gistmill prompts check`

    @field_validator("base", mode="before")
    @classmethod
    def _one_is_a_list(cls, base: object) -> object:
        return [base] if isinstance(base, str) else base

    def wrong_prompts(self) -> Iterator[str]:
        """One line per key that names no prompt, and per form that cannot be used."""
        for key in ("reply_tokens", "forms", "refusals", "examples"):
            for name in getattr(self, key):
                if name not in PROMPTS:
                    yield f"{key}.{name}: no such prompt; {hint(name, sorted(PROMPTS))}"
        for name, form in self.forms.items():
            if form.count("{}") != 1:
                yield f"forms.{name}: write {{}} once, where the value goes"
            elif name in PROMPTS and PROMPTS[name].form is None:
                yield f"forms.{name}: replies to this prompt are free text; remove the form"


def family_layers(folder: Path, roots: Sequence[Path]) -> dict[Path, FamilyFile]:
    """The folders that a family is read from, with their family.yaml, in order of precedence: the
    family; its bases in the order named, each followed by its own bases; then every `generic`,
    first the one beside the family, then those in `roots` (folders of families).

    Raises UsageError if the folder is no family, or a base is unknown or its own base.
    """
    if not (folder / "family.yaml").is_file():
        raise UsageError(f"{folder}: no family.yaml there; name a folder of prompts")
    layers = dict(_with_bases(folder, roots))
    for path in (root / GENERIC for root in (folder.parent, *roots)):
        if path.is_dir() and path not in layers:
            has_file = (path / "family.yaml").is_file()
            layers[path] = read_family_file(path) if has_file else FamilyFile()
    return layers


def _with_bases(
    folder: Path, roots: Sequence[Path], above: tuple[Path, ...] = ()
) -> Iterator[tuple[Path, FamilyFile]]:
    if folder in above:
        names = " -> ".join(path.name for path in (*above[above.index(folder) :], folder))
        raise UsageError(f"{folder / 'family.yaml'}: base: {names} is a circle; remove one of them")
    file = read_family_file(folder)
    yield folder, file
    for name in file.base:
        yield from _with_bases(_base(folder, name, roots), roots, (*above, folder))


def _base(folder: Path, name: str, roots: Sequence[Path]) -> Path:
    """The family `name` beside `folder`, or else in `roots`; `folder` itself comes last."""
    named = [root / name for root in (folder.parent, *roots)]
    families = [path for path in named if (path / "family.yaml").is_file()]
    if not families:
        names = ", ".join(_names(roots))
        raise UsageError(f"{folder / 'family.yaml'}: base: no family {name!r}; there are {names}")
    return min(families, key=lambda path: path == folder)


def read_family_file(folder: Path) -> FamilyFile:
    """`family.yaml` in a folder. Raises UsageError naming the file and the key that is wrong."""
    path = folder / "family.yaml"
    file = read_yaml(path, FamilyFile, unchecked=frozenset({"examples"}))
    for line in file.wrong_prompts():
        raise UsageError(f"{path}: {line}")
    return file


T = TypeVar("T")
# Errors that an expression in a template may raise; the sandbox's own is a TemplateError.
_TEMPLATE_ERRORS = (
    jinja2.TemplateError, ArithmeticError, AttributeError, LookupError, MemoryError,
    RecursionError, TypeError, ValueError,
)  # fmt: skip
_NO_REPLY = "These words are no reply."
_VALUE_ALONE = re.compile(r"[<(\[{\d]|\S+(?:\s+\S+){0,2}\Z")  # a line of a value, or of three words


def _is_example(value: object) -> bool:
    """True for a value that depends on the question: a number, or a list that is not empty."""
    if isinstance(value, tuple):
        return any(part or part == 0 for part in value)
    return value is not None and not isinstance(value, str)


def _compared(text: str) -> str:
    return " ".join(plain_text(text).casefold().split())


@dataclass(frozen=True)
class Family:
    """A resolved family. `sources`: its templates by file name; `files`: the path of each.

    `own_refusals`: its words of refusals if they differ from the shipped ones, for the hash of
    steps. `known_answers`: the words that audits use as answers, by kind; no step depends on them.
    """

    name: str
    folder: str
    wording: str
    settings: Mapping[str, Any]
    judging: Mapping[str, Mapping[str, Any]]
    reply_tokens: Mapping[str, int]
    forms: Mapping[str, str]
    refusals: Mapping[str, Refusals]
    own_refusals: Mapping[str, Any]
    known_answers: Mapping[str, tuple[str, ...]]
    sources: Mapping[str, str]
    files: Mapping[str, str]

    def render(self, prompt: Prompt[Any]) -> tuple[Message, ...]:
        """The messages of `prompt`: the user's message, after those of its conversation so far.

        Raises UsageError if the template is missing, malformed, fails, or uses a name that is no
        field of the prompt. Templates are rendered in Jinja's sandbox.
        """
        values = {field.name: getattr(prompt, field.name) for field in fields(prompt)}
        values["max_reply_tokens"] = self.max_reply_tokens(type(prompt))  # a template may state it
        file = f"{prompt.name}.jinja"
        with self._found(file):
            template = self._environment.get_template(file)
        try:
            content = template.render(values)
        except _TEMPLATE_ERRORS as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise UsageError(f"{self.files[file]}: {why}") from error
        return (*self._earlier(prompt), {"role": "user", "content": content})

    def _earlier(self, prompt: Prompt[Any]) -> tuple[Message, ...]:
        """The messages before a follow-up. The earlier reply is its value in the family's form, so
        the messages do not depend on a model's reasons for it."""
        if (before := prompt.earlier()) is None:
            return ()
        earlier, value = before
        reply = (self.form(type(earlier)) or "{}").replace("{}", value)
        return (*self.render(earlier), {"role": "assistant", "content": reply})

    def max_reply_tokens(self, prompt: type[Prompt[Any]]) -> int:
        """The reply budget of a prompt, in the engine's tokens."""
        return self.reply_tokens.get(prompt.name, prompt.max_reply_tokens)

    def form(self, prompt: type[Prompt[Any]]) -> str | None:
        """The form of a constrained reply; None if replies to the prompt are free text."""
        return self.forms.get(prompt.name, prompt.form)

    def read(self, prompt: Prompt[T], reply: str, is_cut: bool) -> T | None:
        form, refusals = self.form(type(prompt)), self.refusals.get(prompt.name)
        return read_reply(prompt, form, reply, is_cut, refusals)

    def examples(self, prompt: type[Prompt[Any]]) -> tuple[str, ...]:
        """Lines of the rendered samples that are replies to the prompt, such as `Answer: (C)`:
        models repeat them. Left out are lines with a value of the sample, replies that are free
        text, and fixed replies that every prompt shows, such as yes and STOP."""
        examples: dict[str, None] = {}
        for sample in prompt.samples():
            if self.read(sample, _NO_REPLY, is_cut=False) is not None:  # the prompt reads any text
                continue
            values = list(filter(None, rendered_values(sample)))
            for line in self._reply_like_lines(sample):
                is_of_sample = any(value in line or line in value for value in values)
                if not is_of_sample and _is_example(self.read(sample, line, is_cut=False)):
                    examples[line] = None
        return (*examples,)

    def _reply_like_lines(self, sample: Prompt[Any]) -> Iterator[str]:
        """Lines that begin like replies; other lines are instructions, which may mention one."""
        lead = _compared((self.form(type(sample)) or "{}").partition("{}")[0])
        with suppress(UsageError):  # `prompts check` reports templates that fail
            text = "\n".join(message["content"] for message in self.render(sample))
            for line in filter(None, map(str.strip, text.splitlines())):
                if (lead and _compared(line).startswith(lead)) or _VALUE_ALONE.match(line):
                    yield line

    def is_example(self, prompt: type[Prompt[Any]], reply: str) -> bool:
        """True if the reply, or its first line, is an example that the prompt shows, ignoring case,
        white space and signs such as quotes."""
        if prompt.name not in self._examples:
            self._examples[prompt.name] = frozenset(map(_compared, self.examples(prompt)))
        texts = (reply, reply.strip().partition("\n")[0])
        return not self._examples[prompt.name].isdisjoint(map(_compared, texts))

    @cached_property
    def _examples(self) -> dict[str, frozenset[str]]:
        return {}

    def constraint(self, prompt: Prompt[Any]) -> Constraint | None:
        """The legal replies in the family's form; None if replies are free text."""
        form = self.form(type(prompt))
        return None if form is None else prompt.legal(form)

    def sha(self, prompt: type[Prompt[Any]]) -> str:
        """8 hex of the sha256 of the prompt's template and of every template it includes."""
        names = sorted(self._included(f"{prompt.name}.jinja", {}))
        texts = [self.sources[name].encode() for name in names]
        return hashlib.sha256(b"\0".join(texts)).hexdigest()[:8]

    def _included(self, name: str, found: dict[str, None]) -> dict[str, None]:
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
            **({"refusals": sha(self.own_refusals, 8)} if self.own_refusals else {}),
        }


def find_family(name: str, roots: Sequence[Path], key: str = "") -> Path:
    """The folder of a family: a name in one of `roots`, or a path. `key`: the config key that names
    it. Raises UsageError if there is none, or two of the name."""
    named = [root / name for root in roots if (root / name / "family.yaml").is_file()]
    if len(named) > 1:
        raise UsageError(
            f"{named[0]}: a family {name} exists already, {named[1]}; give it another name"
        )
    folder = named[0] if named else Path(name)
    if not folder.is_dir():
        word = f"{key}={name}" if key else name
        raise UsageError(f"{word}: no such family or folder; {hint(name, _names(roots))}")
    return folder


def _names(roots: Sequence[Path]) -> list[str]:
    return sorted({file.parent.name for root in roots for file in root.glob("*/family.yaml")})


def load_family(
    folder: Path, roots: Sequence[Path], reply_tokens: Mapping[str, int] | None = None
) -> Family:
    """The family in `folder`, completed from its bases and from each `generic`, beside it and in
    `roots`.

    `roots`: folders of families, in order of precedence. `reply_tokens` overrides reply budgets by
    prompt. Raises UsageError naming the file and the wrong key.
    """
    _refuse_shadows(roots)
    layers = family_layers(folder, roots)
    files = list(layers.values())
    templates = {
        t.name: t for layer in reversed(list(layers)) for t in sorted(layer.glob("*.jinja"))
    }
    refusals, shipped = _merged([f.refusals for f in files]), files[-1].refusals
    return Family(
        name=folder.name,
        folder=str(folder),
        wording=next((f.wording for f in files if f.wording), "ours"),
        settings=_merged([f.settings for f in files]),
        judging={k: v or {} for k, v in next((f.judging for f in files if f.judging), {}).items()},
        reply_tokens=_merged([reply_tokens or {}, *(f.reply_tokens for f in files)]),
        forms=_merged([f.forms for f in files]),
        refusals=refusals,
        own_refusals={k: v.model_dump() for k, v in refusals.items() if shipped.get(k) != v},
        known_answers=_merged([f.known_answers for f in files]),
        sources={name: text_of(path) for name, path in templates.items()},
        files={name: str(path) for name, path in templates.items()},
    )


def _merged(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge the mappings, keys sorted; of several values for a key, the first counts."""
    merged = {key: value for layer in reversed(layers) for key, value in layer.items()}
    return dict(sorted(merged.items()))


def _refuse_shadows(roots: Sequence[Path]) -> None:
    """Raise UsageError where two `generic` families have a template of the same name."""
    first: dict[str, Path] = {}
    for template in (t for root in roots for t in sorted((root / GENERIC).glob("*.jinja"))):
        other = first.setdefault(template.name, template)
        if other != template:
            raise UsageError(
                f"{other}: a template of that name exists already, {template}; put it in a "
                "family of its own"
            )


@cache
def _referenced(source: str, file: str) -> tuple[str | None, ...]:
    """The templates that a source includes; None for a computed name. Cached, as many steps ask."""
    tree = SandboxedEnvironment().parse(source, filename=file)
    return tuple(find_referenced_templates(tree))
