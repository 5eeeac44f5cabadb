"""A prompt family: a folder of templates with a `family.yaml`.

Templates and settings that the folder lacks come from its bases, then from `generic`: first the
folder of that name beside it, then a plugin's, then the shipped one. A `Family` is self-contained:
workers on other machines receive one and read no files.
"""

import hashlib
import math
import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import jinja2
import yaml
from jinja2 import nodes
from jinja2.meta import find_referenced_templates, find_undeclared_variables
from jinja2.sandbox import SandboxedEnvironment
from pydantic import BaseModel, ConfigDict, PositiveInt, StrictInt, field_validator

from pipeline.core.errors import UsageError
from pipeline.core.prompts import PROMPTS, Constraint, Message, Prompt, Refusals, rendered_values
from pipeline.core.registry import conf_folders, hint
from pipeline.core.reply_forms import plain_text, read_reply
from pipeline.core.settings import read_yaml, sha, text_of

T = TypeVar("T")
GENERIC = "generic"
# Errors that an expression in a template may raise; the sandbox's own is a TemplateError.
_TEMPLATE_ERRORS = (
    jinja2.TemplateError, ArithmeticError, AttributeError, LookupError, MemoryError,
    RecursionError, TypeError, ValueError,
)  # fmt: skip
_VALUE_ALONE = re.compile(r"[<(\[{\d]|\S+(?:\s+\S+){0,2}\Z")  # a line of a value, or of three words


class Example(BaseModel):
    """A reply, and the value that its prompt's parser must read from it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    reply: str
    # Strict: YAML reads yes and no as booleans, unless they are in quotes.
    reads: StrictInt | str | tuple[StrictInt | str | tuple[str, ...], ...] | None


class FamilyFile(BaseModel):
    """The content of a `family.yaml`. A missing key is taken from the first base that has it, then
    from generic, or else from the prompt's module."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    base: tuple[str, ...] = ()  # families whose parts it takes before generic's, in order
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


def read_family_file(folder: Path) -> FamilyFile:
    """`family.yaml` in a folder. Raises UsageError naming the file and the key that is wrong."""
    path = folder / "family.yaml"
    file = read_yaml(path, FamilyFile)
    for key in ("reply_tokens", "forms", "refusals", "examples"):
        for name in getattr(file, key):
            if name not in PROMPTS:
                near = hint(name, sorted(PROMPTS))
                raise UsageError(f"{path}: {key}.{name}: no such prompt; {near}")
    for name, form in file.forms.items():
        if form.count("{}") != 1:
            raise UsageError(f"{path}: forms.{name}: write {{}} once, where the value goes")
        if PROMPTS[name].form is None:
            raise UsageError(f"{path}: forms.{name}: replies are free text; remove the form")
    return file


def family_layers(folder: Path, roots: Sequence[Path]) -> dict[Path, FamilyFile]:
    """The folders that a family is read from, with their family.yaml, in order of precedence: the
    family; its bases, each followed by its own bases; then every `generic`, first the one beside
    the family, then those in `roots` (folders of families). Raises UsageError for a folder without
    a family, and for a base that is unknown."""
    if not (folder / "family.yaml").is_file():
        raise UsageError(f"{folder}: no family.yaml there; name a folder of prompts")
    layers: dict[Path, FamilyFile] = {}

    def add(family: Path) -> None:
        layers[family] = file = read_family_file(family)
        for name in file.base:
            named = [root / name for root in (family.parent, *roots)]
            bases = [path for path in named if (path / "family.yaml").is_file()]
            if not bases:
                key, names = f"{family / 'family.yaml'}: base", ", ".join(_names(roots))
                raise UsageError(f"{key}: no family {name!r}; there are {names}")
            # A base with the family's own name is another folder of that name, if there is one.
            base = min(bases, key=lambda path: path == family)
            if base not in layers:
                add(base)

    add(folder)
    for path in (root / GENERIC for root in (folder.parent, *roots)):
        if path.is_dir() and path not in layers:
            has_file = (path / "family.yaml").is_file()
            layers[path] = read_family_file(path) if has_file else FamilyFile()
    return layers


@dataclass(frozen=True)
class Family:
    """A family, completed by its bases. `sources`: its templates by file name; `files`: the path of
    each. `own_refusals`: its words of refusals if they differ from the shipped ones, for the hash
    of steps. `known_answers`: the words that audits use as answers, by kind; in no step's hash."""

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
        """The messages of `prompt`: those of its conversation so far, then the user's. An earlier
        reply is its value in the family's form, without a model's reasons for it. Raises UsageError
        if the template is missing, malformed, fails, or uses a name that is no field."""
        values = {field.name: getattr(prompt, field.name) for field in fields(prompt)}
        values["max_reply_tokens"] = self.max_reply_tokens(type(prompt))  # a template may state it
        file = f"{prompt.name}.jinja"
        with self._in_one_line(file):
            content = self._environment.get_template(file).render(values)
        message: Message = {"role": "user", "content": content}
        if (before := prompt.earlier()) is None:
            return (message,)
        earlier, value = before
        reply = (self.form(type(earlier)) or "{}").replace("{}", value)
        return (*self.render(earlier), {"role": "assistant", "content": reply}, message)

    def max_reply_tokens(self, prompt: type[Prompt[Any]]) -> int:
        """The prompt's reply budget in the engine's tokens."""
        return self.reply_tokens.get(prompt.name, prompt.max_reply_tokens)

    def form(self, prompt: type[Prompt[Any]]) -> str | None:
        """The form of a constrained reply; None if replies to the prompt are free text."""
        return self.forms.get(prompt.name, prompt.form)

    def read(self, prompt: Prompt[T], reply: str, is_cut: bool) -> T | None:
        form, refusals = self.form(type(prompt)), self.refusals.get(prompt.name)
        return read_reply(prompt, form, reply, is_cut, refusals)

    def constraint(self, prompt: Prompt[Any]) -> Constraint | None:
        """The legal replies in the family's form; None if replies are free text."""
        form = self.form(type(prompt))
        return None if form is None else prompt.legal(form)

    def examples(self, prompt: type[Prompt[Any]]) -> tuple[str, ...]:
        """Lines of the rendered samples that are replies to the prompt, such as `Answer: (C)`.
        Left out: lines with a value of the sample, free text, and fixed replies, such as STOP."""
        examples: dict[str, None] = {}
        lead = _compared((self.form(prompt) or "{}").partition("{}")[0])
        for sample in prompt.samples():
            if self.read(sample, "These words are no reply.", is_cut=False) is not None:
                continue  # the prompt reads any text
            values, text = list(filter(None, rendered_values(sample))), ""
            with suppress(UsageError):  # `prompts check` reports templates that fail
                text = "\n".join(message["content"] for message in self.render(sample))
            for line in filter(None, map(str.strip, text.splitlines())):
                begins = lead and _compared(line).startswith(lead)  # or it is an instruction
                is_of_sample = any(value in line or line in value for value in values)
                if is_of_sample or not (begins or _VALUE_ALONE.match(line)):
                    continue
                value: object = self.read(sample, line, is_cut=False)
                parts = value if isinstance(value, tuple) else (value,)
                # A number, or a list that is not empty; a word would be a fixed reply.
                if not isinstance(value, str) and any(part or part == 0 for part in parts):
                    examples[line] = None
        return (*examples,)

    def is_example(self, prompt: type[Prompt[Any]], reply: str) -> bool:
        """True if the reply, or its first line, is an example that the prompt shows, but for case,
        white space and signs."""
        if prompt.name not in self._examples:
            self._examples[prompt.name] = frozenset(map(_compared, self.examples(prompt)))
        texts = (reply, reply.strip().partition("\n")[0])
        return not self._examples[prompt.name].isdisjoint(map(_compared, texts))

    @cached_property
    def _examples(self) -> dict[str, frozenset[str]]:
        return {}

    def sha(self, prompt: type[Prompt[Any]]) -> str:
        """8 hex of the sha256 of the prompt's template and of every template it includes."""
        texts = [self.sources[name].encode() for name in sorted(self._parsed(prompt))]
        return hashlib.sha256(b"\0".join(texts)).hexdigest()[:8]

    def check_template(self, prompt: type[Prompt[Any]]) -> None:
        """Raise UsageError if the template of `prompt`, or one that it includes, is missing, does
        not parse, or uses a name that is no field of the prompt. Nothing is rendered."""
        parsed = self._parsed(prompt)
        names = {"max_reply_tokens", *(field.name for field in fields(prompt))}
        names |= self._environment.globals.keys()
        for tree in parsed.values():
            names |= {macro.name for macro in tree.find_all(nodes.Macro)}
            names |= {name.name for name in tree.find_all(nodes.Name) if name.ctx == "store"}
        for name, tree in parsed.items():
            for unknown in sorted(_undeclared(tree) - names):
                raise UsageError(f"{self.files[name]}: {unknown!r} is undefined")

    def _parsed(self, prompt: type[Prompt[Any]]) -> dict[str, nodes.Template]:
        """The prompt's template and all that it includes, by name."""
        parsed: dict[str, nodes.Template] = {}
        waiting = [f"{prompt.name}.jinja"]
        while waiting:
            name = waiting.pop()
            with self._in_one_line(name):
                if name not in self.sources:
                    raise jinja2.TemplateNotFound(name)
                parsed[name] = _parsed(self.sources[name], self.files[name])
            for included in find_referenced_templates(parsed[name]):
                if included is None:
                    raise UsageError(f"{self.files[name]}: includes a computed name; write it out")
                waiting += [included] if included not in parsed else []
        return parsed

    @cached_property
    def _environment(self) -> SandboxedEnvironment:
        return SandboxedEnvironment(
            loader=jinja2.DictLoader(dict(self.sources)),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    @contextmanager
    def _in_one_line(self, file: str) -> Iterator[None]:
        try:
            yield
        except jinja2.TemplateNotFound as error:
            raise UsageError(f"{self.folder}: no template {error.name}; add it") from None
        except jinja2.TemplateSyntaxError as error:
            path = self.files.get(error.name or file, error.filename or file)
            raise UsageError(f"{path}:{error.lineno}: {error.message}") from None
        except _TEMPLATE_ERRORS as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise UsageError(f"{self.files[file]}: {why}") from error

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def hashed(self) -> dict[str, Any]:
        """The family's settings, budgets and templates for a run's name, as JSON with hashes."""
        return {
            "name": self.name,
            "settings": sha([self.settings, self.judging], 8),
            "reply_tokens": dict(self.reply_tokens),  # not hashed: commands may override them
            "templates": {name: sha(text, 8) for name, text in sorted(self.sources.items())},
            **({"refusals": sha(self.own_refusals, 8)} if self.own_refusals else {}),
        }


def _compared(text: str) -> str:
    return " ".join(plain_text(text).casefold().split())


@cache  # many steps ask for the same template
def _parsed(source: str, file: str) -> nodes.Template:
    return SandboxedEnvironment().parse(source, filename=file)


_undeclared = cache(find_undeclared_variables)


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
    """The family in `folder`, completed by its `family_layers`. `reply_tokens` overrides budgets by
    prompt. Raises UsageError that names the file and the wrong key, and if two `generic` families
    of `roots` have a template of the same name."""
    first: dict[str, Path] = {}
    for template in (t for root in roots for t in sorted((root / GENERIC).glob("*.jinja"))):
        if (other := first.setdefault(template.name, template)) != template:
            raise UsageError(
                f"{other}: a template of that name exists already, {template}; put it in a "
                "family of its own"
            )
    layers = family_layers(folder, roots)
    files = list(layers.values())
    templates = {
        t.name: t for layer in reversed(list(layers)) for t in sorted(layer.glob("*.jinja"))
    }
    refusals, shipped = _merged(f.refusals for f in files), files[-1].refusals
    return Family(
        name=folder.name,
        folder=str(folder),
        wording=next((f.wording for f in files if f.wording), "ours"),
        settings=_merged(f.settings for f in files),
        judging={k: v or {} for k, v in next((f.judging for f in files if f.judging), {}).items()},
        reply_tokens=_merged([dict(reply_tokens or {}), *(f.reply_tokens for f in files)]),
        forms=_merged(f.forms for f in files),
        refusals=refusals,
        own_refusals={k: v.model_dump() for k, v in refusals.items() if shipped.get(k) != v},
        known_answers=_merged(f.known_answers for f in files),
        sources={name: text_of(path) for name, path in templates.items()},
        files={name: str(path) for name, path in templates.items()},
    )


def _merged(layers: Iterable[dict[str, T]]) -> dict[str, T]:
    """Merge the dictionaries, keys sorted; of several values for a key, the first counts."""
    return dict(sorted(ChainMap(*layers).items()))


def export_family(name: str, folder: Path, plugins: str | None) -> dict[str, Any]:
    """Copy a family (a shipped or a plugin's one, or a folder), with all that it inherits, to a new
    folder; returns `folder` and `templates` (file name -> the family that it came from). Steps made
    with the copy have the same names. Raises UsageError if there is none, or `folder` has files."""
    roots = [conf / "prompts" for conf in conf_folders(plugins)]
    source = find_family(name, roots)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: is there already and not empty; name a new folder")
    layers, family = family_layers(source, roots), load_family(source, roots)
    base = next(iter(layers.values())).base
    if source.parent in roots and source.name != GENERIC:
        base = (source.name,)
    prompts = [p for name, p in sorted(PROMPTS.items()) if f"{name}.jinja" in family.sources]
    content = {
        "base": base,
        "wording": family.wording,
        "settings": family.settings,
        "judging": family.judging,
        "reply_tokens": {prompt.name: family.max_reply_tokens(prompt) for prompt in prompts},
        "forms": {p.name: form for p in prompts if (form := family.form(p)) is not None},
        "refusals": family.refusals,
        "examples": _merged(file.examples for file in layers.values()),
    }
    dumped = FamilyFile.model_validate(content).model_dump(mode="json", exclude_defaults=True)
    text = yaml.safe_dump(dumped, width=math.inf, allow_unicode=True, sort_keys=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, written in {**family.sources, "family.yaml": text}.items():
            (folder / file).write_text(written, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be written: {error.strerror}") from None
    origins = {file: Path(path).parent.name for file, path in sorted(family.files.items())}
    return {"folder": str(folder), "templates": origins}
