"""Make a family of prompts of the prompts in a copy of the notebook of ReadAgent's authors:

    python contrib/readagent_notebook/import_notebook.py FILE.ipynb my_readagent

The notebook has no licence, so nothing of it is here: only the names of its strings are known. None
of its code is executed.
"""

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Formatter

BASE = "readagent_quality"  # the notebook reads QuALITY
MACROS = Path(__file__).with_name("_notebook.jinja")
FREE = "_free_answer.jinja"  # how a question without options is answered
_MAGIC = re.compile(r"(\s*)(?:[!%?].*|[\w.]+\?\??)$")  # of IPython: a command, a magic, help
_NAME = re.compile(r"prompt|template", re.IGNORECASE)
_NUM_PAGES = re.compile(r"\b\d+(?= ?(?:page\(s\)|pages?\b))")  # in "1 to 6 page(s)" the 6

# By field of the notebook: an expression over the fields of our prompt.
_EXPRESSIONS = {
    "preceding": "preceding_text(preceding)",
    "passage": "labelled(paragraphs)",
    "following": "following",
    "first_label": "label(paragraphs, 0)",
    "last_label": "label(paragraphs, -1)",
    "page": "page",
    "memory": "memory(passages)",
    "question": "dated(question, asked_at)",
    "options": "lettered(options)",
    "max_pages": "max_pages",
    "pages_read": 'pages_read | join(", ")',
    "answer": "answer",
    "reference": "reference",
    "plain_question": "question",
}
_TEXT = dict.fromkeys(
    ("gists", "memory", "menu", "article", "text", "passage", "context"), "memory"
)
_ASKED = {**_TEXT, "question": "question", "query": "question", "options": "options",
          "choices": "options", "max_pages": "max_pages", "num_pages": "max_pages"}  # fmt: skip
_JUDGED = {
    "question": "plain_question",
    **dict.fromkeys(("answer", "response", "prediction", "model_answer"), "answer"),
    **dict.fromkeys(("reference", "reference_answer", "label", "gold"), "reference"),
}


@dataclass(frozen=True)
class Kind:
    """One of our prompts in the notebook: a pattern of its string's name, its fields by number
    and by name, and the fields that it must have."""

    prompt: str
    names: str
    numbered: Sequence[str]
    named: Mapping[str, str]
    needed: Sequence[str]


_JUDGMENT = ("plain_question", "answer", "reference")
_MEMORY = ("memory", "question")
KINDS = (  # the first whose `names` a string's name matches
    Kind("rate_strict", "strict", (), _JUDGED, _JUDGMENT),
    Kind("rate_permissive", "permissive|lenient", (), _JUDGED, _JUDGMENT),
    Kind("break_point", "paginat|pause|break", ("preceding", "passage", "following"),
         {"preceding": "preceding", "previous": "preceding", "passage": "passage",
          "text": "passage", "end_tag": "following", "following": "following",
          "start": "first_label", "end": "last_label"}, ("passage",)),
    Kind("gist", "shorten|gist", ("page",),
         dict.fromkeys(("page", "page_text", "passage", "text"), "page"), ("page",)),
    Kind("look_up_s", "(?=.*look_?up).*(seq|single|_s(_|$))", (*_MEMORY, "pages_read"),
         {**_ASKED, "pages_read": "pages_read", "retrieved": "pages_read"},
         (*_MEMORY, "pages_read")),
    Kind("look_up_p", "look_?up", (*_MEMORY, "options"), _ASKED, _MEMORY),
    Kind(FREE, "free.*answer|answer.*free", _MEMORY, _ASKED, _MEMORY),
    Kind("answer", "answer", (*_MEMORY, "options"), _ASKED, _MEMORY),
)  # fmt: skip


class UnusableError(Exception):
    """The reason why a string cannot become a template, or a file is no notebook."""


def main() -> None:
    """Write the folder of the family, and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0] + ".")
    parser.add_argument("notebook", type=Path)
    parser.add_argument("folder", type=Path, help="a new folder")
    given = parser.parse_args()
    if given.folder.exists():
        sys.exit(f"{given.folder}: is there already; name a new folder")
    try:
        sources, lines = made_of(given.notebook)
    except (OSError, UnusableError) as error:
        sys.exit(f"{given.notebook}: {error}")
    given.folder.mkdir(parents=True)
    for name, text in sources.items():
        (given.folder / name).write_text(text, encoding="utf-8", newline="\n")
    print(*lines, sep="\n")
    print(f"{given.folder} is written; gistmill prompts check {given.folder} says what to change, "
          f"and family={given.folder} reads with it")  # fmt: skip


def made_of(notebook: Path) -> tuple[dict[str, str], list[str]]:
    """The files of the family by name, and a line on each string. Where two strings are for one
    prompt the later one counts, as if the notebook were run. Raises UnusableError."""
    templates: dict[str, str] = {}
    lines: dict[str, str] = {}  # by prompt
    unused: list[str] = []
    for cell, name, text in strings(notebook):
        kind = next((k for k in KINDS if re.search(k.names, name.lower())), None)
        place = f"{name} of cell {cell}"
        try:
            if kind is None:
                raise UnusableError("its name is that of no prompt of ReadAgent")
            made, added = template(kind, text)
        except UnusableError as why:
            unused.append(f"left out: {place}: {why}")
            continue
        if kind.prompt in lines:
            unused.append(f"left out: {lines[kind.prompt]}: {place} comes later")
        templates[kind.prompt] = made
        lines[kind.prompt] = place + (f"; the template adds {', '.join(added)}" if added else "")
    if not templates:
        raise UnusableError("; ".join(unused[:3]) or "no string is named like prompt_gist_template")
    sources = {name if name == FREE else f"{name}.jinja": text for name, text in templates.items()}
    if "answer" in templates and FREE not in templates:
        ours = files("gistmill") / "conf" / "prompts" / "readagent" / "answer.jinja"
        sources[FREE] = ours.read_text(encoding="utf-8")
    sources[MACROS.name] = MACROS.read_text(encoding="utf-8")
    sources["family.yaml"] = (
        "# ReadAgent's prompts as in a copy of its authors' notebook.\n"
        f"base: [{BASE}]  # what is not here is that family's, settings too\nwording: authors\n"
    )
    missing = [k.prompt for k in KINDS if k.prompt not in (*templates, FREE)]
    return sources, [
        *(f"{prompt}: {line}" for prompt, line in sorted(lines.items())),
        *(f"{prompt}: not found; stays that of the family {BASE}" for prompt in missing),
        *unused,
    ]


def strings(notebook: Path) -> Iterator[tuple[int, str, str | None]]:
    """Each string that code assigns to a name like a prompt's: the number of the cell from 1,
    the name, and the text or None for an f-string. Raises UnusableError."""
    try:
        cells = [*map(dict, json.loads(notebook.read_text(encoding="utf-8"))["cells"])]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UnusableError("no JSON with a list of cells, so no notebook of format 4") from None
    for number, cell in enumerate(cells, start=1):
        if cell.get("cell_type") == "code":
            for name, text in assigned("".join(cell.get("source", ""))):
                if _NAME.search(name):
                    yield number, name, text


def assigned(code: str) -> Iterator[tuple[str, str | None]]:
    """The names that the code assigns strings to, anywhere, in the order of their lines; nothing
    where the code is no Python. Magics are left out."""
    code = code.lstrip().partition("\n")[2] if code.lstrip().startswith("%%") else code
    lines = code.split("\n")
    while True:
        try:
            tree = ast.parse("\n".join(lines))
            break
        except SyntaxError as error:
            place = min(error.lineno or 1, len(lines)) - 1
            found = _MAGIC.match(lines[place])
            if found is None:
                return
            lines[place] = f"{found[1]}pass"
        except (ValueError, RecursionError, MemoryError):
            return
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AnnAssign)]
    for node in sorted(nodes, key=lambda found: found.lineno):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        text = _text(node.value)
        if text is not None or isinstance(node.value, ast.JoinedStr):
            yield from ((target.id, text) for target in targets if isinstance(target, ast.Name))


def _text(node: ast.expr | None) -> str | None:
    """A string, or strings joined by +; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left), _text(node.right)
        return None if left is None or right is None else left + right
    return None


def template(kind: Kind, text: str | None) -> tuple[str, list[str]]:
    """The template of a format string, and the fields that it adds to the string. Raises
    UnusableError."""
    if text is None:
        raise UnusableError("an f-string, whose values only running the code would tell")
    parts, shown = list[str](), list[str]()
    for literal, field in _fields(kind, text):
        parts.append(literal.replace("{", '{{ "{" }}'))
        if field is not None:
            shown.append(field)
            parts.append(f"{{{{ {_EXPRESSIONS[field]} }}}}")
    if missing := [field for field in kind.needed if field not in shown]:
        raise UnusableError(f"has no field for {', '.join(missing)}")
    made, added = _completed(kind.prompt, "".join(parts), shown)
    known = re.findall(r"macro (\w+)\(", MACROS.read_text(encoding="utf-8"))
    used = [name for name in known if f"{name}(" in made]
    head = f'{{% from "{MACROS.name}" import {", ".join(used)} %}}\n' if used else ""
    return f"{head}{made}\n", added  # Jinja leaves out a template's last line break


def _fields(kind: Kind, text: str) -> Iterator[tuple[str, str | None]]:
    """The literal pieces of a format string, each with the field after it, or None."""
    try:
        pieces = list(Formatter().parse(text))
    except ValueError as error:
        raise UnusableError(f"is no format string: {error}") from None
    numbers = iter(range(len(text)))
    for literal, name, spec, conversion in pieces:
        if name is None:
            yield literal, None
            continue
        number = (
            next(numbers) if name == "" else int(name) if re.fullmatch("[0-9]{1,2}", name) else -1
        )
        field = kind.named.get(name.lower())
        if 0 <= number < len(kind.numbered):
            field = kind.numbered[number]
        if field is None or spec or conversion:
            raise UnusableError(
                f"has a field {{{name}}} of which it is not known what stands in it"
            )
        yield literal, field


def _completed(prompt: str, text: str, shown: Sequence[str]) -> tuple[str, list[str]]:
    """The text with the fields that our prompt needs and the notebook never has; and their
    names."""
    added = []
    if prompt == "look_up_p" and "max_pages" not in shown:
        text, found = _NUM_PAGES.subn("{{ max_pages }}", text)
        text += "" if found else "{{ at_most(max_pages) }}"
        added.append("max_pages")
    if prompt in ("look_up_p", "look_up_s", "answer") and "options" not in shown:
        after = f"{{{{ {_EXPRESSIONS['question']} }}}}"
        options = f'{{{{ "\\n" if options }}}}{{{{ {_EXPRESSIONS["options"]} }}}}'
        text = text.replace(after, after + options)
        added.append("options")
    if prompt == "look_up_s":
        text += "{{ turned_down(refused, previous_answer, last_was_unread) }}"
        added.append("refused, previous_answer, last_was_unread")
    if prompt == FREE:
        text += "{{ length(answer_words) }}"
        added.append("answer_words")
    if prompt == "answer":
        text = f'{{% if options %}}\n{text}{{%+ else %}}\n{{% include "{FREE}" %}}\n{{% endif %}}'
    return text, added


if __name__ == "__main__":
    main()
