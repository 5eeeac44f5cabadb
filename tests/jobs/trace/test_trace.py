"""`gistmill show` and `trace`, and the lanes of a reading map against spans counted by hand."""

import json
import re
from pathlib import Path
from unicodedata import normalize
from xml.etree import ElementTree

import duckdb
import pytest

import gistmill
from jobs.trace.trace import lane, pages_lane, stored_id
from pipeline.core.errors import LeftOutWarning, UsageError
from tests.support.command import refused, sql, sql_values, succeed
from tests.support.docs.pages import blocks
from tests.support.runs.finished_run import FinishedRun
from tests.support.runs.page_run import finished, write_corpus

SVG = "{http://www.w3.org/2000/svg}"


def test_a_gist_follows_its_page(night: FinishedRun) -> None:
    title, *parts = succeed("show", "d1", f"warehouse={night.warehouse}").strip().split("\n\n")
    assert title == "d1: 120 words, 3 pages (memory shared of run night)"
    assert parts[0] == "page 0, 40 words" and parts[1].startswith("mill1 mill1 ")
    headings = [part for part in parts if part.startswith("gist of")]
    assert headings == [f"gist of page {n}, 3 words" for n in range(3)]
    assert parts.count("as it was") == 3


def test_pages_are_chosen_by_number_and_range(night: FinishedRun) -> None:
    words = ("show", "d2", "page=1..9", f"warehouse={night.warehouse}", "--json")
    shown = json.loads(succeed(*words))
    assert [page["page_index"] for page in shown["pages"]] == [1, 2]
    assert (shown["num_pages"], shown["memory"], shown["memories"]) == (3, "shared", ["shared"])
    page, gist = shown["pages"][1]["texts"]
    assert (page["heading"], page["num_words"], page["problem"]) == ("page", 40, None)
    assert page["text"].endswith("paragraph three ends here.")
    assert gist == {"heading": "gist", "text": "as it was", "num_words": 3, "problem": None}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["d3"], "d3: no such document in the run; nearest: d1, d2"),
        (["d1", "memory=tree"], "memory=tree: not of d1, which has shared"),
        (["d1", "page=7"], "page=7: d1 has pages 0 to 2"),
        (["d1", "page=2..1"], "page=2..1: d1 has pages 0 to 2"),
        (["d1", "page=first"], "page=first: write page=3 or page=0..4"),
    ],
)
def test_what_cannot_be_shown(night: FinishedRun, words: list[str], says: str) -> None:
    assert refused("show", *words, f"warehouse={night.warehouse}").startswith(says)


@pytest.mark.slow
def test_trace_prints_only_the_parts_of_a_memory_unless_all_is_asked_for(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", 1)
    warehouse = finished(tmp_path, "rater=none", methods="gist_only,full_text,bm25(top_k=1)")
    ((gist,), *others) = sql_values(warehouse, "select gist from gists order by page_index")
    shown = succeed("trace", "v0-m3", f"warehouse={warehouse}")
    of_memory = shown.partition("\n== ")[0]
    assert f"GISTS ({1 + len(others)} rows)\n" in of_memory and gist not in of_memory
    assert "\ngistmill show village-0 prints a memory, --full all of them here\n" in shown
    whole = succeed("trace", "v0-m3", f"warehouse={warehouse}", "--full")
    assert all(text in whole for (text,) in [(gist,), *others]) and "gistmill show" not in whole


def spans(*pairs: tuple[int, int]) -> list[dict[str, int]]:
    return [{"start_char": start, "end_char": end} for start, end in pairs]


def test_what_overlaps_or_touches_counts_once_also_in_the_share_of_each_passage() -> None:
    made = lane(1000, spans((100, 200), (0, 50), (150, 300), (300, 310)), spans((40, 110)))
    assert made.read == 26.0, "0-50 and 100-310"
    assert made.gold == pytest.approx(100 * 20 / 70, abs=0.05), "40-50 and 100-110 of 40-110"
    paths = ElementTree.fromstring(made.svg).iter(f"{SVG}path")
    assert {path.get("class"): path.get("d") for path in paths} == {
        "gold": "M40 0h70v20H40z", "read": "M0 0h50v20H0zM100 0h210v20H100z"
    }  # fmt: skip
    made = lane(1000, spans((0, 50), (20, 60)), spans((0, 100), (50, 70), (500, 510), (5, 5)))
    assert made.passages == (60.0, 50.0, 0.0, 0.0), "0-60 was read"
    assert made.gold == pytest.approx(100 * 60 / 110, abs=0.05), "of 0-100 and 500-510"


def test_an_id_is_found_however_its_accents_are_stored() -> None:
    with duckdb.connect() as connection:
        connection.execute("create table documents as select 'été' as document_id")
        for name in (normalize("NFC", "été"), normalize("NFD", "été")):
            assert stored_id(connection, "document", name) == "été"


def test_pages_stand_where_they_are() -> None:
    pages = [{"page_index": n, "start_char": 10 * n, "end_char": 10 * n + 10} for n in range(3)]
    made = ElementTree.fromstring(pages_lane(30, pages))
    rectangles = [(r.get("data-page"), r.get("x"), r.get("width")) for r in made.iter(f"{SVG}rect")]
    assert rectangles == [("0", "0", "10"), ("1", "10", "10"), ("2", "20", "10")]


def test_a_notebook_shows_names_as_text_and_mistakes_are_said(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", 1)
    warehouse = finished(tmp_path, "engine=extractive", methods="bm25(top_k=1),full_text")
    shown = gistmill.reading_map("v0-m3", warehouse)._repr_html_()
    heads = re.findall('<th scope="row">(.*?)</th>', shown)
    assert heads == ["pages of shared", "bm25(top_k=1)", "full_text"]
    assert "read 100.0%, evidence 100.0%" in shown
    with pytest.raises(gistmill.UsageError, match="v0-m4: no such question in the run; nearest: "):
        gistmill.reading_map("v0-m4", warehouse)


def test_messages_settings_and_the_row_of_a_call(night: FinishedRun) -> None:
    calls = gistmill.sent(night.warehouse, question="q2")
    assert [call["stage"] for call in calls] == ["look_up", "answer", "rate", "rate"]
    answer = calls[1]
    (message,) = answer["messages"]
    # The page that was looked up stands in place of its gist, the others as the script has them.
    assert "What is said in number 2 about mill1?" in message["content"]
    assert message["content"].count("as it was") == 2
    assert "paragraph two ends here." in message["content"]
    assert (answer["temperature"], answer["seed"], answer["max_reply_tokens"]) == (0.0, 0, 512)
    assert answer["constraint"] is None
    assert (answer["method"], answer["repeat"]) == ("readagent_p(max_pages=5)", 0)
    assert (answer["reply"], answer["attempt"]) == ("as it was", 1)


def test_the_calls_of_a_memory_are_asked_for_by_document(night: FinishedRun) -> None:
    calls = gistmill.sent(night.warehouse, document="d2")
    assert [call["page_index"] for call in calls] == [0, 1, 2]
    assert {call["memory"] for call in calls} == {"shared"}
    for wrong, says in (
        ({"document": "d22"}, r"d22: no such document in the run; .*d2"),
        ({"question": "q11"}, r"q11: no such question in the run; .*q1"),
        ({}, "name a question or a document"),
    ):
        with pytest.raises(UsageError, match=says):
            gistmill.sent(night.warehouse, **wrong)


def test_calls_that_cannot_be_read_are_left_out_with_a_warning(
    night: FinishedRun, tmp_path: Path
) -> None:
    warehouse = night.copied(tmp_path)
    shard = warehouse / night.shard("calls").relative_to(night.warehouse)
    shard.write_bytes(shard.read_bytes()[:100])
    with pytest.warns(LeftOutWarning, match=shard.name):
        assert gistmill.sent(warehouse, document="d1") == []
    with pytest.warns(LeftOutWarning):
        assert len(gistmill.sent(warehouse, document="d2")) == 3


@pytest.mark.slow
def test_what_was_sent_is_left_out_where_that_is_asked_for(
    night: FinishedRun, tmp_path: Path
) -> None:
    warehouse = tmp_path / "another"
    printed = succeed(*night.words(warehouse), "engine.keep_prompts=false")
    assert "what scripted was sent is not kept" in printed
    calls = sql(warehouse, "from calls")
    assert len(calls) == 18  # six gists; of three questions a look-up, an answer and two verdicts
    sent = ("messages", "temperature", "seed", "max_reply_tokens", "constraint")
    assert all(call[name] is None for call in calls for name in sent)
    printed = succeed("trace", "q1", "--prompts", f"warehouse={warehouse}")
    assert printed.count("what was sent was not kept") == printed.count("reply (stop") == 7
    whole = succeed("report", f"warehouse={night.warehouse}")
    assert "was sent is not kept" not in whole
    # It shapes no reply: the same run goes on with it, or without.
    done = json.loads(succeed(*night.words(warehouse), "--json"))
    assert sum(done["calls"].values()) == 0


def test_trace_prints_every_call_under_its_memory_and_method(night: FinishedRun) -> None:
    words = ("trace", "q1", f"warehouse={night.warehouse}")
    memory, _, method = succeed(*words, "--prompts").partition("\n== readagent_p(max_pages=5)\n")
    assert memory.count("CALLS OF gist (3)") == 1 and memory.count("  user:") == 3
    assert [line.strip() for line in method.splitlines() if "CALLS OF" in line] == [
        "CALLS OF look_up (1)", "CALLS OF answer (1)", "CALLS OF rate (2)",
    ]  # fmt: skip
    assert "temperature 0, seed 0, at most 512 tokens of reply" in memory
    assert "      | Question: What is said in number 1 about mill1?" in method
    assert "      | I want to look up Page [1] to be sure" in method
    assert "CALLS OF" not in succeed(*words)


def test_trace_as_json_has_the_exact_text(night: FinishedRun) -> None:
    words = ("trace", "q1", "--json", f"warehouse={night.warehouse}")
    traced = json.loads(succeed(*words, "--prompts"))
    (method,) = traced["methods"]
    prompts = [call["prompt"] for call in method["calls"]]
    assert prompts == ["look_up_p", "answer", "rate_permissive", "rate_strict"]
    messages, sent = (
        {call["request_sha"]: call["messages"] for call in calls}
        for calls in (traced["memories"]["shared"]["calls"],
                      gistmill.sent(night.warehouse, document="d1"))
    )  # fmt: skip
    assert messages == sent
    plain = json.loads(succeed(*words))
    assert "calls" not in plain["methods"][0] and "calls" not in plain["memories"]["shared"]


def test_the_page_says_how_it_is_done_in_python(
    night: FinishedRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = [code for code in blocks("docs/looking.md", "py") if "gistmill.sent" in code]
    monkeypatch.chdir(night.warehouse.parent)
    exec(code.replace("tower", "night").replace("meeting-02", "q1"), {})
    assert capsys.readouterr().out.count("'role': 'user'") == 4
