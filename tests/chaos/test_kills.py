"""Runs whose processes are killed end as an undisturbed one, and repeat what was in flight."""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos import limits
from tests.chaos.kills import STRIKES, KillFigures, KillTrial, words
from tests.chaos.tables import Tables

Add = Callable[..., None]
Whole = tuple[list[str], Counter[str], Tables]
SHORT_KINDS = ["worker", "driver", "server", "raylet", "cluster"]
SHORT_DOCUMENTS, FULL_DOCUMENTS = 16, 64
FULL_TRIALS, STRIKES_OF_A_TRIAL = 13, 10


def undisturbed(folder: Path, num_documents: int) -> Whole:
    command = words(folder, num_documents)
    asked, whole = KillTrial(folder / "whole", command, 0, []).undisturbed()
    assert asked.total() == 31 * num_documents
    return command, asked, whole


def check(found: KillFigures, add: Add) -> None:
    for kind, number in Counter(found.struck).items():
        add(what="strikes by kind", kind=kind, number=number)
    add(what="kills", seed=found.seed, kills=found.kills, launches=len(found.ends),
        lost=found.lost, doubled=found.doubled, changed=found.changed, calls=found.calls,
        repeated=found.repeated)  # fmt: skip
    assert (found.lost, found.doubled, found.changed) == (0, 0, 0)
    assert found.repeated <= limits.REPEATED_PER_KILL * len(found.struck)


@pytest.mark.slow
@pytest.mark.sampled
def test_a_run_is_struck_five_times(tmp_path: Path, figures: Add) -> None:
    command, asked, whole = undisturbed(tmp_path, SHORT_DOCUMENTS)
    trial = KillTrial(tmp_path / "struck", command, 5, SHORT_KINDS)
    check(trial.run(asked, whole), figures)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return undisturbed(tmp_path_factory.mktemp("large"), FULL_DOCUMENTS)


@pytest.mark.chaos
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(FULL_TRIALS))
def test_a_run_of_2000_calls_is_struck(
    seed: int, large: Whole, tmp_path: Path, figures: Add
) -> None:
    command, asked, whole = large
    kinds = random.Random(seed).sample(STRIKES, STRIKES_OF_A_TRIAL)
    check(KillTrial(tmp_path, command, seed, kinds).run(asked, whole), figures)
