"""The `gistmill` command: one function per verb. Overrides are `key=value` words.

Exit codes: 0 complete, 1 crash or failed accounting, 2 bad usage or config, 3 finished with more
problems than allowed, 4 incomplete (the same command resumes).
"""

import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from jobs.check_prompts import check_prompts
from jobs.config import read_config
from jobs.corpus import distributions, draw, table
from jobs.gc import show_gc
from jobs.left_out import shown_left_out
from jobs.ls import show_listing
from jobs.options import ReadOptions, read_options
from jobs.rate import shown_rater, with_rater
from jobs.render import page, render
from jobs.report import make_report
from jobs.retry import run_again
from jobs.run_config import RunConfig
from jobs.show_trace import show_trace
from jobs.status import show_status
from jobs.tables import print_json, print_line, print_table, printable
from pipeline.errors import CommandError, IncompleteError, UsageError
from pipeline.place import place
from pipeline.retries import refusals, refused
from pipeline.secrets import without_passwords
from pipeline.store import connect
from pipeline.store.locks import only_select
from pipeline.store.runs import RunFolder
from pipeline.store.views import query as rows_of
from pipeline.units import ONCE, Retries

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
prompts = typer.Typer(help="Check a family of prompts.")
app.add_typer(prompts, name="prompts")

# ClickException of the click that Typer uses: newer versions of Typer bundle a copy of their own.
_CLICK_ERROR: Any = typer.BadParameter.__mro__[2]

_INTERRUPTED = 130  # Typer's exit code for Ctrl-C

Words = Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


@app.command()
def run(words: Words = None, json: Json = False) -> None:
    """Run an experiment. Repeat the same command to resume it where it stopped."""
    _run(read_config(words or []), json)


@app.command()
def submit(
    words: Words = None,
    show: Annotated[bool, typer.Option("--print", help="Show what would be submitted.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Do not follow the job.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop the run's job.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, logs on standard error.")
    ] = False,
) -> None:
    """Submit a run to a cluster. Takes the words of run, and cluster.address=http://HEAD:8265,
    cluster=kuberay or cluster=slurm. Exit code 0 only if the run is complete."""
    from jobs.submit import rendered
    from jobs.submit import stop as stop_job
    from jobs.submit import submit as send

    if show + detach + stop > 1:
        raise UsageError("--print, --detach and --stop: one of them at a time")
    if show:
        text = rendered(words or [])
        if json:
            print_json({"text": text})
        else:
            sys.stdout.write(text)
        return
    log = None if detach else sys.stderr if json else sys.stdout
    sent = stop_job(words or []) if stop else send(words or [], log)
    if json:
        print_json(dataclasses.asdict(sent))
    raise typer.Exit(sent.exit_code)


@app.command()
def rate(words: Words = None, json: Json = False) -> None:
    """Add a rater to a finished run without answering again: run=NAME rater=..."""
    _run(with_rater(words or []), json, retries=None)


@app.command()
def retry(words: Words = None, json: Json = False) -> None:
    """Ask again where rows of a run have a problem, and redo what was made from them: run=NAME,
    problem=unparseable,truncated. Good replies are kept."""
    config, retries = run_again(words or [])
    _run(config, json, retries)


@app.command()
def plan(
    words: Words = None,
    like: Annotated[
        str | None, typer.Option(help="A run whose reply lengths and speed to take.")
    ] = None,
    rates: Annotated[
        str | None, typer.Option(help="PREFILL,DECODE: tokens a second of one engine.")
    ] = None,
    gpus: Annotated[int, typer.Option(min=1, help="How many there are.")] = 1,
    price: Annotated[
        str | None, typer.Option(help="PROMPT,REPLY[,CACHED]: money a million tokens.")
    ] = None,
    json: Json = False,
) -> None:
    """What a run will take: calls, tokens, disk, hours, money. Takes the words of run and asks no
    model; pilot=N runs N documents first, and the rest is planned by what they took."""
    from jobs.plan.rates import Options
    from jobs.plan.show import show_plan  # here: numpy and the engines take a moment

    show_plan(words or [], Options(like, rates, gpus, price), json, _warn)


def _run(config: RunConfig, as_json: bool, retries: Retries | None = ONCE) -> None:
    from jobs.run import run as run_config  # imported here, as ray takes a second

    outcome = run_config(config, _warn, retries)
    warehouse, rater = place(config.warehouse), shown_rater(config, outcome.run)
    made = make_report(ReadOptions(warehouse, outcome.run, rater=rater))
    RunFolder(warehouse, outcome.run).write_report(page(render(made)))
    if as_json:
        print_json({**dataclasses.asdict(outcome), "report": dataclasses.asdict(made)})
    else:
        print_line(render(made, intervals=False))
        print_line(f"\nrun {outcome.run} in warehouse {config.warehouse}")
    for complaint in outcome.complaints:
        _warn(complaint)
    raise typer.Exit(outcome.exit_code)


def _warn(line: str) -> None:
    sys.stderr.write(printable(without_passwords(line)) + "\n")


@app.command()
def report(
    words: Words = None,
    corpus: Annotated[
        bool, typer.Option("--corpus", help="Words, pages and compression instead of scores.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(help="With --corpus: draw them, FILE.png or FILE.svg.")
    ] = None,
    json: Json = False,
) -> None:
    """The table of a run: warehouse=, run=, by=SQL, where='SQL', rater=."""
    if corpus or picture:
        _report_corpus(read_options(words or [], ("warehouse", "run")), picture, json)
        return
    made = make_report(read_options(words or [], ("warehouse", "run", "by", "where", "rater")))
    if json:
        print_json(dataclasses.asdict(made))
    else:
        print_line(render(made))


def _report_corpus(options: ReadOptions, picture: Path | None, as_json: bool) -> None:
    found = distributions(options.warehouse, options.run)
    if picture:
        draw(options.warehouse, options.run, picture)
    if as_json:
        print_json([dataclasses.asdict(one) for one in found])
    else:
        print_table(table(found))


@app.command()
def status(words: Words = None, json: Json = False) -> None:
    """What is done, running and failed, from the files alone: warehouse=, run=. With
    cluster.address=, also the state of the run's job there."""
    show_status(read_options(words or [], ("warehouse", "run", "cluster.address")), json)


@app.command()
def trace(
    question_id: str,
    words: Words = None,
    full: Annotated[bool, typer.Option("--full", help="Print the full text of pages.")] = False,
    json: Json = False,
) -> None:
    """One question from pages to scores, by method: warehouse=, run=, method=PREFIX."""
    options = read_options(words or [], ("warehouse", "run", "method"))
    show_trace(options, question_id, full, json)


@app.command()
def sql(
    query: str,
    words: Words = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Allow COPY and all else: any file, any setting.")
    ] = False,
    json: Json = False,
) -> None:
    """A DuckDB query over the tables of a run (all_TABLE: of every run): warehouse=, run=."""
    options = read_options(words or [], ("warehouse", "run"))
    with connect(options.warehouse, options.run, unsafe) as connection:
        rows = rows_of(connection, query if unsafe else only_select(connection, query))
    if json:
        print_json(rows)
    else:
        print_table(rows, is_exact=True)


@app.command()
def ls(words: Words = None, json: Json = False) -> None:
    """List corpora, methods, engines and experiments, with plugins=DIR those of plugins, too; with
    warehouse=DIR, its runs and steps."""
    options = read_options(words or [], ("warehouse", "plugins"))
    of_warehouse = any(word.startswith("warehouse=") for word in words or [])
    show_listing(options, of_warehouse, json)


@app.command()
def gc(words: Words = None, json: Json = False) -> None:
    """Compact shards into few files, and delete what compactions replaced: warehouse=,
    older_than=24h."""
    show_gc(read_options(words or [], ("warehouse", "older_than")), json)


@app.command()
def bench(
    words: Annotated[list[str], typer.Argument(metavar="PART... [KEY=VALUE]...")],
    pairs: Annotated[
        int, typer.Option("--pairs", min=1, help="Repetitions; medians are printed.")
    ] = 3,
    json: Json = False,
) -> None:
    """How close runs come to the speed of their engine: parts limit, schedule, cache, scale,
    rates."""
    from jobs.bench.parts import bench as measure  # imported here, as ray takes a second

    figures = measure(words, pairs)
    if json:
        print_json([dataclasses.asdict(figure) for figure in figures])
    else:
        print_table([figure.row() for figure in figures], left=("what", "bar"))
    raise typer.Exit(3 if any(figure.ok is False for figure in figures) else 0)


@prompts.command()
def check(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FOLDER] [plugins=FOLDER,...]", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Render every prompt of a family (default: all families) and parse its example replies."""
    failures = check_prompts(words or [])
    if json:
        print_json({"failures": failures})
    else:
        print_line("\n".join(failures) or "all prompts render and all example replies are read")
    raise typer.Exit(2 if failures else 0)


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    asked = sys.argv[1:]
    try:
        with shown_left_out(_warn):
            code = app(asked or ["--help"], prog_name="gistmill", standalone_mode=False)
        code = code if asked else 2
        if code == _INTERRUPTED:
            code = _complain(IncompleteError("interrupted; run the same command to resume"))
    except _CLICK_ERROR as error:
        code = _complain(_usage(error))
    except CommandError as error:
        code = _complain(error)
    except refusals() as error:
        code = _complain(refused(getattr(error, "filename", None) or "storage", error))
    sys.stdout.flush()
    sys.exit(code or 0)


def _usage(error: Any) -> UsageError:
    """The error of the command-line parser on one line."""
    path = error.ctx.command_path if getattr(error, "ctx", None) else "gistmill"
    return UsageError(f"{error.format_message().rstrip('.')}; see {path} --help")


def _complain(error: CommandError) -> int:
    _warn(f"gistmill: {' '.join(str(error).split())}")
    return error.exit_code
