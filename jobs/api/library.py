"""The functions of `import gistmill` for scripts and notebooks."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jobs.compare.compare import Comparison
from jobs.compare.compare import compare as compare_methods
from jobs.config.options import ReadOptions
from jobs.config.run_config import RunConfig
from jobs.graph.resolved_run import ResolvedRun, read_run, resolve
from jobs.report.render import parts_of, report_page
from jobs.report.report import Report, make_report, report_of
from jobs.run.launch import Outcome
from jobs.run.launch import run as execute
from jobs.trace.trace import ReadingMap, read_reading_map, read_sent
from pipeline.core.errors import UsageError, redacted
from pipeline.files.storage import AnyPath, as_path, filesystem_errors, refusal_error
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder
from pipeline.work.units import RETRY_TIMEOUTS_ONCE, RetryPolicy

_LOG = logging.getLogger("gistmill")
_SHOWN_RATER = """select rater from raters group by rater
    order by bool_or(list_contains(?::varchar[], step_id)) desc, rater limit 1"""


@dataclass(frozen=True)
class RunResult(Outcome):
    """The result of a run. `exit_code` is that of `gistmill run`: 0 complete, 3 finished with more
    problems than allowed, 4 incomplete (the same call resumes)."""

    warehouse: str  # a folder or an address
    config: RunConfig
    report: Report

    def connect(self, unsafe: bool = False) -> Any:
        """A DuckDB connection with the views of this run; see `gistmill.connect`."""
        return connect(self.warehouse, self.run, unsafe)


def run(*words: str | RunConfig) -> RunResult:
    """Execute a run, or resume it: `run("experiment=qmsum", "limit=3")`, or `run(config)`.

    Warnings go to the logger `gistmill`. Unless cluster=inline, it uses the Ray that this process
    has joined, or starts one, which stays up for the next run. Raises CommandError: UsageError for
    a mistake, IncompleteError for a run that did not complete (the deadline, storage, an
    unreachable server or Ray), others for a crash.
    """
    texts = [word for word in words if isinstance(word, str)]
    if len(words) == 1 and isinstance(words[0], RunConfig):
        resolved = resolve(words[0])
    elif len(texts) < len(words):
        raise UsageError("gistmill.run: give one config, or words such as 'limit=3'")
    else:
        resolved = read_run(texts)
    try:
        outcome, report = run_and_report(resolved, lambda line: _LOG.warning("%s", redacted(line)))
    except filesystem_errors() as error:
        raise refusal_error(getattr(error, "filename", None) or "storage", error) from error
    config = resolved.config
    return RunResult(**vars(outcome), warehouse=config.warehouse, config=config, report=report)


def report(  # noqa: PLR0913  # they are its options
    warehouse: AnyPath = "warehouse",
    run: str | None = None,
    *,
    by: str | None = None,
    where: str | None = None,
    rater: str | None = None,
    price: str | None = None,
    split_shared: bool = False,
) -> Report:
    """The table of a run, by default the latest: a row per method, with its means by measure.

    `by` and `where` are SQL over the questions; `price` (PROMPT,REPLY[,CACHED], money a million
    tokens) adds money to the counts, `split_shared` divides the costs of shared memory steps among
    their methods. Raises UsageError.
    """
    return make_report(
        ReadOptions(
            as_path(warehouse), run, by, where, rater=rater, price=price, split_shared=split_shared
        )
    )


def compare(
    *methods: str,
    warehouse: AnyPath = "warehouse",
    run: str | None = None,
    metric: str | None = None,
    where: str | None = None,
    rater: str | None = None,
) -> Comparison:
    """Compare methods A and B on the questions for which both have a value: a row per metric. One
    method is compared, as A, with every other. `run` may name two runs, of which without methods
    each method of both is compared; `metric` several, separated by commas. Raises UsageError."""
    options = ReadOptions(as_path(warehouse), run, where=where, metric=metric, rater=rater)
    return compare_methods(options, methods)


def sent(
    warehouse: AnyPath = "warehouse",
    run: str | None = None,
    *,
    question: str | None = None,
    document: str | None = None,
) -> list[dict[str, Any]]:
    """The rows of `calls` for a question, or for a document's memories, in the order of the stages;
    `messages` is what the engine got, a list of {role, content}, or None if it was not kept. `run`
    is by default the latest. Raises UsageError."""
    return read_sent(ReadOptions(as_path(warehouse), run), question, document)


def reading_map(
    question: str, warehouse: AnyPath = "warehouse", run: str | None = None
) -> ReadingMap:
    """The text that each method read for a question, beside the gold evidence, as a picture."""
    return read_reading_map(ReadOptions(as_path(warehouse), run), question)


def config(*words: str) -> RunConfig:
    """The checked config that the words of `gistmill run` make. Raises UsageError."""
    return read_run(words).config


def run_and_report(
    resolved: ResolvedRun,
    warn: Callable[[str], None],
    retry_policy: RetryPolicy | None = RETRY_TIMEOUTS_ONCE,
) -> tuple[Outcome, Report]:
    """Execute the run and write its report to its folder. The report has the verdicts of the
    config's last rater if that is a model, else of the run's first by name. Raises as `run`."""
    reports: list[Report] = []
    last = resolved.config.model_copy(update={"raters": resolved.config.raters[-1:]})
    judges = last.engines("judge")
    judging = [
        step.id
        for step, engine in resolved.steps_with_engines
        if step.stage and step.stage.role == "judge" and engine in judges
    ]

    def look(connection: Any, folder: RunFolder) -> None:
        rater = connection.execute(_SHOWN_RATER, [judging]).fetchone()
        options = ReadOptions(folder.warehouse, rater=rater and rater[0])
        reports.append(report_of(connection, folder, options))
        folder.write_report(report_page(parts_of(reports[0])))

    return execute(resolved, warn, retry_policy, look), reports[0]
