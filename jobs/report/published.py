"""A paper's figures beside those of a run: published/EXPERIMENT.csv in our `conf`, or a plugin's,
by canonical `method`, `split` and `by`, if it is of one split or group alone, `measure`, `value`
(percent) and `paper`, the paper's name of the row."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs.config.options import ReadOptions
from jobs.output.cells import Heading, Part, Table
from jobs.report.report import Report, report_of
from pipeline.core.errors import UsageError
from pipeline.core.registry import existing_conf_folders, hint

_ABOUT = (
    "The paper's figures beside the run's. They come from other models, and in part from other "
    "questions: docs/papers.md says what is alike."
)
Figures = Sequence[Mapping[str, str]]


def published(options: ReadOptions) -> list[dict[str, Any]]:
    """A row per method, and split or group, of the paper's table, with both values of each measure.
    Raises UsageError if there are no figures of the run's experiment, or of its split."""
    with options.opened() as (folder, connection):
        config = (folder.config() or {})["config"]
        figures = figures_of(str(config["name"]), existing_conf_folders(config["plugins"]))
        split = config["corpus"].get("split")
        return _beside(report_of(connection, folder, options), figures, split, options.by)


def figures_of(experiment: str, confs: Sequence[Path]) -> Figures:
    """Raises UsageError if no `conf` folder has a file of the experiment."""
    files = {file.stem: file for conf in confs for file in (conf / "published").glob("*.csv")}
    if experiment not in files:
        near = hint(experiment, sorted(files))
        raise UsageError(f"--published: there are no figures of experiment={experiment}; {near}")
    with files[experiment].open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _beside(
    report: Report, figures: Figures, split: str | None, by: str | None
) -> list[dict[str, Any]]:
    headings = {column.measure: column.heading for column in report.columns}
    ours = {(row.method, row.by or ""): row.means for row in report.rows}
    splits = sorted({figure["split"] for figure in figures} - {""})
    if splits and split not in splits:
        raise UsageError(f"--published: the paper's figures are of {', '.join(splits)}; "
                         f"run it with corpus.split={splits[0]}")  # fmt: skip
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for figure in figures:
        method, of_split, group = figure["method"], figure["split"], figure["by"]
        if (of_split and of_split != split) or bool(group) != (by is not None):
            continue
        about = {"method": method, "paper": figure["paper"], "split": of_split, "by": group}
        given = {key: value for key, value in about.items() if value}
        row = rows.setdefault((method, of_split, group), given)
        name = headings.get(figure["measure"], figure["measure"])
        mean = ours.get((method, group), {}).get(figure["measure"])
        row[name] = mean and mean.mean
        row[f"{name} (paper)"] = float(figure["value"])
    if not rows:
        groups = ", ".join(sorted({figure["by"] for figure in figures} - {""}))
        what = "of all questions; leave by= out"
        if groups:
            what = f"by group, {groups}; add by=question_type"
        raise UsageError(f"--published: the paper's figures are {what}")
    return list(rows.values())


def published_parts(rows: Sequence[Mapping[str, Any]]) -> list[Part]:
    """The parts that are printed; every row of the table has all columns."""
    names = dict.fromkeys(name for row in rows for name in row)
    table = Table([{name: row.get(name) for name in names} for row in rows])
    return [Heading("published"), _ABOUT, table]
