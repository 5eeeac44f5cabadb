"""The start of a run on many documents, measured on few."""

import pytest

from benchmarks.parts import bench
from pipeline.core.errors import UsageError


def test_only_its_size_may_be_changed() -> None:
    with pytest.raises(UsageError, match=r"engine: driver takes corpus\.num_documents; leave"):
        bench(["driver", "engine=vllm"], 1)


@pytest.mark.slow
def test_a_start_is_measured() -> None:
    found = bench(["driver", "corpus.num_documents=300"], 1)
    figures = {figure.what: figure.figure or 0.0 for figure in found}
    assert 0 < figures["seconds to the first reply"] <= figures["seconds until all is planned"]
    assert 100 < figures["MB of the driver"] < 1000
