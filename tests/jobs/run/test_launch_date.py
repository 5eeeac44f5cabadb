"""The time that prompts may show is that of a run's first launch, whenever it is resumed."""

import json
from datetime import datetime
from pathlib import Path

import pytest

import gistmill
from pipeline.core.engine import EngineSettings
from tests.support.texts.small_corpus import UNIFORM, document, question, write


def test_a_resumed_run_has_the_time_of_its_first_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[datetime] = []

    def of_run(settings: EngineSettings, launched_at: datetime) -> EngineSettings:
        times.append(launched_at)
        return settings

    monkeypatch.setattr(EngineSettings, "of_run", of_run)
    documents, questions = [document(1), document(2)], [question(1, of=1), question(2, of=2)]
    write(tmp_path / "corpus", documents, questions)
    words = [
        "run=night", "corpus=tables", f"corpus.path={tmp_path / 'corpus'}", *UNIFORM, "rater=none",
        "methods=gist_only", f"warehouse={tmp_path / 'w'}", "cluster=inline",
    ]  # fmt: skip
    gistmill.run(*words, "limit=1")
    file = tmp_path / "w/runs/night/provenance.json"
    stored = json.loads(file.read_text())
    assert {time.isoformat() for time in times} == {stored["launches"][0]["started_at"]}
    stored["launches"][0]["started_at"] = "2024-02-29T23:59:00+00:00"
    file.write_text(json.dumps(stored))
    times.clear()
    gistmill.run(*words, "limit=2")
    assert {time.isoformat() for time in times} == {"2024-02-29T23:59:00+00:00"}
