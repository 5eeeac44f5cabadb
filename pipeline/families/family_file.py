"""The keys of a `family.yaml`, and the bases from which a family takes those that it leaves out."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError, field_validator

from pipeline.core.errors import UsageError
from pipeline.core.prompts import PROMPTS
from pipeline.core.refusals import Refusals
from pipeline.core.registry import hint
from pipeline.core.settings import YAML_LOADER, refuse_nonsense

GENERIC = "generic"
_Name = Annotated[str, Field(max_length=63)]  # at most 255 bytes, as a folder's must be


class Example(BaseModel):
    """A reply and the value that its prompt's parser must read from it."""

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
    """The content of a `family.yaml`. A key left out is taken from the first base that has it, then
    from generic, or else from the prompt's module."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    base: tuple[
        _Name, ...
    ] = ()  # families whose parts it takes before generic's, the first's first
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
    family, its bases in the order named, each followed by its own, and every `generic`: that beside
    the family, then those of `roots` (folders of families).

    Raises UsageError if the folder is no family, or a base is unknown or its own base.
    """
    if not (folder / "family.yaml").is_file():
        raise UsageError(f"{folder}: no family.yaml there; name a folder of prompts")
    found = dict(_with_bases(folder, roots))
    for path in (root / GENERIC for root in (folder.parent, *roots)):
        if path.is_dir() and path not in found:
            has_file = (path / "family.yaml").is_file()
            found[path] = read_family_file(path) if has_file else FamilyFile()
    return found


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
    """The family of that name beside the folder, else in `roots`; itself only if there is none."""
    named = [root / name for root in (folder.parent, *roots)]
    there = [path for path in named if (path / "family.yaml").is_file()]
    if not there:
        known = {file.parent.name for root in roots for file in root.glob("*/family.yaml")}
        raise UsageError(
            f"{folder / 'family.yaml'}: base: no family {name!r}; there are "
            f"{', '.join(sorted(known))}"
        )
    return min(there, key=lambda path: path == folder)


def read_family_file(folder: Path) -> FamilyFile:
    """`family.yaml` in a folder. Raises UsageError naming the file and the key that is wrong."""
    path = folder / "family.yaml"
    try:
        file = FamilyFile.model_validate(yaml.load(text_of(path), YAML_LOADER) or {})
        _refuse_nonsense(path, file)
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UsageError(f"{path}: {key}: {first['msg'].removeprefix('Value error, ')}") from error
    for line in file.wrong_prompts():
        raise UsageError(f"{path}: {line}")
    return file


def _refuse_nonsense(path: Path, file: FamilyFile) -> None:
    """Raise UsageError for a value that no key takes. Example replies may be anything."""
    try:
        refuse_nonsense(file.model_dump(exclude={"examples"}))
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 ({error.reason}); save it as UTF-8") from error
