"""`gistmill ls`: lists what can be run, or the runs and steps of a warehouse."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from upath import UPath

from jobs.config import GROUPS
from jobs.options import ReadOptions
from jobs.tables import print_json, print_line, print_table
from pipeline.family_file import read_family_file
from pipeline.methods import available
from pipeline.plugins import load_plugins, plugin_folders
from pipeline.settings import CONF
from pipeline.store import connect
from pipeline.store.views import query, readable_run


def show_listing(options: ReadOptions, of_warehouse: bool, as_json: bool) -> None:
    """Print the runs and steps of a warehouse if `of_warehouse`, else the choices of every config
    group, the methods and prompt families, including those of plugins."""
    if of_warehouse:
        found = _warehouse(options.warehouse)
    else:
        found = _choices([CONF, *load_plugins(plugin_folders(options.plugins))])
    if as_json:
        print_json(found)
        return
    found.pop("left_out", None)  # on standard error
    for name, rows in found.items():
        print_line(f"{name.upper()}\n")
        print_table(rows, left=tuple(rows[0]) if rows else ())
        print_line()


def _choices(folders: Sequence[Path]) -> dict[str, list[dict[str, Any]]]:
    """The choices in these `conf` folders, each with the first comment of its file."""
    groups = {group: [_row(file) for file in _files(folders, group)] for group in GROUPS}
    methods = [
        {**_row(file), "arguments": _arguments(arguments)}
        for name, (file, arguments) in available([folder / "method" for folder in folders]).items()
    ]
    families = [
        {"name": file.parent.name, "base": ", ".join(read_family_file(file.parent).base)}
        for folder in folders
        for file in sorted(folder.glob("prompts/*/family.yaml"))
    ]
    return {**groups, "methods": methods, "prompts": families}


def _files(folders: Sequence[Path], group: str) -> list[Path]:
    return [file for folder in folders for file in sorted((folder / group).glob("*.yaml"))]


def _row(file: Path) -> dict[str, Any]:
    lines = file.read_text(encoding="utf-8").splitlines()
    comments = [line[2:] for line in lines if line.startswith("# ") and "@package" not in line]
    return {"name": file.stem, "about": comments[0] if comments else ""}


def _arguments(arguments: Any) -> str:
    pairs = (f"{key}={'...' if value is None else value}" for key, value in arguments.items())
    return ", ".join(pairs)


def _warehouse(warehouse: UPath) -> dict[str, list[dict[str, Any]]]:
    with connect(warehouse, readable_run(warehouse)) as connection:
        runs = query(
            connection,
            """select run, count(distinct step_id) as steps,
            count(distinct document_id) as documents, count(distinct question_id) as questions
            from all_planned group by run order by run""",
        )
        steps = query(
            connection,
            """select step_id, stage, method, repeat, count(run) as runs
            from all_steps group by all order by stage, method, step_id""",
        )
        left_out = query(connection, "from left_out")
    return {"runs": runs, "steps": steps, "left_out": left_out}
