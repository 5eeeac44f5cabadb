"""Verbs that maintain a warehouse, plugins and families of prompts."""

from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.app import KEEP, RUN, Json, Names, app, chosen, reading, switch, verb_group
from jobs.config.options import ReadOptions
from jobs.output.print_tables import counted, print_found
from pipeline.core.errors import AccountingError, UsageError


@reading(*RUN, panel=KEEP)
def rm(
    options: ReadOptions, yes: bool = switch("--yes", "Without it, only say what would be deleted.")
) -> None:
    """Delete a run, and of its rows what no other run uses.

    run= has no default here. gistmill gc deletes the files, after 24 hours.

    Example: gistmill rm run=night --yes
    """
    from jobs.warehouse.upkeep import run_to_remove
    from pipeline.store.runs.run_folder import num_labels
    from pipeline.store.upkeep import remove_run

    name = run_to_remove(options)
    if not yes:
        labels = num_labels(options.warehouse / "runs" / name)
        what = f"it and {counted(labels, 'label')} of people" if labels else "it"
        raise UsageError(f"run={name}: deletes {what} for good; add --yes")
    units = remove_run(options.warehouse, name)
    line = f"deleted run {name}: {units:,} units; gistmill gc deletes those of no other run"
    print_found({"run": name, "units": units}, lambda _: [line], options.as_json)


@reading("warehouse", "older_than", panel=KEEP)
def gc(options: ReadOptions) -> None:
    """Compact a warehouse's files, and delete replaced ones.

    It deletes what removed runs alone had planned, too.

    Example: gistmill gc older_than=1h
    """
    from jobs.warehouse.upkeep import show_gc

    show_gc(options)


@reading("warehouse", panel=KEEP)
def verify(options: ReadOptions) -> None:
    """Read every file of a warehouse, and compare pages with checksums.

    Exit code 1 if a file is damaged.

    Example: gistmill verify warehouse=warehouse
    """
    from jobs.warehouse.upkeep import verified_lines
    from jobs.warehouse.upkeep import verify as verify_files

    verified = verify_files(options.warehouse)
    print_found(verified, verified_lines, options.as_json)
    if damaged := verified["damaged"]:
        raise AccountingError(f"{counted(len(damaged), 'file')} damaged; see above")


plugin = verb_group(help="Begin a plugin.")
app.add_typer(plugin, name="plugin", rich_help_panel=KEEP)


@plugin.command()
def new(  # noqa: PLR0913  # they are its options
    name: Annotated[str, typer.Argument(help="Of the plugin, of its folder, and of what it has.")],
    method: bool = switch("--method", "A way to answer; the default."),
    metric: bool = switch("--metric", "A score of answers."),
    engine: bool = switch("--engine", "What replies to prompts."),
    judge: bool = switch("--judge", "A rubric of verdicts."),
    corpus: bool = switch("--corpus", "A format of documents."),
    family: bool = switch("--family", "Prompts in other words."),
    json: Json = False,
) -> None:
    """Write a folder with a plugin that works, and its test.

    Example: gistmill plugin new my_method --method
    """
    from jobs.plugin.new_plugin import new_plugin

    kinds = {"--method": method, "--metric": metric, "--engine": engine, "--judge": judge,
             "--corpus": corpus, "--family": family}  # fmt: skip
    files = new_plugin(name, chosen(kinds).removeprefix("--") or "method")
    lines = "\n".join(map(str, files))
    print_found({"files": files}, lambda _: [lines, f"pytest {name} tests it"], json)


prompts = verb_group(help="Check or copy a family of prompts.")
app.add_typer(prompts, name="prompts", rich_help_panel=KEEP)


@reading("plugins", of=prompts)
def check(folders: Names = None, *, options: ReadOptions) -> None:
    """Render every prompt of a family (default: all families) and parse its example replies.

    NAME is the family's folder.

    Example: gistmill prompts check my_prompts
    """
    from pipeline.core.registry import conf_folders
    from pipeline.work.check_family import check_family

    roots = [conf / "prompts" for conf in conf_folders(options.plugins)]
    every = sorted(file.parent for root in roots for file in root.glob("*/family.yaml"))
    families = [Path(folder) for folder in folders or ()] or every
    failures = [line for family in families for line in check_family(family, roots)]
    lines = failures or ["all prompts render and all example replies are read"]
    print_found({"failures": failures}, lambda _: ["\n".join(lines)], options.as_json)
    raise typer.Exit(2 if failures else 0)


@reading("plugins", of=prompts)
def export(
    family: Annotated[str, typer.Argument(help="A family's name, or its folder.")],
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    options: ReadOptions,
) -> None:
    """Copy a family to FOLDER, to read and to change.

    With all that it inherits; plugins=FOLDER where it is a plugin's.

    Example: gistmill prompts export qmsum my_prompts
    """
    from pipeline.families.family import export_family

    copied = export_family(family, folder, options.plugins)
    files = f"family.yaml and {len(copied['templates'])} templates"
    line = f"{copied['folder']}: {files}; family={copied['folder']} reads with them"
    print_found(copied, lambda _: [line], options.as_json)
