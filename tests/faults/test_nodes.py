"""Several machines: a Ray of several nodes on this one, with different resources each."""

import functools
import json
import os
import platform
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

from jobs.graph.resolved_run import read_run
from jobs.run.launch import Outcome, run
from pipeline.cluster import Pool, execute_documents
from pipeline.core.errors import CommandError, UsageError
from pipeline.work.units import DocumentWork, work_on
from pipeline.worker.crashes import InFlight, Placement
from pipeline.worker.progress import Summary
from tests.support.clusters.cluster_settings import LOCAL
from tests.support.command import ROOT, sql
from tests.support.engines.simulated import PLUGIN, SIMULATED

pytestmark = [pytest.mark.slow, pytest.mark.sampled]

WORDS = (
    "corpus=synthetic", "corpus.words=1500", "corpus.skew=0.5", "corpus.questions=2",
    *SIMULATED, "engine.gpus_per_worker=1", "engine.sequences=2",
    "engine.cpus_per_worker=0.1", "engine.decode_tokens_per_second=200", "memory=uniform",
    "methods=gist_only", "rater=none", "cluster.scoring_workers=1",
)  # fmt: skip


@pytest.fixture
def cluster(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A machine with two GPUs and a head, the driver's, with as many as the parameter says."""
    # Which a new node sets, and no thread but the main one may.
    monkeypatch.setattr(ray._private.utils, "set_sigterm_handler", lambda handler: None)
    monkeypatch.delenv("RAY_OVERRIDE_RESOURCES", raising=False)
    ray.shutdown()  # of the tests before
    gpus = getattr(request, "param", 0)
    machines: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "num_gpus": gpus})
    machines.add_node(num_cpus=1, num_gpus=2)
    ray.init(address=machines.address, log_to_driver=False)
    yield machines
    ray.shutdown()
    machines.shutdown()


def go(warehouse: Path, *words: str) -> Outcome:
    return run(read_run([*WORDS, f"warehouse={warehouse}", *words]), warn=lambda line: None)


def shards(warehouse: Path) -> dict[str, int]:
    """The files that workers committed, and when each was made."""
    files = {str(f): f.stat().st_mtime_ns for f in warehouse.glob("tables/*/*/*.parquet")}
    return {f: at for f, at in files.items() if not re.search("/(documents|questions)/", f)}


def rows(warehouse: Path) -> list[dict[str, Any]]:
    """Answers and scores, as every run of the same words has them."""
    return sql(
        warehouse,
        """select a.question_id, answer, page_indexes, metric, value
        from answers a join scores using (question_id) order by all""",
    )


@pytest.mark.parametrize("cluster", [2], indirect=True)
def test_engines_share_the_work_where_the_gpus_are(cluster: Any, tmp_path: Path) -> None:
    """They release the GPUs before scoring. The longest documents are dealt to all of them, not to
    those alone on the driver's machine, where Ray keeps the blocks."""
    outcome = go(tmp_path / "a", "corpus.num_documents=40")
    assert outcome.exit_code == 0
    units = outcome.workers["reading"]
    assert len(units) == 4
    assert min(units.values()) >= 0.15 * sum(units.values())
    actors = sorted(ray._private.state.actors().values(), key=lambda actor: actor["StartTime"])
    *readers, scorer = (actor for actor in actors if "MapWorker" in actor["ActorClassName"])
    assert len(readers) == 4
    assert len({actor["Address"]["NodeID"] for actor in readers}) == 2
    assert max(actor["EndTime"] for actor in readers) <= scorer["StartTime"]
    assert go(tmp_path / "b", "corpus.num_documents=12", "corpus.skew=1.0").exit_code == 0
    rows_of_workers = sql(
        tmp_path / "b",
        """select list(distinct worker) from calls join documents using (document_id)
        group by document_id, num_words order by num_words desc limit 4""",
    )
    longest = [worker for (workers,) in map(dict.values, rows_of_workers) for worker in workers]
    assert len(longest) == len(set(longest)) == 4


def test_machines_come_and_go(cluster: Any, tmp_path: Path) -> None:
    """One joins and is used, another goes: that costs what it had in flight, and no row."""
    first = next(node for node in cluster.list_all_nodes() if node != cluster.head_node)
    committed: dict[str, int] = {}

    def come_and_go() -> None:
        while not shards(tmp_path / "a"):
            time.sleep(0.2)
        cluster.add_node(num_cpus=1, num_gpus=2, wait=False)
        while len(shards(tmp_path / "a")) < 250:
            time.sleep(0.2)
        cluster.remove_node(first, allow_graceful=False)
        committed.update(shards(tmp_path / "a"))
        threading.Event().wait()  # Ray's processes end with the thread that started them

    threading.Thread(target=come_and_go, daemon=True).start()
    outcome = go(tmp_path / "a", "corpus.num_documents=140")
    assert outcome.exit_code == 0
    units = sorted(outcome.workers["reading"].values())
    assert len(units) >= 4 and units[-4] > 20
    after = shards(tmp_path / "a")
    assert 250 <= len(committed) < len(after) - 200  # it went in the midst of the work
    assert committed.items() < after.items()
    fast = ("engine.decode_tokens_per_second=5000", "engine.sequences=8")
    assert go(tmp_path / "b", "corpus.num_documents=140", *fast).exit_code == 0
    assert rows(tmp_path / "a") == rows(tmp_path / "b")


def test_what_no_machine_has_is_refused_at_once(cluster: Any, tmp_path: Path) -> None:
    """Before the corpus is read, with nothing left behind."""
    words = ("engine.gpus_per_worker=3", "cluster=ray", "cluster.address=auto")
    with pytest.raises(UsageError, match=r"^engine\.gpus_per_worker=3, .* 2 machines with 2 GPUs"):
        go(tmp_path / "w", *words)
    cluster.add_node(num_cpus=1, num_gpus=2)
    with pytest.raises(UsageError, match=r"0 workers .* fit on 3 machines with 4 GPUs"):
        go(tmp_path / "w", *words)
    assert not (tmp_path / "w" / "tables").exists()


def test_what_a_plugin_imports_is_missing_on_one_machine(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line that names it: the other machine and the driver have the module."""
    plugin, modules = tmp_path / "needy_plugin", tmp_path / "modules"
    plugin.mkdir()
    modules.mkdir()
    (plugin / "needy.py").write_text("import only_there\n")
    (modules / "only_there.py").write_text("")
    monkeypatch.syspath_prepend(modules)
    monkeypatch.setattr("pipeline.core.registry._FOLDERS", {})
    there = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(modules)])}
    cluster.add_node(num_cpus=1, num_gpus=2, env_vars=there)
    with pytest.raises(UsageError) as raised:
        go(tmp_path / "w", "corpus.num_documents=40", f"{PLUGIN},{plugin}")
    assert str(raised.value).startswith(
        f"on the machine {platform.node()}: plugins=needy_plugin: cannot be imported: "
        "ModuleNotFoundError: No module named 'only_there' ("
    )
    assert str(raised.value).endswith("; install there what plugins need")


class Lost:
    """A worker that loses its machine the first time."""

    def __init__(self, folder: Path, placement: Placement) -> None:
        self._folder = folder
        self._markers = InFlight(folder / "markers", placement)

    async def work(self, document_id: str, units: Any, num_words: int) -> Summary:
        crashes = self._markers.crashes(document_id)
        async with self._markers.attempt(document_id, crashes):
            if not (self._folder / "lost").exists():
                (self._folder / "lost").touch()
                os.kill(os.getppid(), signal.SIGKILL)  # the raylet's, as all its processes'
                os._exit(1)
        (self._folder / "together").write_text(json.dumps(crashes.together))
        return Summary(document_id)


def test_a_machine_that_is_lost_makes_no_suspects(tmp_path: Path, cluster: Any) -> None:
    """It takes its worker along: its documents are executed again."""
    cluster.add_node(num_cpus=1, num_gpus=2)
    pool = Pool(
        section="engine", min_workers=1, max_workers=1, cpus=1, gpus=1, slots=1, cluster=LOCAL
    )
    make: Any = functools.partial(Lost, tmp_path)
    done: list[Summary | CommandError] = []
    work = work_on([DocumentWork("d1", [], 1.0, 1)])
    execute_documents(make, pool, work, lambda: None, done.append)
    assert done == [Summary("d1", words=1.0)]
    assert json.loads((tmp_path / "together").read_text()) is None
