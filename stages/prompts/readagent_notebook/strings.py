"""Find the strings that a notebook's code assigns to names. None of the code is executed."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.core.errors import UsageError

_MAGIC = re.compile(r"(\s*)(?:[!%?].*|[\w.]+\?\??)$")  # of IPython: a command, a magic, help
_OTHER_ERRORS = (ValueError, RecursionError, MemoryError)  # of ast.parse


@dataclass(frozen=True)
class Template:
    """A string that is assigned to a name. `text` is None where only running the code would tell.

    `cell`: the number of its cell, from 1, markdown cells counted.
    """

    name: str
    text: str | None
    cell: int


@dataclass
class Notebook:
    """The strings of a notebook in order, and the code cells that are not Python."""

    num_code_cells: int = 0
    strings: list[Template] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)


def read_notebook(file: Path) -> Notebook:
    """The strings of a notebook of format 4. Raises UsageError where the file is none."""
    found = Notebook()
    for number, cell in enumerate(_cells(file), start=1):
        if cell.get("cell_type") != "code":
            continue
        found.num_code_cells += 1
        source = cell.get("source", "")
        code = source if isinstance(source, str) else "".join(map(str, source))
        tree = _parsed(code)
        try:
            assigned = [*_assigned(tree)] if tree is not None else None
        except RecursionError:  # thousands of strings, joined
            assigned = None
        if assigned is None:
            found.unread.append(number)
        else:
            found.strings += [Template(name, text, number) for name, text in assigned]
    return found


def _cells(file: Path) -> list[dict[str, Any]]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}; name a notebook") from None
    except (ValueError, RecursionError) as error:
        why = " ".join(str(error).split())
        raise UsageError(f"{file}: not JSON, so no notebook: {why}") from None
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise UsageError(
            f"{file}: has no list of cells, so no notebook of format 4; "
            "jupyter nbconvert --to notebook makes one of an older notebook"
        )
    return cells


def _parsed(code: str) -> ast.Module | None:
    """The syntax tree of a cell, magics left out; None where it is no Python. A cell that begins
    with a cell magic, such as %%bash, need not be."""
    is_magic = code.lstrip().startswith("%%")
    code = code.lstrip().partition("\n")[2] if is_magic else code
    lines = code.split("\n")
    while True:
        try:
            return ast.parse("\n".join(lines))
        except SyntaxError as error:
            place = (error.lineno or 1) - 1
            found = _MAGIC.match(lines[place]) if place < len(lines) else None
            if found is None:
                return ast.parse("") if is_magic else None
            lines[place] = f"{found[1]}pass"
        except _OTHER_ERRORS:
            return None


def _assigned(tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    """The names that the code assigns strings to, anywhere, in the order of their lines."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AnnAssign)]
    for node in sorted(nodes, key=lambda found: found.lineno):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if names and (isinstance(node.value, ast.JoinedStr) or _text(node.value) is not None):
            for name in names:
                yield name, _text(node.value)


def _text(node: ast.expr | None) -> str | None:
    """A string, or strings joined by +; None for all else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left), _text(node.right)
        return None if left is None or right is None else left + right
    return None
