"""The comments beside a dataclass's fields, which say what a table's columns mean."""

import ast
import inspect
import io
import textwrap
import tokenize
from collections.abc import Iterator


def field_comments(cls: type) -> dict[str, str]:
    """The comment of every field, inherited ones included, by name: that on its own lines, else
    that right above it.

    Fields without a comment are left out, and all fields of a class whose source cannot be found.
    """
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__ != "builtins":
            found |= dict(_own_comments(base))
    return found


def _own_comments(cls: type) -> Iterator[tuple[str, str]]:
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):
        return
    (tree,) = ast.parse(source).body
    comments = _comments(source)
    assert isinstance(tree, ast.ClassDef)
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            beside = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            lines = [comments[line][1] for line in beside if line in comments]
            if text := " ".join(lines or _above(node.lineno, comments)):
                yield node.target.id, text


def _above(line: int, comments: dict[int, tuple[bool, str]]) -> list[str]:
    """The comment lines right above a line."""
    found: list[str] = []
    while (above := comments.get(line - len(found) - 1)) and above[0]:
        found.insert(0, above[1])
    return found


def _comments(source: str) -> dict[int, tuple[bool, str]]:
    """The comments of a source by line number: whether it is alone on its line, and its text."""
    return {
        token.start[0]: (not token.line[: token.start[1]].strip(), token.string.lstrip("# "))
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and "fmt:" not in token.string
    }
