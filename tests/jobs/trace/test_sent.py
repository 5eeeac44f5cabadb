"""What was sent is stored with each call, and shown as it was."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import gistmill
from pipeline.core.errors import LeftOutWarning, UsageError
from pipeline.store.upkeep import compact
from tests.support.command import sql, succeed
from tests.support.docs.pages import blocks
from tests.support.runs.finished_run import FinishedRun
from tests.support.runs.shown_calls import shown

NUM_CALLS = 18  # six gists; of three questions a look-up, an answer and two verdicts each
SENT = ["messages", "temperature", "seed", "max_reply_tokens", "constraint"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return FinishedRun(tmp_path_factory.mktemp("made"))


@pytest.fixture
def warehouse(made: FinishedRun, tmp_path: Path) -> Path:
    return made.copied(tmp_path)


def in_copy(made: FinishedRun, warehouse: Path, table: str) -> Path:
    return warehouse / made.shard(table).relative_to(made.warehouse)


def test_messages_settings_and_the_row_of_a_call(warehouse: Path) -> None:
    found = gistmill.sent(warehouse, question="q2")
    assert [call["stage"] for call in found] == ["look_up", "answer", "rate", "rate"]
    answer = found[1]
    (message,) = answer["messages"]
    assert message["role"] == "user"
    # The page that was looked up stands in place of its gist, the others as the script has them.
    assert "What is said in number 2 about mill1?" in message["content"]
    assert message["content"].count("as it was") == 2
    assert "paragraph two ends here." in message["content"]
    assert (answer["temperature"], answer["seed"], answer["max_reply_tokens"]) == (0.0, 0, 512)
    assert answer["constraint"] is None
    assert (answer["method"], answer["repeat"]) == ("readagent_p(max_pages=5)", 0)
    assert (answer["reply"], answer["attempt"]) == ("as it was", 1)


def test_the_calls_of_a_memory_are_asked_for_by_document(warehouse: Path) -> None:
    found = gistmill.sent(warehouse, document="d2")
    assert [call["page_index"] for call in found] == [0, 1, 2]
    assert {call["memory"] for call in found} == {"shared"}
    with pytest.raises(UsageError, match=r"d22: no such document in the run; .*d2"):
        gistmill.sent(warehouse, document="d22")
    with pytest.raises(UsageError, match=r"q11: no such question in the run; .*q1"):
        gistmill.sent(warehouse, question="q11")
    with pytest.raises(UsageError, match="name a question or a document"):
        gistmill.sent(warehouse)


@pytest.mark.slow
def test_in_a_compacted_warehouse(warehouse: Path) -> None:
    before = shown(warehouse)
    assert compact(warehouse, least=1)
    shutil.rmtree(warehouse / "tables")  # as gc does some time later
    assert shown(warehouse) == before


def test_calls_that_cannot_be_read_are_left_out_with_a_warning(
    made: FinishedRun, warehouse: Path
) -> None:
    shard = in_copy(made, warehouse, "calls")
    shard.write_bytes(shard.read_bytes()[:100])
    with pytest.warns(LeftOutWarning, match=shard.name):
        assert gistmill.sent(warehouse, document="d1") == []
    with pytest.warns(LeftOutWarning):
        assert len(gistmill.sent(warehouse, document="d2")) == 3


def without_sent(warehouse: Path) -> None:
    """Make the calls those of version 0.2, which did not store what was sent."""
    for shard in (warehouse / "tables" / "calls").glob("*/*.parquet"):
        rows = pq.read_table(shard)
        pq.write_table(rows.drop_columns(SENT).cast(rows.drop_columns(SENT).schema), shard)


def test_calls_of_an_earlier_version_were_not_kept(warehouse: Path, made: FinishedRun) -> None:
    without_sent(warehouse)
    found = shown(warehouse)
    assert len(found) == NUM_CALLS
    assert all(call[name] is None for call in found for name in SENT)
    printed = succeed("trace", "q1", "--prompts", f"warehouse={warehouse}")
    assert printed.count("what was sent was not kept") == 7
    assert printed.count("reply (stop") == 7


@pytest.mark.slow
def test_what_was_sent_is_left_out_where_that_is_asked_for(
    made: FinishedRun, tmp_path: Path
) -> None:
    warehouse = tmp_path / "another"
    printed = succeed(*made.words(warehouse), "engine.keep_prompts=false")
    assert "what scripted was sent is not kept" in printed
    calls = sql(warehouse, "from calls")
    assert len(calls) == NUM_CALLS
    assert all(call[name] is None for call in calls for name in SENT)
    whole = succeed("report", f"warehouse={made.warehouse}")
    assert "was sent is not kept" not in whole
    # It shapes no reply: the same run goes on with it, or without.
    done = json.loads(succeed(*made.words(warehouse), "--json"))
    assert sum(done["calls"].values()) == 0


def test_trace_prints_every_call_under_its_memory_and_method(warehouse: Path) -> None:
    printed = succeed("trace", "q1", "--prompts", f"warehouse={warehouse}")
    memory, _, method = printed.partition("\n== readagent_p(max_pages=5)\n")
    assert memory.count("CALLS OF gist (3)") == 1 and memory.count("  user:") == 3
    assert [line.strip() for line in method.splitlines() if "CALLS OF" in line] == [
        "CALLS OF look_up (1)", "CALLS OF answer (1)", "CALLS OF rate (2)",
    ]  # fmt: skip
    assert "temperature 0, seed 0, at most 512 tokens of reply" in memory
    assert "      | Question: What is said in number 1 about mill1?" in method
    assert "      | I want to look up Page [1] to be sure" in method
    assert "CALLS OF" not in succeed("trace", "q1", f"warehouse={warehouse}")


def test_trace_as_json_has_the_exact_text(warehouse: Path) -> None:
    printed = succeed("trace", "q1", "--prompts", "--json", f"warehouse={warehouse}")
    found = json.loads(printed)
    (method,) = found["methods"]
    assert [one["prompt"] for one in method["calls"]] == [
        "look_up_p", "answer", "rate_permissive", "rate_strict",
    ]  # fmt: skip
    asked = {one["request_sha"]: one["messages"] for one in found["memories"]["shared"]["calls"]}
    assert asked == {
        call["request_sha"]: call["messages"] for call in gistmill.sent(warehouse, document="d1")
    }
    plain = json.loads(succeed("trace", "q1", "--json", f"warehouse={warehouse}"))
    assert "calls" not in plain["methods"][0] and "calls" not in plain["memories"]["shared"]


def test_the_page_says_how_it_is_done_in_python(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = [code for code in blocks("docs/looking.md", "py") if "gistmill.sent" in code]
    monkeypatch.chdir(warehouse.parent)
    exec(code.replace("tower", "night").replace("meeting-02", "q1"), {})
    assert capsys.readouterr().out.count("'role': 'user'") == 4
