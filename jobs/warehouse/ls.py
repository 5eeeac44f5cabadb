"""`gistmill ls`: lists the choices for a run, or the runs and steps of a warehouse."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, groupby, takewhile
from pathlib import Path
from typing import Any

from upath import UPath

from jobs.config.read_config import GROUPS
from jobs.output.cells import Heading, Part, Table
from pipeline.core.errors import UsageError
from pipeline.core.registry import REGISTRIES, hint, load_plugins, maker_of, plugin_folders
from pipeline.core.settings import CONF
from pipeline.families.family import read_family_file
from pipeline.files.lease import RUN, holder
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connect import readable_run
from pipeline.store.sql.connection import query
from pipeline.work.methods import methods_in
from stages.builtin import load_builtin

Rows = list[dict[str, Any]]
KIND = " (kind "  # in the label of a stage


def registered() -> dict[str, Rows]:
    """By kind, a row for each registered one: name, first sentence, module."""
    load_builtin()
    return {
        kind: [
            {
                "name": name,
                "about": registry.about[name],
                "module": maker_of(registry[name]).__module__,
            }
            for name in sorted(registry)
        ]
        for kind, registry in sorted(REGISTRIES.items())
    }


def names_table(found: Mapping[str, Rows]) -> Table:
    """A row per kind, with all its names."""
    rows = [
        {"kind": kind, "names": ", ".join(_with_kinds([row["name"] for row in rows]))}
        for kind, rows in found.items()
    ]
    return Table(rows, left=("names",))


def _with_kinds(names: Sequence[str]) -> Iterator[str]:
    """A stage with several kinds only once, with its kinds in brackets."""
    for name, labels in groupby(names, key=lambda name: name.partition(KIND)[0]):
        kinds = [label.partition(KIND)[2].rstrip(")") for label in labels]
        if "" in kinds:
            yield name
        if any(kinds):
            yield f"{name} ({', '.join(filter(None, kinds))})"


def listing(
    warehouse: UPath | None, plugins: str | None, kind: str | None = None
) -> dict[str, Rows]:
    """The runs and steps of a warehouse; without one the choices of every config group, the methods
    and families, and everything registered, also by plugins. With `kind` only these. Raises
    UsageError for an unknown kind."""
    if warehouse is not None:
        found = _warehouse(warehouse)
    else:
        found = _choices([CONF, *load_plugins(plugin_folders(plugins))])
    if kind is not None and kind not in found:
        raise UsageError(f"ls {kind}: no such kind; {hint(kind, [*found])}")
    return found if kind is None else {kind: found[kind]}


def listing_parts(found: Mapping[str, Rows]) -> Iterator[Part]:
    """A table per kind, except damaged files, which are on standard error. For registered kinds
    only the names are printed, unless there is just one kind."""
    of_code = {name: rows for name, rows in found.items() if rows and "module" in rows[0]}
    of_code = of_code if len(found) > 1 else {}
    for name, rows in found.items():
        if name != "left_out" and name not in of_code:
            names = [*rows[0]] if rows else []
            texts = [n for n in names if not any(isinstance(row[n], int) for row in rows)]
            yield Heading(name, 2)
            yield Table([_shown(row, rows) for row in rows], left=texts)
    if of_code:
        yield Heading("by kind", 2)
        yield names_table(of_code)
        yield "gistmill ls KIND says what each is, gistmill schema NAME all about one."


def _shown(row: Mapping[str, Any], rows: Rows) -> dict[str, Any]:
    """Times to the minute, repeats only if there are some."""
    shown = {k: v.replace("T", " ")[:16] if k == "started_at" and v else v for k, v in row.items()}
    if not any(row.get("repeat") for row in rows):
        shown.pop("repeat", None)
    return shown


def _choices(folders: Sequence[Path]) -> dict[str, Rows]:
    """Each choice with the first sentence of its file's comment."""

    def files(pattern: str) -> list[Path]:
        return [file for folder in folders for file in sorted(folder.glob(pattern))]

    groups = {group: [_row(file) for file in files(f"{group}/*.yaml")] for group in GROUPS}
    methods = []
    for file, arguments in methods_in([folder / "method" for folder in folders]).values():
        pairs = (f"{key}={'...' if value is None else value}" for key, value in arguments.items())
        methods.append({**_row(file), "arguments": ", ".join(pairs)})
    families = [
        {"name": file.parent.name, "base": ", ".join(read_family_file(file.parent).base)}
        for file in files("prompts/*/family.yaml")
    ]
    return {**groups, "methods": methods, "families": families, **registered()}


def _row(file: Path) -> dict[str, Any]:
    lines = file.read_text(encoding="utf-8").splitlines()
    lines_on = dropwhile(lambda line: not line.startswith("# ") or "@package" in line, lines)
    comment = " ".join(line[2:] for line in takewhile(lambda line: line.startswith("# "), lines_on))
    return {"name": file.stem, "about": re.split(r"(?<=\.)\s", comment)[0]}


def _warehouse(warehouse: UPath) -> dict[str, Rows]:
    """The latest run first."""
    with connect(warehouse, readable_run(warehouse)) as connection:
        found = query(connection, _RUNS)
        counts = query(connection, _COUNTS)
        steps = query(connection, _STEPS)
        left_out = query(connection, "from left_out")
    runs = [_run(RunFolder(warehouse, row["run"]), row, counts) for row in found]
    runs.sort(key=lambda row: row["started_at"] or "", reverse=True)
    return {"runs": runs, "steps": steps, "left_out": left_out}


def _run(
    folder: RunFolder, row: dict[str, Any], counts: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    nothing: dict[str, Any] = {}
    config = folder.left_out.unless_damaged(folder.config, None) or nothing
    facts, settings = config.get("report", nothing), config.get("config", nothing)
    launches = folder.readable_launches()
    own = [count for count in counts if count["run"] == row["run"]]
    return {
        "run": row["run"],
        "started_at": launches[-1].get("started_at") if launches else None,
        "corpus": facts.get("corpus"),
        "engine": facts.get("engine"),
        "state": _state(folder, own, settings.get("max_problem_rate", 0.0)),
        **{name: row[name] for name in ("documents", "questions", "methods", "steps")},
    }


def _state(folder: RunFolder, counts: Sequence[Mapping[str, Any]], most_problems: float) -> str:
    """In state problems, a larger share of rows than `max_problem_rate` has one."""
    if holder(folder.path, RUN):
        return "running"
    if any(count["not_done"] for count in counts):
        return "incomplete"
    if any(count["problem"] > most_problems * count["inputs"] for count in counts):
        return "problems"
    return "complete"


_RUNS = """
select run, count(distinct d.document_id) filter (d.problem is null) as documents,
  count(distinct question_id) filter (q.problem is null) as questions,
  count(distinct method) as methods, count(distinct step_id) as steps
from all_planned left join raw_steps using (step_id)
left join all_documents d using (run, document_id)
left join all_questions q using (run, document_id, question_id) group by run"""
_COUNTS = "select run, inputs, problem, not_done from all_accounting"
_STEPS = """
select step_id, stage, method, repeat, count(run) as runs
from all_steps group by all order by stage, method, repeat, step_id"""
