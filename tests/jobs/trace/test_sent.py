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
def finished(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return FinishedRun(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def warehouse(finished: FinishedRun, tmp_path: Path) -> Path:
    return finished.copied(tmp_path)


def test_messages_settings_and_the_row_of_a_call(warehouse: Path) -> None:
    calls = gistmill.sent(warehouse, question="q2")
    assert [call["stage"] for call in calls] == ["look_up", "answer", "rate", "rate"]
    answer = calls[1]
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
    calls = gistmill.sent(warehouse, document="d2")
    assert [call["page_index"] for call in calls] == [0, 1, 2]
    assert {call["memory"] for call in calls} == {"shared"}
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
    finished: FinishedRun, warehouse: Path
) -> None:
    shard = warehouse / finished.shard("calls").relative_to(finished.warehouse)
    shard.write_bytes(shard.read_bytes()[:100])
    with pytest.warns(LeftOutWarning, match=shard.name):
        assert gistmill.sent(warehouse, document="d1") == []
    with pytest.warns(LeftOutWarning):
        assert len(gistmill.sent(warehouse, document="d2")) == 3


def test_calls_of_an_earlier_version_were_not_kept(warehouse: Path) -> None:
    """Version 0.2 did not store what was sent."""
    for shard in (warehouse / "tables" / "calls").glob("*/*.parquet"):
        pq.write_table(pq.read_table(shard).drop_columns(SENT), shard)
    calls = shown(warehouse)
    assert len(calls) == NUM_CALLS
    assert all(call[name] is None for call in calls for name in SENT)
    printed = succeed("trace", "q1", "--prompts", f"warehouse={warehouse}")
    assert printed.count("what was sent was not kept") == 7
    assert printed.count("reply (stop") == 7


@pytest.mark.slow
def test_what_was_sent_is_left_out_where_that_is_asked_for(
    finished: FinishedRun, tmp_path: Path
) -> None:
    warehouse = tmp_path / "another"
    printed = succeed(*finished.words(warehouse), "engine.keep_prompts=false")
    assert "what scripted was sent is not kept" in printed
    calls = sql(warehouse, "from calls")
    assert len(calls) == NUM_CALLS
    assert all(call[name] is None for call in calls for name in SENT)
    whole = succeed("report", f"warehouse={finished.warehouse}")
    assert "was sent is not kept" not in whole
    # It shapes no reply: the same run goes on with it, or without.
    done = json.loads(succeed(*finished.words(warehouse), "--json"))
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
    traced = json.loads(printed)
    (method,) = traced["methods"]
    assert [call["prompt"] for call in method["calls"]] == [
        "look_up_p", "answer", "rate_permissive", "rate_strict",
    ]  # fmt: skip
    messages, sent = (
        {call["request_sha"]: call["messages"] for call in calls}
        for calls in (
            traced["memories"]["shared"]["calls"],
            gistmill.sent(warehouse, document="d1"),
        )
    )
    assert messages == sent
    plain = json.loads(succeed("trace", "q1", "--json", f"warehouse={warehouse}"))
    assert "calls" not in plain["methods"][0] and "calls" not in plain["memories"]["shared"]


def test_the_page_says_how_it_is_done_in_python(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = [code for code in blocks("docs/looking.md", "py") if "gistmill.sent" in code]
    monkeypatch.chdir(warehouse.parent)
    exec(code.replace("tower", "night").replace("meeting-02", "q1"), {})
    assert capsys.readouterr().out.count("'role': 'user'") == 4
