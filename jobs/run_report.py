"""Execute a run and report on it, as `gistmill run` and `gistmill.run` do."""

from collections.abc import Callable

from jobs.options import ReadOptions
from jobs.rate import shown_rater
from jobs.render import page, render
from jobs.report import Report, report_of
from jobs.run import Outcome, run
from jobs.run_config import RunConfig
from pipeline.place import place
from pipeline.store import connect
from pipeline.store.runs import RunFolder
from pipeline.units import ONCE, Retries


def run_and_report(
    config: RunConfig, warn: Callable[[str], None], retries: Retries | None = ONCE
) -> tuple[Outcome, Report]:
    """The outcome of a run and its report, which is also written to its folder. Raises as `run`."""
    outcome = run(config, warn, retries)
    folder = RunFolder(place(config.warehouse), outcome.run)
    with connect(folder.warehouse, outcome.run) as connection:
        rater = shown_rater(config, connection)
        made = report_of(connection, folder, ReadOptions(folder.warehouse, rater=rater))
    folder.write_report(page(render(made)))
    return outcome, made
