"""What was sent is shown as it was, or the call says why it cannot be."""

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.trace.sent import Sent
from pipeline.core.errors import LeftOutWarning, UsageError
from pipeline.families.family import Family
from pipeline.store.runs.kept_families import kept_families
from pipeline.store.upkeep.compaction import compact
from pipeline.work.units import RETRYABLE, RetryPolicy
from tests.support.command import gistmill, one_line, succeed
from tests.support.docs.pages import blocks
from tests.support.reading import written_family
from tests.support.runs.finished_run import FinishedRun
from tests.support.runs.hostile_run import HostileRun, book_words
from tests.support.runs.shown_calls import as_asked, as_shown, problems, shown

NUM_CALLS = 18  # six gists; of three questions a look-up, an answer and two verdicts each


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return FinishedRun(tmp_path_factory.mktemp("made"))


@pytest.fixture
def warehouse(made: FinishedRun, tmp_path: Path) -> Path:
    return made.copied(tmp_path)


def changed(shard: Path, column: str, change: Callable[[Any], Any]) -> None:
    """Replace the shard's values of a column; its footer stays, as if nothing had happened."""
    rows = pq.read_table(shard)
    values = pa.array([change(value) for value in rows[column].to_pylist()], rows[column].type)
    place = rows.schema.get_field_index(column)
    pq.write_table(rows.set_column(place, rows.schema.field(column), values), shard)


def in_copy(made: FinishedRun, warehouse: Path, table: str) -> Path:
    return warehouse / made.shard(table).relative_to(made.warehouse)


def test_messages_settings_and_the_row_of_a_call(warehouse: Path) -> None:
    found = shown(warehouse)
    assert problems(found) == {} and len(found) == NUM_CALLS
    (answer,) = [o for o in Sent(warehouse).of_question("q2") if o.call["stage"] == "answer"]
    assert answer.messages is not None
    (message,) = answer.messages
    assert message["role"] == "user"
    # The page that was looked up stands in place of its gist, the others as the script has them.
    assert "What is said in number 2 about mill1?" in message["content"]
    assert message["content"].count("as it was") == 2
    assert "paragraph two ends here." in message["content"]
    assert answer.settings == {
        "temperature": 0.0, "seed": 0, "max_reply_tokens": 512, "constraint": None,
    }  # fmt: skip
    assert (answer.call["method"], answer.call["repeat"]) == ("readagent_p(max_pages=5)", 0)
    assert (answer.call["reply"], answer.call["attempt"]) == ("as it was", 1)


def test_the_calls_of_a_memory_are_asked_for_by_document(warehouse: Path) -> None:
    sent = Sent(warehouse)
    assert [one.call["page_index"] for one in sent.of_document("d2")] == [0, 1, 2]
    assert {one.call["memory"] for one in sent.of_document("d2")} == {"shared"}
    with pytest.raises(UsageError, match="d22: no such document in the run; nearest: d2"):
        sent.of_document("d22")
    with pytest.raises(UsageError, match="q11: no such question in the run; nearest: q1"):
        sent.of_question("q11")


def test_in_a_notebook_whose_loop_is_running(warehouse: Path) -> None:
    async def cell() -> int:
        return len(Sent(warehouse).of_question("q1"))

    assert asyncio.run(cell()) == 4


@pytest.mark.slow
def test_in_a_compacted_warehouse(warehouse: Path) -> None:
    before = shown(warehouse)
    assert compact(warehouse, least=1)
    shutil.rmtree(warehouse / "tables")  # as gc does some time later
    assert shown(warehouse) == before


@pytest.mark.slow
def test_two_runs_that_share_their_steps(made: FinishedRun, warehouse: Path) -> None:
    shutil.copytree(warehouse / "runs" / "night", warehouse / "runs" / "day")
    assert problems(shown(warehouse, "day")) == problems(shown(warehouse, "night")) == {}


@pytest.mark.slow
def test_a_changed_row_is_reported_and_not_shown(made: FinishedRun, warehouse: Path) -> None:
    changed(in_copy(made, warehouse, "pages"), "text", lambda text: text.replace("mill", "mi11"))
    found = shown(warehouse)
    # Of d1: its gists and answers show text; its look-ups show the stored gists alone.
    lost = {(o.call["document_id"], o.call["prompt"]) for o in found if o.why_not}
    assert lost == {("d1", "gist"), ("d1", "answer")}
    (why,) = problems(found)
    assert why.startswith("rendered again it is another request")
    assert all(one.messages is None and one.settings is None for one in found if one.why_not)


@pytest.mark.slow
def test_a_changed_question_is_reported(made: FinishedRun, warehouse: Path) -> None:
    changed(in_copy(made, warehouse, "questions"), "question", str.upper)
    lost = {o.call["prompt"] for o in shown(warehouse) if o.why_not}
    assert lost == {"look_up_p", "answer", "rate_strict", "rate_permissive"}


def test_a_changed_hash_is_reported(made: FinishedRun, warehouse: Path) -> None:
    changed(in_copy(made, warehouse, "calls"), "request_sha", lambda sha: sha[::-1])
    lost = [one for one in shown(warehouse) if one.why_not]
    assert [(o.call["document_id"], o.call["prompt"]) for o in lost] == [("d1", "gist")] * 3


def test_missing_rows_are_reported(made: FinishedRun, warehouse: Path) -> None:
    in_copy(made, warehouse, "gists").unlink()
    found = shown(warehouse)
    assert problems(found) == {"the gists that it was made from are missing": 4}
    assert {o.call["prompt"] for o in found if o.why_not} == {"look_up_p", "answer"}


@pytest.mark.slow
def test_a_torn_shard_is_reported(made: FinishedRun, warehouse: Path) -> None:
    shard = in_copy(made, warehouse, "gists")
    shard.write_bytes(shard.read_bytes()[:100])
    with pytest.warns(LeftOutWarning):  # by the views
        (why,) = problems(shown(warehouse))
    assert why.startswith(str(shard)) and "cannot be read" in why


def test_calls_that_cannot_be_read_are_left_out_with_a_warning(
    made: FinishedRun, warehouse: Path
) -> None:
    shard = in_copy(made, warehouse, "calls")
    shard.write_bytes(shard.read_bytes()[:100])
    with pytest.warns(LeftOutWarning, match=shard.name):
        assert Sent(warehouse).of_document("d1") == []
    assert len(Sent(warehouse).of_document("d2")) == 3


@pytest.mark.parametrize("content", [None, b"{", b"[]", b'{"stage": "gist"}'])
def test_a_damaged_step_is_reported(warehouse: Path, content: bytes | None) -> None:
    (file,) = (warehouse / "steps").glob("gist-*.json")
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    sent = Sent(warehouse)
    lost = [*sent.of_document("d1"), *(o for o in sent.of_question("q1") if o.why_not)]
    assert [one.call["stage"] for one in lost] == [*["gist"] * 3, "look_up", "answer"]
    assert all(f"steps/{file.name}" in str(one.why_not) for one in lost)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"settings": {"kind": "memory", "colour": "red"}},
            "the stage answer (kind memory) has other settings here: first_page: Field required",
        ),
        (
            {"stage": "quote"},
            "the stage quote (kind memory) is of a plugin that is not loaded; name it with "
            "plugins=DIR",
        ),
        ({"engine": None}, "ID.json names no engine"),
        ({"engine": {"engine": "vllm", "temperature": "hot"}}, "ID.json names no engine"),
        ({"upstream": []}, "the pages that it was made from are missing"),
    ],
)
def test_a_stage_that_is_not_here_is_reported(
    warehouse: Path, change: dict[str, Any], why: str
) -> None:
    (file,) = (warehouse / "steps").glob("answer-*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    found = [one for one in shown(warehouse) if one.call["step_id"] == file.stem]
    assert problems(found) == {why.replace("ID", f"steps/{file.stem}"): 3}


def test_another_version_of_a_stage_is_named_where_calls_differ(
    made: FinishedRun, warehouse: Path
) -> None:
    (file,) = (warehouse / "steps").glob("gist-*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": 99}))
    assert problems(shown(warehouse)) == {}, "rendered again they are what was sent"
    changed(in_copy(made, warehouse, "pages"), "text", str.upper)
    whys = [str(one.why_not) for one in Sent(warehouse).of_document("d1")]
    assert all("it was made by version 99, this gistmill has" in why for why in whys)


def kept(warehouse: Path) -> Path:
    (file,) = (warehouse / "runs" / "night" / "families").glob("*.json")
    return file


def test_the_templates_of_the_run_are_kept_whole(warehouse: Path, made: FinishedRun) -> None:
    (family,), damaged = kept_families(made.small.shards.warehouse / "runs" / "night")
    own = made.small.resolved.family
    assert damaged == []
    for name in ("name", "wording", "settings", "judging", "reply_tokens", "forms", "sources"):
        assert getattr(family, name) == getattr(own, name)
    assert str(Path.home()) not in kept(warehouse).read_text()


@pytest.mark.slow
def test_a_run_of_an_earlier_version_is_shown_by_templates_that_are_the_same(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(kept(warehouse).parent)
    assert problems(shown(warehouse)) == {}
    sha = Family.sha
    monkeypatch.setattr(
        Family, "sha", lambda self, p: "0" * 8 if p.name == "gist" else sha(self, p)
    )
    assert problems(shown(warehouse)) == {
        "the run kept no templates, as an earlier version started it, and those of gist are not "
        "here as they were": 6
    }


class Night(HostileRun):
    """Sampled, twice, with replies that fail and are asked again; by a family of one's own."""

    def __init__(self, folder: Path) -> None:
        self.family = written_family(folder)
        template = "{{ segment if segment is defined }}Now answer: {{ question }}\n"
        (self.family / "answer.jinja").write_text(template)
        words = book_words(folder, 8, 4)
        methods = "methods=closed_book,readagent_s(max_pages=3),bm25(top_k=1)"
        super().__init__(
            folder,
            [*words[:-1], methods, f"family={self.family}", "engine.temperature=0.7", "repeats=2"],
            seed=5,
        )

    @contextmanager
    def edited(self) -> Iterator[None]:
        """Another template in the `with` block."""
        template = self.family / "answer.jinja"
        before = template.read_text()
        template.write_text("Say something else: {{ question }}")
        try:
            yield
        finally:
            template.write_text(before)


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Night:
    made = Night(tmp_path_factory.mktemp("night"))
    made.work()
    made.work(RetryPolicy(frozenset(RETRYABLE)))
    return made


@pytest.mark.slow
def test_repeats_and_retries_are_shown_with_their_seeds(night: Night) -> None:
    found = shown(night.config.warehouse)
    assert problems(found) == {}
    asked = Counter(map(as_asked, night.engine.asked))
    assert {as_shown(one) for one in found} <= set(asked)
    assert len({o.settings["seed"] for o in found if o.settings}) > 3
    assert {o.call["repeat"] for o in found} == {0, 1}
    assert max(o.call["attempt"] for o in found) > 1
    again = [unit for unit in night.units if unit[2] > 1]
    assert again and {o.call["unit"] for o in found} & {unit for _, unit, _ in again}


@pytest.mark.slow
def test_an_edit_of_the_family_afterwards_changes_nothing(night: Night) -> None:
    before = [as_shown(one) for one in shown(night.config.warehouse)]
    with night.edited():
        assert [as_shown(one) for one in shown(night.config.warehouse)] == before
    assert any(content.startswith("Now answer:") for _, _, content, *_ in before)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace("Now answer", "Then answer"),
        lambda text: text[:100],
        lambda text: "[]",
    ],
)
def test_a_kept_template_that_was_changed_is_reported(
    night: Night, tmp_path: Path, damage: Callable[[str], str]
) -> None:
    warehouse = Path(shutil.copytree(night.config.warehouse, tmp_path / "warehouse"))
    file = kept(warehouse)
    file.write_text(damage(file.read_text()))
    assert problems(Sent(warehouse).of_question("q1")) == {}, "the family is as it was"
    with night.edited():
        found = Sent(warehouse).of_question("q1")
    lost = [one for one in found if one.why_not]
    assert {one.call["prompt"] for one in lost} == {"answer"}
    assert all(f"its templates cannot be read: {file}: " in str(one.why_not) for one in lost)


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
        str(one.call["request_sha"]): [dict(m) for m in one.messages or ()]
        for one in Sent(warehouse).of_document("d1")
    }
    plain = json.loads(succeed("trace", "q1", "--json", f"warehouse={warehouse}"))
    assert "calls" not in plain["methods"][0] and "calls" not in plain["memories"]["shared"]


def test_trace_says_why_a_call_is_not_shown(made: FinishedRun, warehouse: Path) -> None:
    in_copy(made, warehouse, "gists").unlink()
    printed = succeed("trace", "q1", "--prompts", f"warehouse={warehouse}")
    why = "what was sent cannot be shown: the gists that it was made from are missing"
    assert printed.count(why) == 2


def test_control_characters_do_not_reach_the_terminal(night: Night) -> None:
    done = gistmill("trace", "q1", "--prompts", f"warehouse={night.config.warehouse}")
    assert done.returncode == 0, done.stderr
    shown_chars = set(done.stdout) - {"\n", "\t"}
    assert all(char.isprintable() for char in shown_chars)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["q9"], "q9: no such question in the run; nearest: "),
        (["q1", "run=dawn"], "run=dawn: not in "),
        (["q1", "method=bm25"], "method=bm25: no such method has answered q1"),
        (["q1", "plugins=nowhere"], "plugins=nowhere: no such folder"),
    ],
)
def test_mistakes_are_one_line(warehouse: Path, words: list[str], says: str) -> None:
    done = gistmill("trace", *words, "--prompts", f"warehouse={warehouse}")
    assert done.returncode == 2 and says in one_line(done)


def test_the_page_says_how_it_is_done_in_python(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = [code for code in blocks("docs/looking.md", "py") if "import Sent" in code]
    monkeypatch.chdir(warehouse.parent)
    exec(code.replace("tower", "night").replace("meeting-02", "q1"), {})
    assert capsys.readouterr().out.count("'role': 'user'") == 4


def test_a_unit_without_its_own_rows_is_shown_all_the_same(
    made: FinishedRun, warehouse: Path
) -> None:
    """The calls of a unit are committed before its rows."""
    in_copy(made, warehouse, "gists").unlink()
    assert [one.why_not for one in Sent(warehouse).of_document("d1")] == [None] * 3
