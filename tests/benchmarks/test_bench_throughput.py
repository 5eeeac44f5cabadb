"""`bench rates`: what one engine works through, for `plan --rates`."""

import json
import subprocess
import sys

import pytest

from tests.support.command import ROOT


@pytest.mark.slow
def test_a_simulated_engine_is_no_faster_than_it_says() -> None:
    """It can only be slower, on a busy machine; a tenth of it would be another mistake."""
    words = [
        "rates", "engine=simulated", "engine.sequences=4", "engine.reply_tokens=100",
        "engine.decode_tokens_per_second=100", "engine.prefill_tokens_per_second=8000",
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "jobs", "bench", *words, "--pairs", "1", "--json"],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    prefill, decode = json.loads(done.stdout)
    assert (prefill["what"], decode["what"]) == (
        "prompt tokens a second (PREFILL)", "reply tokens a second (DECODE)",
    )  # fmt: skip
    assert 800 < prefill["figure"] <= 8000
    assert 40 < decode["figure"] <= 4 * 100
