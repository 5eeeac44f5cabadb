"""The pinned schemas, and that every row comes back as it went in."""

import dataclasses
import struct
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.arrow import from_arrow, schema, to_arrow
from pipeline.core.calls import Call
from pipeline.core.errors import UsageError
from pipeline.core.prompts import Constraint
from pipeline.core.rows import (
    RECORDS,
    Document,
    IndexRow,
    Question,
    QuestionRow,
    Record,
    Span,
    UnitRows,
    is_per_question,
)
from stages.tables.answers import Answer, Rating, Score
from stages.tables.keys import Embedding, Expansion, Key, MemoryPassage
from stages.tables.lookups import Dropped, Lookup, Note, Query, RankedPage, Refinement, Visit
from stages.tables.pages import Gist, Node, Page, RunningSummary

SPANS = "list<item: struct<start_char: int64, end_char: int64>>"
DROPPED = "list<item: struct<page_index: int64, reason: string>>"
RANKED = "list<item: struct<page_index: int64, score: double>>"
OF_DOCUMENTS = "corpus string; step_id string; unit string"
OF_MEMORIES = f"{OF_DOCUMENTS}; memory string"
OF_QUESTIONS = f"{OF_DOCUMENTS}; input_sha string"
OF_METHODS = f"{OF_DOCUMENTS}; method string; repeat int64; memory string; input_sha string"
STAMPED = {
    "documents": OF_DOCUMENTS,
    "questions": OF_QUESTIONS,
    **dict.fromkeys(
        ["pages", "gists", "embeddings", "nodes", "memory_passages", "expansions", "keys"],
        OF_MEMORIES,
    ),
    **dict.fromkeys(
        [
            "queries",
            "refinements",
            "lookups",
            "visits",
            "running_summaries",
            "notes",
            "answers",
            "ratings",
            "scores",
            "calls",
        ],
        OF_METHODS,
    ),
}
OWN = ("pipeline.", "stages.")
END = "problem string; detail string"
COLUMNS = {
    "documents": "document_id string; title string; text string; num_words int64; "
    f"num_paragraphs int64; metadata string; skipped bool; {END}",
    "questions": "document_id string; question_id string; question string; "
    "options list<item: string>; references list<item: string>; answer_index int64; "
    f"question_type string; evidence {SPANS}; asked_at string; only_judged bool; "
    f"task string; classes list<item: string>; metadata string; {END}",
    "pages": "document_id string; page_index int64; start_char int64; end_char int64; "
    f"text string; num_words int64; chosen_by string; merged_from list<item: int64>; {END}",
    "gists": f"document_id string; page_index int64; gist string; num_words int64; "
    f"copied double; {END}",
    "embeddings": "document_id string; page_index int64; chunk_index int64; start_char int64; "
    f"end_char int64; embedding list<item: float>; {END}",
    "nodes": "document_id string; node_index int64; level int64; parent int64; "
    "children list<item: int64>; start_char int64; end_char int64; page_index int64; "
    f"summary string; num_words int64; is_compressed bool; {END}",
    "visits": "document_id string; question_id string; turn int64; node_index int64; "
    "depth int64; page_index int64; action string; to_node int64; chosen_by string; "
    "reason string; num_replies int64; num_invalid int64; rejected list<item: int64>; "
    "num_memory_words int64; is_memory_cut bool; num_context_tokens int64; "
    "num_new_words int64; answer string; "
    f"answer_index int64; reader string; {END}",
    "memory_passages": "document_id string; passage_index int64; part_index int64; "
    "page_index int64; start_char int64; end_char int64; gist string; num_words int64; "
    f"{END}",
    "queries": "document_id string; question_id string; query_index int64; kind string; "
    "text string; dropped string; part_index int64; start_date string; end_date string; "
    f"{END}",
    "expansions": "document_id string; page_index int64; item_index int64; kind string; "
    f"text string; day string; {END}",
    "keys": "document_id string; page_index int64; key_index int64; kind string; text string; "
    f"day string; {END}",
    "notes": f"document_id string; question_id string; page_index int64; note string; {END}",
    "refinements": "document_id string; question_id string; turn int64; trajectory int64; "
    f"action string; text string; ranked {RANKED}; used list<item: int64>; {END}",
    "lookups": "document_id string; question_id string; turn int64; query_index int64; "
    "requested list<item: int64>; used list<item: int64>; "
    f"dropped {DROPPED}; ranked {RANKED}; skipped bool; {END}",
    "running_summaries": "document_id string; question_id string; segment_index int64; "
    f"start_char int64; end_char int64; summary string; num_words int64; {END}",
    "answers": "document_id string; question_id string; reader string; answer string; "
    f"answer_index int64; options_order list<item: int64>; "
    f"page_indexes list<item: int64>; context_spans {SPANS}; "
    "num_lookups int64; num_context_words int64; num_context_tokens int64; "
    "num_document_words int64; "
    f"compression_rate double; num_answer_words int64; judged string; skipped bool; {END}",
    "ratings": "document_id string; question_id string; rater string; rater_is_model bool; "
    f"rubric string; reference_index int64; label string; value double; skipped bool; {END}",
    "scores": "document_id string; question_id string; metric string; value double; "
    f"skipped bool; {END}",
    "calls": "document_id string; call_index int64; stage string; question_id string; "
    "page_index int64; turn int64; reference_index int64; prompt string; request_sha string; "
    "engine string; attempt int64; prompt_tokens int64; cached_tokens int64; "
    "reply_tokens int64; finish_reason string; seconds double; reply string; thinking string; "
    "messages list<item: struct<role: string, content: string>>; temperature double; seed int64; "
    "max_reply_tokens int64; constraint struct<choices: list<item: string>, regex: string>; "
    "is_shared bool; started_at timestamp[us]; worker string; answered_by string; "
    "read_as string; is_example bool; problem string",
}

# A row of every table with everything filled in, and one with all that may be left out left out.
FULL: dict[str, Record] = {
    "documents": Document(
        document_id="d", title="A mill", text="One\n\ntwo \x00 ünd 中", num_words=4,
        num_paragraphs=2, metadata='{"kind": "book"}', skipped=True, problem="bad_input",
        detail="line 3",
    ),
    "questions": Question(
        document_id="d", question_id="7", question="Who?", options=("a", "", "c"),
        references=("c", "c"), answer_index=2, question_type="who",
        evidence=(Span(0, 3), Span(5, 9)), asked_at="2024-01-01", only_judged=True,
        task="trec", classes=("who", "when"), metadata='{"hard": true}',
        problem="bad_input", detail="x",
    ),
    "pages": Page(
        document_id="d", page_index=1, start_char=3, end_char=9, text="two", num_words=1,
        chosen_by="model", merged_from=(2, 3), problem="unit_failed", detail="x",
    ),
    "gists": Gist(
        document_id="d", page_index=1, gist="2", num_words=1, copied=0.25, problem="truncated",
        detail="x",
    ),
    "embeddings": Embedding(
        document_id="d", page_index=1, chunk_index=2, start_char=7, end_char=9,
        embedding=(0.5, -0.75, 2**-20), problem="upstream", detail="x",
    ),
    "nodes": Node(
        document_id="d", node_index=4, level=1, parent=6, children=(0, 1), start_char=3,
        end_char=9, page_index=2, summary="2", num_words=1, is_compressed=True,
        problem="upstream", detail="x",
    ),
    "visits": Visit(
        document_id="d", question_id="1e5", turn=2, node_index=4, depth=1, page_index=2,
        action="answer", to_node=6, chosen_by="model", reason="It says so.", num_replies=3,
        num_invalid=2, rejected=(0, 1), num_memory_words=7, is_memory_cut=True, num_new_words=9,
        num_context_tokens=8,
        answer="(C)", answer_index=2, reader="r", problem="truncated", detail="x",
    ),
    "memory_passages": MemoryPassage(
        document_id="d", passage_index=3, part_index=1, page_index=7, start_char=5, end_char=9,
        gist="It rings.", num_words=2, problem="truncated", detail="x",
    ),
    "queries": Query(
        document_id="d", question_id="q", query_index=3, kind="span", text="the bell",
        dropped="duplicate", part_index=1, start_date="2023/05/01", end_date="2023/05/31",
        problem="truncated", detail="x",
    ),
    "expansions": Expansion(
        document_id="d", page_index=3, item_index=1, kind="event", text="It rang.",
        day="2023/05/01", problem="truncated", detail="x",
    ),
    "keys": Key(
        document_id="d", page_index=3, key_index=1, kind="merged", text="It rang.",
        day="2023/05/01", problem="unit_failed", detail="x",
    ),
    "notes": Note(
        document_id="d", question_id="q", page_index=3, note="It rang.", problem="truncated",
        detail="x",
    ),
    "refinements": Refinement(
        document_id="d", question_id="q", turn=3, trajectory=1, action="rewrite", text="bell",
        ranked=(RankedPage(2, 0.5), RankedPage(0)), used=(2, 0), problem="truncated", detail="x",
    ),
    "lookups": Lookup(
        document_id="d", question_id="1e5", turn=2, query_index=4, requested=(5, 2, 9, 5, 1),
        used=(5, 2),
        dropped=(Dropped(9, "out_of_range"), Dropped(5, "duplicate"), Dropped(1, "over_maximum")),
        ranked=(RankedPage(5, 0.25), RankedPage(2)),
        skipped=True, problem="timeout", detail="x",
    ),
    "running_summaries": RunningSummary(
        document_id="d", question_id="q", segment_index=3, start_char=7, end_char=9,
        summary="It rang.", num_words=2, problem="truncated", detail="x",
    ),
    "answers": Answer(
        document_id="d", question_id="007", reader="r", answer="c", answer_index=2,
        options_order=(1, 2, 0),
        page_indexes=(2, 5), context_spans=(Span(3, 9),), num_lookups=2, num_context_words=50,
        num_context_tokens=60,
        num_document_words=200, compression_rate=75.0, num_answer_words=1, skipped=True,
        judged="all", problem="out_of_range", detail="x",
    ),
    "ratings": Rating(
        document_id="d", question_id="q", rater="r", rater_is_model=True, reference_index=1,
        rubric="permissive", label="partially", value=0.5, skipped=True, problem="unparseable",
        detail="x",
    ),
    "scores": Score(
        document_id="d", question_id="q", metric="rouge1_stem", value=100 / 3, skipped=True,
        problem="upstream", detail="x",
    ),
    "calls": Call(
        document_id="d", call_index=3, stage="rate", question_id="q", page_index=0, turn=0,
        reference_index=0, prompt="rate_strict", request_sha="00ff", engine="e", attempt=2,
        prompt_tokens=9, cached_tokens=8, reply_tokens=7, finish_reason="length", seconds=0.25,
        reply="YES\n", thinking="It names her.", read_as="legal", is_example=True,
        is_shared=True, problem="truncated",
        started_at=datetime(2026, 11, 22, 3, 14, 15, 926535), worker="node-7-4711",
        answered_by="m-2024",
        messages=({"role": "user", "content": "Is it?\n"},), temperature=0.5, seed=7,
        max_reply_tokens=9, constraint=Constraint(choices=("YES", "NO"), regex="YES|NO"),
    ),
}  # fmt: skip
BARE: dict[str, Record] = {
    "documents": Document(document_id="d"),
    "questions": Question(document_id="d", question_id="q"),
    "pages": Page(
        document_id="d", page_index=0, start_char=0, end_char=0, text=None, num_words=0,
        chosen_by=None,
    ),
    "gists": Gist(document_id="d", page_index=0, gist=None, num_words=0),
    "embeddings": Embedding(
        document_id="d", page_index=0, chunk_index=0, start_char=0, end_char=0, embedding=None
    ),
    "nodes": Node(
        document_id="d", node_index=0, level=0, parent=None, children=(), start_char=0, end_char=0,
        page_index=None, summary=None, num_words=0,
    ),
    "memory_passages": MemoryPassage(
        document_id="d", passage_index=0, part_index=0, page_index=None, start_char=None,
        end_char=None, gist=None, num_words=0,
    ),
    "queries": Query(
        document_id="d", question_id="q", query_index=0, kind="question", text=None
    ),
    "expansions": Expansion(
        document_id="d", page_index=0, item_index=0, kind="none", text=None
    ),
    "keys": Key(
        document_id="d", page_index=0, key_index=0, kind="value", text=None, day=None
    ),
    "notes": Note(document_id="d", question_id="q", page_index=None, note=None),
    "refinements": Refinement(document_id="d", question_id="q", turn=0),
    "lookups": Lookup(document_id="d", question_id="q", turn=0, used=None),
    "running_summaries": RunningSummary(
        document_id="d", question_id="q", segment_index=0, start_char=0, end_char=0, summary=None
    ),
    "visits": Visit(document_id="d", question_id="q", turn=0),
    "answers": Answer(document_id="d", question_id="q", reader="", answer=None),
    "ratings": Rating(document_id="d", question_id="q", rater="", rater_is_model=False),
    "scores": Score(document_id="d", question_id="q", metric="m", value=None),
    "calls": Call(
        document_id="d", call_index=0, stage="gist", question_id=None, page_index=None, turn=None,
        reference_index=None, prompt="gist", request_sha="", engine="", attempt=1,
        prompt_tokens=0, cached_tokens=0, reply_tokens=0, finish_reason="abort", seconds=0.0,
        reply="",
    ),
}  # fmt: skip
STAMP: dict[str, Any] = {
    "corpus": "c", "step_id": "s", "unit": "u", "method": None, "repeat": 0, "memory": "shared",
    "input_sha": None,
}  # fmt: skip


def there_and_back(table: str, rows: list[Record], folder: Any) -> tuple[Record, ...]:
    file = folder / f"{table}.parquet"
    pq.write_table(to_arrow(RECORDS[table], rows, [STAMP] * len(rows)), file)
    return from_arrow(RECORDS[table], pq.read_table(file))


@pytest.mark.parametrize("table", COLUMNS)
def test_schemas_are_pinned(table: str) -> None:
    expected = f"{STAMPED[table]}; {COLUMNS[table]}"
    assert "; ".join(f"{f.name} {f.type}" for f in schema(RECORDS[table])) == expected


def test_all_tables_of_our_own_are_here() -> None:
    own = {table for table, record in RECORDS.items() if record.__module__.startswith(OWN)}
    assert own == set(COLUMNS) == set(STAMPED)


@pytest.mark.parametrize("table", COLUMNS)
def test_every_record_comes_back(table: str, tmp_path: Any) -> None:
    rows = [FULL[table], BARE[table], FULL[table]]
    assert there_and_back(table, rows, tmp_path) == tuple(rows)


@pytest.mark.parametrize("table", COLUMNS)
def test_full_rows_leave_no_column_out(table: str) -> None:
    """Else the round trip above proves less than it says."""
    empty = [f.name for f in dataclasses.fields(FULL[table]) if not getattr(FULL[table], f.name)]
    assert [name for name in empty if not name.endswith(("_index", "turn"))] == []


@pytest.mark.parametrize("table", COLUMNS)
def test_a_column_of_nulls_keeps_its_type(table: str, tmp_path: Any) -> None:
    bare = there_and_back(table, [BARE[table]], tmp_path)
    assert bare == (BARE[table],)
    assert pq.read_schema(tmp_path / f"{table}.parquet").equals(schema(RECORDS[table]))
    assert there_and_back(table, [], tmp_path) == ()
    assert pq.read_schema(tmp_path / f"{table}.parquet").equals(schema(RECORDS[table]))


def test_null_and_empty_lists_differ(tmp_path: Any) -> None:
    """`used` null: the look-up failed for good; empty: nothing was wanted."""
    rows: list[Record] = [
        Lookup(document_id="d", question_id="q", turn=0, used=used) for used in (None, ())
    ]
    assert there_and_back("lookups", rows, tmp_path) == tuple(rows)


def test_embeddings_are_kept_in_single_precision(tmp_path: Any) -> None:
    place: dict[str, Any] = {
        "document_id": "d",
        "page_index": 0,
        "chunk_index": 0,
        "start_char": 0,
        "end_char": 1,
    }
    row = Embedding(**place, embedding=(0.1,))
    (read,) = there_and_back("embeddings", [row], tmp_path)
    (number,) = struct.unpack("<f", struct.pack("<f", 0.1))
    assert number != 0.1
    assert read == Embedding(**place, embedding=(number,))


def test_rows_and_stamps_go_together() -> None:
    with pytest.raises(ValueError, match="zip"):
        to_arrow(Gist, [BARE["gists"]], [])


def test_a_problem_outside_the_closed_set_is_not_read_back() -> None:
    rows = to_arrow(Gist, [BARE["gists"]], [STAMP])
    at = rows.schema.get_field_index("problem")
    other = rows.set_column(at, rows.schema.field(at), pa.array(["bad_luck"]))
    with pytest.raises(ValueError, match="problem"):
        from_arrow(Gist, other)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
COUNT = st.integers(0, 2**62)
SPAN = st.builds(Span, COUNT, COUNT)


@pytest.mark.slow
@given(
    st.lists(
        st.builds(
            Question,
            document_id=TEXT,
            question_id=TEXT,
            question=TEXT,
            options=st.lists(TEXT, max_size=3).map(tuple),
            answer_index=st.none() | COUNT,
            evidence=st.lists(SPAN, max_size=3).map(tuple),
            detail=st.none() | TEXT,
        ),
        max_size=4,
    )
)
def test_any_question_comes_back(rows: list[Question]) -> None:
    assert from_arrow(Question, to_arrow(Question, rows, [STAMP] * len(rows))) == tuple(rows)


def test_a_table_has_one_record_class() -> None:
    with pytest.raises(UsageError, match=r"writes the table 'gists', which is that of stages\.tab"):
        type("Other", (IndexRow,), {"table": "gists", "key": (), "__module__": "elsewhere"})
    assert RECORDS["gists"] is Gist


def test_a_class_without_a_table_of_its_own_is_a_base() -> None:
    assert {IndexRow, QuestionRow}.isdisjoint(RECORDS.values())
    assert (is_per_question(IndexRow), is_per_question(QuestionRow)) == (False, True)


def test_rows_of_a_unit_come_by_class() -> None:
    gist = FULL["gists"]
    rows = UnitRows(document=Document(document_id="d"), tables={Gist: (gist,)})
    assert rows[Gist] == (gist,)
    with pytest.raises(KeyError):
        rows[Page]
