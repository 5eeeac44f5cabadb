"""The facts that a paper must state of a run: corpus, methods, models, prompts, raters, metrics and
versions; as JSON and as printed parts."""

import importlib.metadata
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from jobs.config.options import ReadOptions
from jobs.output.print_tables import Heading, Part, Verbatim
from jobs.report.columns import PAPER, known_columns, read_names
from jobs.report.render import REPEATED
from jobs.report.report import Report, report_of
from jobs.statistics.statistics import LEAST_DOCUMENTS, RESAMPLES
from pipeline.core.sql_files import sql_beside
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)
MEANS = (
    "Means are over all answers of a method; an answer with a problem counts 0. Intervals are "
    f"95% percentile intervals of {RESAMPLES:,} bootstrap samples of documents (cluster "
    f"bootstrap), not given below {LEAST_DOCUMENTS} documents."
)
_WORDING = {"ours": "in our own words, not the papers'", "authors": "in the authors' words"}
_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    undefined=StrictUndefined,
    trim_blocks=True,
    autoescape=False,
)


def statement(options: ReadOptions) -> dict[str, Any]:
    """All facts that a paper must state of a run, as JSON. Raises UsageError for an unknown run."""
    with options.opened() as (folder, connection):
        raters = query(connection, _SQL["raters"])
        models = sorted({row["rater"] for row in raters if row["is_model"]})
        engines = [
            {"stage": row["stage"], "engine": json.loads(row["engine"]),
             "prompts": dict(item for text in row["prompts"] for item in json.loads(text).items())}
            for row in query(connection, _SQL["engines"])
        ]  # fmt: skip
        memories = query(connection, _SQL["fallback"])
        people = query(connection, "select rater, count(*) as labels from people group by all")
        num_questions = query(connection, _SQL["questions"])[0]["questions"]
        report = report_of(connection, folder, ReadOptions(rater=models[0] if models else None))
    facts = folder.report_facts("methods", "judging")
    foot, judging = report.foot, facts["judging"]
    size = {key: report.memory[key] for key in ("documents", "words")}
    columns, names = known_columns(report), read_names(options.names or PAPER, foot.get("plugins"))
    metrics = [{"name": column.measure, "heading": column.heading, "about": column.about}
               for column in (names.of_columns(columns) if names else columns)]  # fmt: skip
    started = ("started_at", "python", "hardware")
    launches = [{key: launch.get(key) for key in started} for launch in folder.readable_launches()]
    return {
        "run": folder.path.name,
        "inputs": report.inputs,
        "corpus": {"name": foot["corpus"], **size, "questions": num_questions},
        "repeats": foot["repeats"],
        "repeat_from": foot["repeat_from"],
        "methods": _methods(report, facts.get("imported", {})),
        "reading": [engine for engine in engines if engine["stage"] not in judging],
        "replies": foot["replies"],
        "prompts": {"family": foot["family"], "wording": foot["wording"]},
        "raters": raters,
        "rating": [engine for engine in engines if engine["stage"] in judging],
        "people": people,
        "metrics": metrics,
        "means": MEANS,
        "fallback": memories,
        "commits": foot["commits"],
        "versions": foot["versions"],
        "launches": launches,
        "papers": facts.get("papers", {}),
        "licences": facts.get("licences", {}),
        "other_models": foot["other_models"],
        "gistmill": _own_bibtex(foot),
    }


def _methods(report: Report, files: Mapping[str, str]) -> list[dict[str, Any]]:
    """`n` counts answers, over repeats; `sd` is that of the repeats' means, by measure."""
    return [
        {
            "method": row.method,
            **{name: row.counts.get(name) for name in ("n", "answered", "unscored")},
            "file": files.get(row.method),
            "sd": {name: mean.sd for name, mean in row.means.items() if mean.sd is not None},
        }
        for row in report.rows
    ]


def _own_bibtex(foot: Mapping[str, Any]) -> str:
    """BibTeX of the gistmill version that made the last rows, with its repository's URL."""
    version = foot["versions"].get("gistmill", importlib.metadata.version("gistmill"))
    urls = importlib.metadata.metadata("gistmill").get_all("Project-URL") or []
    url = next((url.partition(", ")[2] for url in urls if url.startswith("Repository,")), "")
    return (
        "@software{gistmill,\n"
        "  title = {gistmill: reads very long documents and answers from memory},\n"
        "  author = {{The gistmill contributors}},\n"
        f"  url = {{{url}}},\n"
        f"  version = {{{version}, commit {', '.join(foot['commits'])}}}\n}}"
    )


def cite_parts(facts: Mapping[str, Any]) -> list[Part]:
    """What `statement` returned, as paragraphs."""
    wording = facts["prompts"]["wording"]
    text = _TEMPLATES.get_template("cite.jinja").render(
        facts, repeated=REPEATED, wording=_WORDING.get(wording, f"in {wording} words")
    )
    paragraphs = [part.strip("\n") for part in text.split("\n\n") if part.strip()]
    entries = map(Verbatim, (facts["gistmill"], *facts["papers"].values()))
    return [Heading(facts["run"]), *paragraphs, "BibTeX:", *entries]
