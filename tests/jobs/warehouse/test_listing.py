"""`gistmill ls` lists all that can be named; `gistmill schema` describes each, as the page
docs/schema.md does: every column has a meaning, and is there."""

import json
from typing import Any

import pytest

from jobs.warehouse.listing import named, read_schema
from pipeline.core.rows import RECORDS
from pipeline.store import connect
from tests.support.command import ROOT, own_process, refused, succeed, succeeded
from tests.support.runs.hand_run import HandRun

PLUGIN = ROOT / "tests" / "support" / "quote_plugin"
OURS = ("pipeline.", "stages.")
OF_CODE = {
    "columns", "engines", "extractors", "formats", "metrics", "prompts", "rubrics", "stages",
}  # fmt: skip


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return read_schema()


@pytest.mark.slow
def test_the_committed_page_is_the_generated_one() -> None:
    """In a process of its own: plugins that other tests load stay for good."""
    printed = succeeded(own_process("schema", "--markdown"))
    page = ROOT / "docs" / "schema.md"
    assert page.read_text() == printed, "run gistmill schema --markdown > docs/schema.md"


def test_every_table_column_and_problem_has_a_meaning(schema: dict[str, Any]) -> None:
    """A comment beside the record's field, or a line of a view's SQL."""
    ours = {name for name, record in RECORDS.items() if record.__module__.startswith(OURS)}
    tables = [table for table in schema["tables"] if table["is_view"] or table["name"] in ours]
    assert len(tables) > 30
    assert [table["name"] for table in tables if not table["about"]] == []
    columns = [(table["name"], column) for table in tables for column in table["columns"]]
    assert [(name, column["name"]) for name, column in columns if not column["meaning"]] == []
    assert all(schema["problems"].values()) and "unparseable" in schema["problems"]


@pytest.mark.slow
def test_it_has_what_a_warehouse_has(schema: dict[str, Any], hand: HandRun) -> None:
    """The columns of a run's views, in the order that DuckDB has them."""
    with connect(hand.warehouse) as connection:
        for table in schema["tables"]:
            name = table["name"]
            if name in RECORDS and not RECORDS[name].__module__.startswith(OURS):
                continue
            described = connection.execute(f'describe "{name}"').fetchall()
            columns = [(column["name"], column["type"]) for column in table["columns"]]
            assert columns == [row[:2] for row in described]


@pytest.mark.slow
def test_one_table_and_json() -> None:
    table, column = json.loads(succeed("schema", "lookups", "--json"))
    assert (column["name"], column["is"]) == ("lookups", "column")
    assert (table["name"], table["key"]) == ("lookups", ["question_id", "turn"])
    (used,) = [column for column in table["columns"] if column["name"] == "used"]
    assert (used["type"], used["nullable"]) == ("BIGINT[]", True)
    assert used["meaning"] == "page indexes in order of importance; null: no reply"
    shown = succeed("schema", "all_paired")
    assert shown.startswith("paired, a view: ") and "| difference  | DOUBLE  |" in shown
    assert "empty_input" in json.loads(succeed("schema", "--json"))["problems"]
    assert refused("schema", "lookup").endswith("nearest: lookups, look_up_s, look_up_p")
    for name, kind in (("bm25", "method"), ("chats", "family"), ("uniform", "memory")):
        assert succeed("schema", name).startswith(f"{name}, {kind} of ")
    assert refused("schema", "run=a").startswith("'run=a': unknown word; there are plugins=")
    assert refused("schema", "plugins=nowhere").startswith("plugins=nowhere: no such folder")


@pytest.mark.slow
def test_tables_of_plugins() -> None:
    both = succeeded(own_process("schema", "quotes", "quoted", f"plugins={PLUGIN}"))
    assert both.startswith("quotes, a table: ")
    assert "quoted, a view: A row per quote that a page gave." in both
    assert "| num_chars   | BIGINT  | of the quote" in both
    assert own_process("schema", "quotes").returncode == 2


def test_each_has_a_line_and_a_description(schema: dict[str, Any]) -> None:
    listed = json.loads(succeed("ls", "--json"))
    assert {*listed} > OF_CODE | {"methods", "families", "corpus", "experiment"}
    for kind in OF_CODE:
        assert listed[kind] and all(row["about"] and row["module"] for row in listed[kind])
        assert named(schema, listed[kind][0]["name"])


@pytest.mark.slow
def test_what_has_one_name_is_described_together() -> None:
    page, gist, *others = json.loads(succeed("schema", "gist", "--json"))
    assert (page["is"], gist["is"]) == ("prompt", "stage")
    assert {row["name"] for row in others} == {
        f"gist (kind {kind})" for kind in ("conditional", "fitted", "follow_up", "given")
    }
    printed = succeed("schema", "queries")
    assert printed.startswith("queries, a table: ") and "queries, column of stages." in printed
    assert "queries (kind clues), stage of stages.query.make_queries: " in printed
    assert "| top_k   |" in succeed("schema", "look_up (kind bm25)")
    assert succeed("schema", "words_read") == (
        "words_read, column of stages.read.answer_from_context: "
        "words of gists and raw text in the final context\n"
    )


def test_a_kind_that_there_is_not() -> None:
    assert refused("ls", "stags") == "ls stags: no such kind; nearest: stages"
    assert refused("schema", "gisst").endswith("; nearest: gist, gists")
