"""How tokens are counted, with a model's tokenizer if this machine has it; and counts of some
documents, scaled to the corpus. No network, no model."""

from pathlib import Path
from typing import Any

import pytest

from jobs.graph.preparation import Prepared, prepare
from jobs.graph.resolved_run import read_run
from jobs.plan import estimate as counting
from jobs.plan.estimate import (
    CountingEngine,
    DryRunShards,
    TokenCounts,
    choose_sample,
    estimate,
    token_counts,
)
from pipeline.core.compose import compose
from pipeline.engines.vllm import VllmSettings
from pipeline.engines.vllm.chat_tokenizer import local_chat_tokenizer
from tests.jobs.plan.test_plan import planned
from tests.support.command import QMSUM
from tests.support.engines.tiny_model import make_tokenizer
from tests.support.texts.small_corpus import UNIFORM, document, question, write


def prepared(folder: Path, *words: str) -> Prepared:
    resolved = read_run([f"warehouse={folder / 'w'}", "rater=none", *words])
    shards = DryRunShards(resolved.config.warehouse)
    return prepare(resolved, resolved.config.warehouse, lambda line: None, shards)


def written(folder: Path, num_documents: int, *questions: dict[str, Any]) -> tuple[str, ...]:
    """Words of a corpus of documents of 30, 60 ... words."""
    numbers = range(1, num_documents + 1)
    write(folder, [{**document(n), "text": "word " * 30 * n} for n in numbers], [*questions])
    return ("corpus=tables", f"corpus.path={folder}", *UNIFORM)


def test_some_documents_stand_for_the_words_and_questions_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand: five documents of 30 to 150 words, of which two are counted."""
    asked = [question(10 * of + n, of=of) for of in range(1, 6) for n in range(of)]
    monkeypatch.setattr(counting, "_MAX_WORDS", 0)
    monkeypatch.setattr(counting, "_MIN_DOCUMENTS", 2)
    made = prepared(tmp_path, *written(tmp_path, 5, *asked), "methods=gist_only")
    sample = choose_sample(made)
    assert sample.num_documents == 5 and {*sample.scale.values()} != {1}
    assert [document.num_words for document in sample.documents] == [60, 150]
    names = {step.id: step.name for step in made.run.steps}
    scale = {names[step_id]: scale for step_id, scale in sample.scale.items()}
    assert scale["gist"] == pytest.approx((30 + 60 + 90 + 120 + 150) / (60 + 150))
    assert scale["answer"] == pytest.approx((1 + 2 + 3 + 4 + 5) / (2 + 5))


def test_a_step_that_few_documents_lack_is_counted_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten documents without a question, but for the shortest: it is counted for its answer."""
    monkeypatch.setattr(counting, "_MAX_WORDS", 0)
    monkeypatch.setattr(counting, "_MIN_DOCUMENTS", 1)
    made = prepared(tmp_path, *written(tmp_path, 10, question(1, of=1)), "methods=gist_only")
    estimated = estimate(made)
    assert [document.num_words for document in estimated.sample.documents] == [30, 180]
    (answer,) = [step for step in made.run.steps if step.name == "answer"]
    assert estimated.costs[answer.id][0] == 1


MEETINGS = ("corpus=qmsum", f"corpus.path={QMSUM}", "limit=2", "methods=gist_only", "rater=none")
TEXT = "The grandmothers of the remote control want it in yellow rubber, with fewer buttons. " * 40


def settings(folder: Path) -> VllmSettings:
    return VllmSettings.model_validate(compose(["engine=vllm", f"engine.model={folder}"])["engine"])


@pytest.mark.vllm
def test_a_local_tokenizer_counts(tmp_path: Path) -> None:
    make_tokenizer(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    counts = token_counts(settings(tmp_path), [TEXT[:2000]])
    chat = local_chat_tokenizer(str(tmp_path), settings(tmp_path))
    assert chat is not None
    asked = chat.tokenize([{"role": "user", "content": TEXT}])
    assert counts.of([{"role": "user", "content": TEXT}]) == pytest.approx(len(asked), rel=0.03)
    assert "the model's tokenizer" in counts.how
    words = ("engine=vllm", f"engine.model={tmp_path}", f"warehouse={tmp_path / 'w'}")
    plan = planned(*MEETINGS, *words)
    assert any("the model's tokenizer on some documents" in line for line in plan["assumptions"])


def test_without_one_tokens_are_estimated(tmp_path: Path) -> None:
    """A quarter of the bytes, and it says so; Chinese takes three bytes a sign."""
    (tmp_path / "config.json").write_text("{}")
    counts = token_counts(settings(tmp_path), [TEXT])
    assert counts.how.startswith("estimated, no tokenizer on this machine")
    assert counts.of_text("a" * 400) == 100
    assert counts.of_text("\u78e8" * 400) == 300
    words = ("engine=vllm", f"engine.model={tmp_path}", f"warehouse={tmp_path / 'w'}")
    told = planned(*MEETINGS, *words)["assumptions"]
    assert any(line.startswith("tokens of reading: estimated") for line in told)


def test_a_prompt_finds_what_an_earlier_one_began_with(tmp_path: Path) -> None:
    engine = CountingEngine(settings(tmp_path), TokenCounts(len, 0, ""))
    begin = "".join(f"{n:04}" for n in range(160))  # 640 characters, none of it twice
    assert engine.cached_share(begin + "x" * 360) == 0
    assert engine.cached_share(begin + "y" * 360) == 0.64
    assert engine.cached_share(begin[::-1]) == 0
