"""Write a prompt family made of the prompts in a notebook."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.errors import UsageError
from pipeline.core.plugins import load_plugins
from pipeline.core.settings import CONF
from pipeline.families.family import load_family
from pipeline.families.family_copy import refuse_files, write_family
from pipeline.work.check_family import check_family
from stages.prompts.readagent_notebook.strings import Notebook, Template, read_notebook
from stages.prompts.readagent_notebook.templates import (
    FREE,
    PARTIAL,
    PROMPTS,
    Imported,
    imported,
    partial,
)

BASE = "readagent_quality"  # the notebook reads QuALITY


@dataclass(frozen=True)
class Found:
    """A prompt that was found: the name and cell of its string, and what our template adds."""

    prompt: str
    name: str
    cell: int
    added: tuple[str, ...]


@dataclass(frozen=True)
class ImportedFamily:
    """The family that was made of a notebook. `missing`: prompts that stay those of families of
    ours; `left_out`: strings that were not used, and why; `failures`: lines of `prompts check`."""

    folder: str
    found: tuple[Found, ...]
    missing: dict[str, str]
    left_out: tuple[str, ...]
    failures: tuple[str, ...]


def import_notebook(notebook: Path, folder: Path) -> ImportedFamily:
    """Write a family of the prompts in a notebook, and check it.

    Raises UsageError where the file is no notebook or has no such prompt, or `folder` has files.
    """
    refuse_files(folder)
    load_plugins([])
    read = read_notebook(notebook)
    made = imported(read)
    if not made.sources:
        raise UsageError(f"{notebook}: {_why_nothing(read, made)}")
    roots = [CONF / "prompts"]
    base = load_family(roots[0] / BASE, roots)
    templates = {
        name if name == FREE else f"{name}.jinja": text for name, text in made.sources.items()
    }
    if "answer" in made.sources and FREE not in templates:
        templates[FREE] = base.sources["answer.jinja"]
    write_family(
        folder, {**templates, PARTIAL: partial(), "family.yaml": _family_yaml(notebook.name)}
    )
    found = [_found(prompt, string, made) for prompt, string in sorted(made.taken.items())]
    missing = [prompt for prompt in PROMPTS if prompt not in made.taken]
    origin = {prompt: Path(base.files[f"{prompt}.jinja"]).parent.name for prompt in missing}
    left_out = [_left_out(string, why) for string, why in made.left_out]
    left_out += [f"cell {number} is not Python and was not read" for number in read.unread]
    return ImportedFamily(
        str(folder), tuple(found), origin, tuple(left_out), tuple(check_family(folder, roots))
    )


def shown(made: ImportedFamily) -> Iterator[str]:
    """The lines that say what was made."""
    for one in made.found:
        added = f"; the template adds {', '.join(one.added)}" if one.added else ""
        yield f"{one.prompt}: {one.name} of cell {one.cell}{added}"
    for prompt, family in made.missing.items():
        yield f"{prompt}: not found; stays that of the family {family}"
    yield from (f"left out: {line}" for line in made.left_out)
    for line in made.failures:
        yield f"to change: {line}"
    yield f"{made.folder} is written; family={made.folder} reads with it" + (
        f" once gistmill prompts check {made.folder} passes" if made.failures else ""
    )


def _why_nothing(read: Notebook, made: Imported) -> str:
    known = "prompt_pagination_template, prompt_shorten_template, prompt_lookup_template and so on"
    if made.left_out:
        lines = "; ".join(_left_out(string, why) for string, why in made.left_out[:3])
        return f"no string in it can be used: {lines}; they are named {known}"
    return f"no prompts in its {read.num_code_cells} code cells; they are strings named {known}"


def _found(prompt: str, string: Template, made: Imported) -> Found:
    name = "answer, without options" if prompt == FREE else prompt
    return Found(name, string.name, string.cell, tuple(made.added[prompt]))


def _left_out(string: Template, why: str) -> str:
    return f"{string.name} of cell {string.cell}: {why}"


def _family_yaml(notebook: str) -> str:
    name = "".join(char if char.isprintable() else "?" for char in notebook)
    return (
        f"# ReadAgent's prompts as in {name}, a copy of its authors' notebook.\n"
        f"base: [{BASE}]  # what is not here is that family's, settings too\n"
        "wording: authors\n"
    )
