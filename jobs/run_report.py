"""Execute a run and report on it, as `gistmill run` and `gistmill.run` do."""

from collections.abc import Callable

from jobs.options import ReadOptions
from jobs.rate import shown_rater
from jobs.render import page, render
from jobs.report import Report, make_report
from jobs.run import Outcome, run
from jobs.run_config import RunConfig
from pipeline.place import place
from pipeline.store.runs import RunFolder
from pipeline.units import ONCE, Retries


def run_and_report(
    config: RunConfig, warn: Callable[[str], None], retries: Retries | None = ONCE
) -> tuple[Outcome, Report]:
    """The outcome of a run and its report, which is also written to its folder. Raises as `run`."""
    outcome = run(config, warn, retries)
    warehouse, rater = place(config.warehouse), shown_rater(config, outcome.run)
    made = make_report(ReadOptions(warehouse, outcome.run, rater=rater))
    RunFolder(warehouse, outcome.run).write_report(page(render(made)))
    return outcome, made
