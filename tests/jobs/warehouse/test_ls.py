"""`gistmill ls` lists all that can be named, in 80 columns; `gistmill schema` describes each."""

import json

import pytest

from tests.support.command import refused, succeed

OF_CODE = {
    "columns", "engines", "extractors", "formats", "metrics", "prompts", "rubrics", "stages",
}  # fmt: skip


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
