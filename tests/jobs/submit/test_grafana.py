"""The dashboard is one that Grafana reads, and asks only for what Ray exports."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from prometheus_client.parser import text_string_to_metric_families
from promql_parser import Expr, VectorSelector

from pipeline.cluster.ray_data import COUNTERS
from tests.support.command import ROOT, sql
from tests.support.engines.simulated import SIMULATED

DASHBOARD = json.loads((ROOT / "jobs" / "submit" / "grafana.json").read_text(encoding="utf-8"))
OURS = {f"ray_{name}_total" for name in COUNTERS}
OF_RAY = {"ray_node_gpus_utilization"}  # in percent of one GPU, by SessionName, ip and GpuIndex
TOKENS = ("prompt_tokens", "cached_tokens", "reply_tokens")
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
VARIABLES = {"$__rate_interval": "5m", "$__range": "12h", "$run": "night"}


def _of_query(query: str) -> Iterator[str]:
    try:
        selectors = list(_selectors(query))
    except ValueError as error:
        yield f"no PromQL: {error}"
        return
    for selector in selectors:
        runs = [m for m in selector.matchers.matchers if m.name == "run" and m.value == "night"]
        if selector.name not in OURS | OF_RAY:
            yield f"nothing exports {selector.name}"
        elif selector.name in OURS and not runs:
            yield f"{selector.name} of every run"


def _selectors(query: str) -> Iterator[VectorSelector]:
    """The metrics of a query, once Grafana's variables are filled in. Raises ValueError."""
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    met: list[Expr] = []
    promql_parser.walk(promql_parser.parse(query), met.append)
    yield from (part for part in met if isinstance(part, VectorSelector))


def queries(dashboard: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def test_its_queries_are_promql_of_the_chosen_run() -> None:
    assert [fault for query in queries(DASHBOARD) for fault in _of_query(query)] == []
    targets = [target for panel in DASHBOARD["panels"] for target in (panel, *panel["targets"])]
    assert all(target["datasource"] == DATASOURCE for target in targets)


def test_every_counter_is_shown() -> None:
    named = {selector.name for query in queries(DASHBOARD) for selector in _selectors(query)}
    assert named == OURS | OF_RAY


@pytest.mark.slow
def test_a_run_exports_its_counters(tmp_path: Path) -> None:
    """Eight documents of ten pages, which gist_only answers and full_text has no room for."""
    words = [
        "corpus=synthetic", "corpus.num_documents=8", "corpus.words=1000", "corpus.skew=0.0",
        "corpus.questions=1", "memory=uniform", "memory.words=100", "methods=gist_only,full_text",
        *SIMULATED, "engine.sequences=2", "engine.max_workers=1", "engine.reply_tokens=30",
        "engine.context_tokens=900", "rater=none", f"warehouse={tmp_path}", "run=night",
    ]  # fmt: skip
    command = [sys.executable, "-m", "tests.support.clusters.ray_metrics", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 3, done.stderr  # the problems are seen as well
    families = text_string_to_metric_families(done.stdout)
    samples = {
        sample.name: sample
        for family in families
        for sample in family.samples
        if sample.labels.get("phase", "reading") == "reading"
    }
    assert set(samples) >= OURS
    assert all(samples[name].value > 0 for name in OURS)
    for name in OURS:
        labels = samples[name].labels
        assert (labels["run"], labels["phase"]) == ("night", "reading")
    shown = {name: samples[f"ray_gistmill_{name}_total"].value for name in TOKENS}
    (made,) = sql(tmp_path, f"select {', '.join(f'sum({name})::int {name}' for name in TOKENS)}, "
                  "count(*) calls from calls")  # fmt: skip
    calls = samples["ray_gistmill_calls_total"].value
    assert 0 < calls <= made["calls"] and shown["reply_tokens"] == 30 * calls
    assert all(0 < shown[name] <= made[name] for name in TOKENS)
    # The GPUs of a node and our counters are matched by this one.
    assert samples["ray_node_cpu_utilization"].labels["SessionName"] == labels["SessionName"]
