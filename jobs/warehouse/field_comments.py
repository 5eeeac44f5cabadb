"""The comments beside the fields of a class, which say what its columns or settings mean."""

import ast
import inspect
import io
import textwrap
import tokenize
from collections.abc import Iterator
from itertools import count, takewhile


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
    comments = {
        token.start[0]: token
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and "fmt:" not in token.string
    }
    alone = {line for line, token in comments.items() if token.line.lstrip().startswith("#")}
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            beside = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            above = takewhile(alone.__contains__, count(node.lineno - 1, -1))
            lines = [line for line in beside if line in comments] or sorted(above)
            if lines:
                yield node.target.id, " ".join(comments[n].string.lstrip("# ") for n in lines)
