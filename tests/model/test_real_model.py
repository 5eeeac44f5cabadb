"""The demo, `ask` and `rate audit` by a real instruct model, whose folder GISTMILL_MODEL names."""

import json
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from pipeline.asking.replies import call_from_json
from pipeline.core.calls import Call
from tests.support.command import ROOT, sql

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]

LETTERS = {
    "anna": "The harvest was good this year and the weather stayed mild. We sold the cow.",
    "gerta": "Old Marten sold his lighthouse to a widow from Bergen. Nobody knows why.",
    "lena": "The school has a new teacher. She plays the organ, and the children like her.",
}
QUESTION = "Who bought the lighthouse from Marten?"
COMMAND = (sys.executable, "-m", "gistmill")


@pytest.fixture(scope="module")
def engine() -> list[str]:
    """The words that choose the model. It is an error, not a skip, where there is none."""
    folder = Path(os.environ["GISTMILL_MODEL"])
    assert (folder / "config.json").is_file(), f"{folder} holds no model"
    return ["engine=vllm", f"engine.model={folder}", "cluster=inline"]


def output(*words: str) -> str:
    done = subprocess.run([*COMMAND, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stdout + done.stderr  # 3: more problems than allowed
    return done.stdout


def journaled(warehouse: Path) -> dict[str, Call]:
    """The calls of open units that have a reply, by their requests."""
    files = [*warehouse.glob("journal/*/*")]
    lines = [line for file in files for line in file.read_bytes().splitlines()]
    return {call.request_sha: call for call in map(call_from_json, lines) if call}


class Demo:
    """The first text of the demo, read by gists and judged; killed in the middle, as by kill -9,
    once a unit has four replies, and resumed."""

    def __init__(self, folder: Path, engine: list[str]) -> None:
        self.warehouse = folder / "warehouse"
        words = [  # a small model that copies a page takes minutes
            "run", *engine, "corpus=demo", "limit=1", "methods=gist_only", "run=demo",
            "reply_tokens.gist=128", f"warehouse={self.warehouse}",
        ]  # fmt: skip
        with (folder / "log").open("wb") as log:
            first = psutil.Popen([*COMMAND, *words], cwd=ROOT, stdout=log, stderr=log)
        while len(journaled(self.warehouse)) < 4:
            assert first.poll() is None, "the run ended before it could be killed"
            time.sleep(0.5)
        for process in [*first.children(recursive=True), first]:
            process.kill()
        first.wait()
        self.before = journaled(self.warehouse)
        output(*words)

    def sql(self, query: str) -> list[dict[str, Any]]:
        return sql(self.warehouse, query, "run=demo")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, engine: list[str]) -> Demo:
    return Demo(tmp_path_factory.mktemp("demo"), engine)


def test_the_model_chooses_where_pages_end_and_every_reply_is_read(demo: Demo) -> None:
    by = {row["chosen_by"] for row in demo.sql("select distinct chosen_by from pages")}
    assert "model" in by and by <= {"model", "rule", "end"}
    (row,) = demo.sql("select sum(replies) as n, sum(unread + illegal) as bad from reply_health")
    assert row["n"] >= 20 and row["bad"] == 0
    (row,) = demo.sql("select count(*) as n from answers where problem is null")
    assert row["n"] == 10


def test_after_a_kill_nothing_is_asked_twice_but_what_was_in_flight(demo: Demo) -> None:
    calls = demo.sql("select request_sha, started_at::text as started_at from calls")
    started = {row["request_sha"]: datetime.fromisoformat(row["started_at"]) for row in calls}
    kept = started.keys() & demo.before.keys()
    assert len(kept) >= 2
    assert all(started[sha] == demo.before[sha].started_at for sha in kept)


def test_ask_names_the_letter_that_has_the_answer(tmp_path: Path, engine: list[str]) -> None:
    letters, warehouse = tmp_path / "letters", f"warehouse={tmp_path / 'asked'}"
    letters.mkdir()
    for name, news in LETTERS.items():
        text = f"Dear {name.title()},\n\nall of us are well here. {news}\n\nPlease write soon."
        (letters / f"{name}.txt").write_text(text)
    words = (*engine, warehouse, "memory=uniform", "method=bm25(top_k=1)", "--json")
    (answer,) = json.loads(output("ask", str(letters), QUESTION, *words))["results"]
    assert [page["file"] for page in answer["pages"]] == ["gerta.txt"]
    assert "widow" in answer["answer"].lower() or "bergen" in answer["answer"].lower()


def test_an_audit_gives_the_models_error_rates_as_a_judge(demo: Demo) -> None:
    words = ["run=demo", f"warehouse={demo.warehouse}", "n=1", "cluster=inline", "--json"]
    (audit,) = json.loads(output("rate", "audit", *words))["report"]["audits"]
    rates = {rate["kind"]: rate["mistakes"] for rate in audit["rates"] if rate["n"]}
    assert len(rates) >= 5 and all(0 <= rate <= 100 for rate in rates.values())
