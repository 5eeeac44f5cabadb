"""A run as a Slurm script. `python -m jobs.submit.slurm HOST:PORT NUMBER MINUTES` in it waits for
the nodes of its Ray; exit code 4 if fewer have joined in time."""

import shlex
import sys
from collections.abc import Sequence

from jobs.config.run_config import SlurmCluster
from jobs.graph.resolved_run import ResolvedRun
from jobs.submit.package import filled_template, gpus_of_a_machine, words_in_place
from pipeline.core.errors import IncompleteError


def slurm_script(run: ResolvedRun, words: Sequence[str]) -> str:
    cluster = run.config.cluster
    assert isinstance(cluster, SlurmCluster)
    there = words_in_place(run, words)
    return filled_template(
        "slurm.sh.jinja",
        cluster=cluster,
        name=f"gistmill-{run.name}",
        words=shlex.join(["-m", "gistmill", "run", *there]),
        gpus=gpus_of_a_machine(run.config),
    )


if __name__ == "__main__":
    from pipeline.cluster.ray_jobs import wait_for_nodes

    wanted, minutes = int(sys.argv[2]), float(sys.argv[3])
    joined = wait_for_nodes(sys.argv[1], wanted, 60 * minutes)
    if joined < wanted:
        sys.stderr.write(
            f"gistmill: {joined} of {wanted} nodes joined within cluster.wait_minutes={minutes:g}; "
            "submit the same script to resume\n"
        )
        sys.exit(IncompleteError.exit_code)
