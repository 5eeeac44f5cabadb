"""`gistmill ls` lists all that can be named, in 80 columns; `gistmill schema` describes each."""

import ast
import json
import re
from collections.abc import Iterator

import pytest

from tests.support.command import ROOT, refused, succeed

OF_CODE = {
    "columns", "engines", "extractors", "formats", "metrics", "prompts", "rubrics", "stages",
}  # fmt: skip


def classes(folder: str) -> Iterator[ast.ClassDef]:
    """The classes in the sources of a folder."""
    for file in (ROOT / folder).rglob("*.py"):
        yield from (node for node in ast.parse(file.read_text()).body if type(node) is ast.ClassDef)


def literals(one: ast.ClassDef, name: str) -> list[str]:
    """The names that a class declares: `format: Literal["a", "b"]`, or `name: ClassVar = "a"`."""
    for node in one.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
            return re.findall(r"[\"']([^\"']+)[\"']", ast.unparse(node.value or node.annotation))
    return []


def names(kind: str) -> list[str]:
    """Those of ours: other tests may have loaded plugins into this process."""
    found = json.loads(succeed("ls", kind, "--json"))
    assert [*found] == [kind]
    return [row["name"] for row in found[kind] if row["module"].startswith(("pipeline", "stages"))]


def test_it_lists_what_the_sources_declare() -> None:
    formats = [name for one in classes("stages/corpora") for name in literals(one, "format")]
    assert len(formats) > 15 and names("formats") == sorted(formats)
    engines = [name for one in classes("pipeline/engines") for name in literals(one, "name")]
    assert names("engines") == sorted(engines)
    prompts = [name for one in classes("stages/prompts") for name in literals(one, "name")]
    assert len(prompts) > 35 and names("prompts") == sorted(prompts)
    source = "".join(file.read_text() for file in (ROOT / "stages/extract").glob("*.py"))
    endings = re.findall(r"^@extractor\((.+)\)$", source, re.MULTILINE)
    assert names("extractors") == sorted(re.findall(r'"(\w+)"', "".join(endings)))
    assert {"answer (kind memory)", "gist", "look_up (kind bm25)"} <= {*names("stages")}
    assert {"lr_1", "words_read", "recovery"} <= {*names("columns")}


def test_each_has_a_line_and_a_description() -> None:
    found = json.loads(succeed("ls", "--json"))
    assert {*found} > OF_CODE | {"methods", "families", "corpus", "experiment"}
    for kind in OF_CODE:
        assert found[kind] and all(row["about"] and row["module"] for row in found[kind])


@pytest.mark.slow
def test_what_has_one_name_is_described_together() -> None:
    page, gist, *others = json.loads(succeed("schema", "gist", "--json"))
    assert (page["is"], gist["is"]) == ("prompt", "stage")
    assert {one["name"] for one in others} == {
        f"gist (kind {kind})" for kind in ("conditional", "fitted", "follow_up", "given")
    }
    told = succeed("schema", "queries")
    assert told.startswith("queries, a table: ") and "queries, column of stages.query." in told
    assert "queries (kind clues), stage of stages.query.make_queries: " in told
    assert "| top_k   |" in succeed("schema", "look_up (kind bm25)")
    assert succeed("schema", "words_read") == (
        "words_read, column of stages.read.answer_from_context: "
        "words of gists and raw text in the final context\n"
    )


def test_a_kind_that_there_is_not() -> None:
    assert refused("ls", "stags") == "ls stags: no such kind; nearest: stages"
    assert refused("schema", "gisst").endswith("; nearest: gist, gists")
