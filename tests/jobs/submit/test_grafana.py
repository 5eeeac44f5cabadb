"""The dashboard is one that Grafana reads, and asks only for what Ray exports."""

import json
import subprocess
import sys
from pathlib import Path

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


def test_its_queries_ask_for_what_is_exported_of_the_chosen_run() -> None:
    named = set[str]()
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            assert panel["datasource"] == target["datasource"] == DATASOURCE
            query = target["expr"]
            for variable, value in VARIABLES.items():
                query = query.replace(variable, value)
            parts: list[Expr] = []
            promql_parser.walk(promql_parser.parse(query), parts.append)
            for part in (part for part in parts if isinstance(part, VectorSelector)):
                runs = [m.value for m in part.matchers.matchers if m.name == "run"]
                assert part.name in OF_RAY or runs == ["night"], query
                named.add(part.name or query)
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
    for name in OURS:
        labels = samples[name].labels
        assert samples[name].value > 0
        assert (labels["run"], labels["phase"]) == ("night", "reading")
    sums = ", ".join(f"sum({name})::int as {name}" for name in TOKENS)
    (total,) = sql(tmp_path, f"select count(*) as calls, {sums} from calls")
    shown = {name: samples[f"ray_gistmill_{name}_total"].value for name in total}
    assert all(0 < shown[name] <= total[name] for name in total)
    assert shown["reply_tokens"] == 30 * shown["calls"]
    # The GPUs of a node and our counters are matched by this one.
    assert samples["ray_node_cpu_utilization"].labels["SessionName"] == labels["SessionName"]
