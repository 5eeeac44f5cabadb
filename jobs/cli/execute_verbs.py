"""Verbs that execute runs or estimate them; `rate` adds a rater to a run, audits its raters, or has
people label answers and compares them with raters."""

import dataclasses
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs.cli.app import (
    MAKE,
    RUN,
    Force,
    Json,
    VerbGroup,
    Words,
    app,
    chosen,
    option,
    reading,
    switch,
    verb_group,
    warn,
    words_of,
)
from jobs.cli.export_verbs import give
from jobs.config.options import ReadOptions
from jobs.output.print_tables import (
    STANDARD_OUTPUT,
    Table,
    Verbatim,
    print_found,
    print_json,
    print_line,
    print_parts,
)
from pipeline.core.errors import UsageError

if TYPE_CHECKING:
    from jobs.graph.resolved_run import ResolvedRun


@app.command(rich_help_panel=MAKE)
def run(words: Words = None, json: Json = False) -> None:
    """Run an experiment, or resume it where it stopped.

    \b
    Example:
      gistmill run experiment=qmsum corpus.path=val.jsonl engine=vllm
        engine.model=Qwen/Qwen3-8B methods='gist_only,bm25(top_k=1..3)'

    The same command again goes on where it stopped. gistmill ls lists the choices of a key:

    \b
    experiment=      a set of these, as a paper has it
    corpus=          what to read; corpus.path=, corpus.split=, corpus.seed= ...
    methods=         how to answer: 'readagent_p(max_pages=1..3),bm25'
    engine=          who reads: extractive, vllm, openai; engine.model= ...
    rater=           who rates: reader, none or an engine; rater.model= ...
    memory_engine=   who makes memories; by default the engine
    extractor=       who extracts; by default the engine
    query_expander=  who infers time ranges; by default the engine
    memory=          how pages are cut: model, uniform ...; memory.words= ...
    embedder.model=  what dense retrieval embeds with
    family=          of prompts: a name or a folder
    reply_tokens.PROMPT=   the reply budget of one prompt
    reply_format=    auto, free or constrained
    shuffle_options=    true: options are shown in a drawn order
    limit=, sample=  so many documents: the first, or drawn by corpus.seed
    repeats=         how often each question is asked, with another seed;
    repeat_from=     memory: memories are made anew, too; or questions
    run=             the name of the run; left out, one is made of the settings
    warehouse=       where its tables are kept, by default ./warehouse
    plugins=         folders with stages, methods and prompts of your own
    cluster=         local, inline, ray, kuberay, slurm; cluster.address=,
                     cluster.deadline= ...
    questions_per_unit=    of a document; more are shared by several workers
    max_problem_rate=, max_fallback_rate=   more end in exit code 3
    """
    from jobs.graph.resolved_run import read_run

    execute(read_run(words or []), json)


@app.command(rich_help_panel=MAKE)
def submit(
    words: Words = None,
    show: bool = switch("--print", "Show what would be submitted."),
    detach: bool = switch("--detach", "Do not follow the job."),
    json: bool = switch("--json", "Print the result as JSON, logs on standard error."),
) -> None:
    """Send a run to a cluster and follow it.

    Takes the words of run, and cluster.address=http://HEAD:8265, cluster=kuberay or cluster=slurm.
    Exit code 0 only if the run is complete.

    Example: gistmill submit experiment=demo cluster.address=http://HEAD:8265
    """
    from jobs.submit import rendered
    from jobs.submit import submit as send

    if chosen({"--print": show, "--detach": detach}) == "--print":
        text = rendered(words or [])
        print_found({"text": text}, lambda _: [Verbatim(text.rstrip("\n"))], json)
        return
    sent = send(words or [], None if detach else sys.stderr if json else sys.stdout)
    if json:
        print_json(sent)
    raise typer.Exit(sent.exit_code)


@app.command(rich_help_panel=MAKE)
def ask(
    words: Annotated[list[str], words_of("FILE|QUESTION|KEY=VALUE")],
    each: bool = switch("--each", "Every document answers by itself."),
    most_words: int = option(
        "NUMBER", "Of pages to choose from at most; by default 6000.", 6000, "--words", min=1
    ),
    json: Json = False,
) -> None:
    """Ask files or folders a question.

    Example: gistmill ask letters "Who sold the lighthouse?" method='bm25(top_k=3)'

    One answer is printed, with the passages that it rests on by file and page. Pages and gists are
    made once and kept. Keys are those of run, but for run=, corpus= and experiment=.
    """
    from jobs.ask.ask_files import ask as ask_files

    raise typer.Exit(ask_files(words, json, warn, each, most_words))


@app.command(rich_help_panel=MAKE)
def score(words: Words = None, json: Json = False) -> None:
    """Rate and score another system's answers.

    predictions=FILE method=NAME, and run=NAME (by default the last) or the words of run. The file
    has question_id and answer.

    Example: gistmill score predictions=answers.jsonl method=theirs run=night
    """
    from jobs.run.stored_run import with_predictions

    execute(with_predictions(words or []), json)


@app.command(rich_help_panel=MAKE)
def retry(words: Words = None, json: Json = False) -> None:
    """Ask again where rows of a run have a problem: run=NAME.

    What was made from them is redone; good replies are kept. problem=unparseable,truncated: only
    where they have these.

    Example: gistmill retry run=night problem=timeout
    """
    from jobs.run.stored_run import run_again

    resolved, retry_policy = run_again(words or [])
    execute(resolved, json, retry_policy=retry_policy)


@app.command(rich_help_panel=MAKE)
def plan(
    words: Words = None,
    rates: str | None = option("PREFILL,DECODE", "Tokens a second of one engine."),
    gpus: int = option("NUMBER", "By default 1.", 1, min=1),
    price: str | None = option("PROMPT,REPLY[,CACHED]", "Money a million tokens."),
    json: Json = False,
) -> None:
    """Say what a run will take: calls, tokens, disk, hours, money.

    Takes the words of run and asks no model. What is left of a run that has begun is planned by its
    own speed.

    Example: gistmill plan experiment=demo --rates 20000,3000 --gpus 8
    """
    from jobs.plan.plan import Options, make_plan, plan_parts  # here: numpy takes a moment

    print_found(make_plan(words or [], Options.of(rates, gpus, price), warn), plan_parts, json)


def execute(resolved: "ResolvedRun", as_json: bool, **more: Any) -> None:
    """Execute a run, print its report, and exit with the run's code. `more` goes to
    `run_and_report`."""
    from jobs.api.library import run_and_report
    from jobs.report.render import headline_parts, parts_of

    outcome, report = run_and_report(resolved, warn, **more)
    if as_json:
        print_json({**dataclasses.asdict(outcome), "report": report})
    else:
        where = f"run {outcome.run} in warehouse {resolved.config.warehouse}"
        parts = headline_parts(report) if sys.stdout.isatty() else parts_of(report)
        print_parts([*parts, where])
    for complaint in outcome.complaints:
        warn(complaint)
    raise typer.Exit(outcome.exit_code)


@app.command(rich_help_panel=MAKE)
def bench(
    words: Annotated[list[str], words_of("PART|KEY=VALUE")],
    pairs: int = option("NUMBER", "Repetitions, by default 3.", 3, min=1),
    json: Json = False,
) -> None:
    """Measure how close runs come to their engine's speed.

    Parts: limit, schedule, machines, cache, peers, units, driver, rates.

    Example: gistmill bench limit schedule
    """
    checkout = Path(__file__).parents[2]
    if not (checkout / "benchmarks" / "parts.py").is_file():
        raise UsageError("bench: not installed with the package; use that of a clone (make demo)")
    if str(checkout) not in sys.path:
        sys.path.append(str(checkout))
        inherited = os.environ.get("PYTHONPATH", "")  # for workers of a Ray started here
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [inherited, str(checkout)]))
    from benchmarks.parts import bench as measure

    figures = measure(words, pairs)
    table = Table([figure.row() for figure in figures], left=("what", "bar"))
    print_found(figures, lambda _: [table], json)
    raise typer.Exit(3 if any(figure.ok is False for figure in figures) else 0)


class _WithDefault(VerbGroup):
    """`gistmill rate rater=...` is `gistmill rate add rater=...`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in (*self.commands, "--help"):
            args = ["add", *args]
        return list(super().parse_args(ctx, args))


rating = verb_group(_WithDefault, help="Add raters to a run, audit them, compare them with people.")
app.add_typer(rating, name="rate", rich_help_panel=MAKE)


@rating.command()
def add(words: Words = None, json: Json = False) -> None:
    """Add a rater to a finished run: run=NAME rater=...

    Nothing is answered again. The word add may be left out.

    Example: gistmill rate add run=night rater=extractive
    """
    from jobs.run.stored_run import with_rater

    execute(with_rater(words or []), json, retry_policy=None)


@rating.command()
def audit(words: Words = None, json: Json = False) -> None:
    """Give a run's raters answers of known worth, and count their mistakes: run=NAME

    n=50 questions are drawn by seed=0; a larger n adds some.

    The run NAME-audit has the answers and verdicts. The report of the audited
    run then has corrected means beside the raw ones.

    Example: gistmill rate audit run=night n=50
    """
    from jobs.run.stored_run import audit_run

    execute(audit_run(words or []), json)


@reading(*RUN, "method", "where", "n", "seed", "to", of=rating, name="sheet")
def write_sheet(options: ReadOptions, force: Force = False) -> None:
    """Write a CSV of answers for a person to label.

    Methods and verdicts are left out.

    Example: gistmill rate sheet run=night n=100 to=sheet.csv
    """
    from jobs.people.labels import LABELS, sheet

    give(options, force, lambda: sheet(options))
    if options.to != STANDARD_OUTPUT and not options.as_json:
        print_line(f"write {', '.join(LABELS)} into the column label, or leave it empty")


@reading(*RUN, "person", of=rating, name="import")
def import_labels(file: str, options: ReadOptions) -> None:
    """Take the labels of a filled sheet as a person's.

    They are rows of the view people.

    Example: gistmill rate import sheet.csv run=night person=ada
    """
    from jobs.people.labels import import_sheet, imported_lines

    print_found(import_sheet(file, options), imported_lines, options.as_json)


@reading(*RUN, of=rating)
def agreement(options: ReadOptions) -> None:
    """Compare people with raters, and with each other.

    Percent, Cohen's kappa, confusion matrices.

    Example: gistmill rate agreement run=night
    """
    from jobs.people.labels import agreement_parts, agreements

    print_found(agreements(options), agreement_parts, options.as_json)
