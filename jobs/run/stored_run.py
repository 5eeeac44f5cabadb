"""Continue a stored run, which may gain methods, raters, repeats, documents and questions. `rate
audit` makes a run NAME-audit, whose methods are the kinds of known answers."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from upath import UPath

from jobs.config.options import KEYS, ReadOptions, read_options
from jobs.config.run_config import RunConfig, composed_values, parsed_config
from jobs.graph.resolved_run import ResolvedRun, expanded, resolve, run_of
from jobs.output.print_tables import counted
from pipeline.core.compose import compose
from pipeline.core.errors import UsageError
from pipeline.core.registry import conf_folders
from pipeline.core.settings import sha
from pipeline.core.sql_files import sql_beside
from pipeline.files.storage import as_path, exists, is_remote, write
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connect import run_name
from pipeline.store.sql.connection import query
from pipeline.work.methods import methods_in
from pipeline.work.units import RETRYABLE, RetryPolicy
from stages.corpora.audits.known_answers import (
    FreeForm,
    Known,
    Maker,
    known_answers_text,
    read_known_answers,
)

_ADDING = ("run", "warehouse", "rater", "cluster")  # the words where `score` adds to a run
_SQL = sql_beside(__file__)


def merge_with_stored_run(run: ResolvedRun, folder: RunFolder) -> ResolvedRun:
    """The run with the methods, raters and repeats that it was started with, too. Raises
    UsageError with the differences if the run was started with other settings."""
    stored = folder.config()
    if stored is None:
        return run
    # A method added later may bring the first embedder; a plugin, or another version, more
    # templates or fewer.
    hashed = {"embedder": run.hashed.get("embedder"), **stored["hashed"]}
    ours, theirs = run.hashed["family"]["templates"], hashed["family"]["templates"]
    templates = {name: theirs.get(name, template) for name, template in ours.items()}
    hashed["family"] = {**hashed["family"], "templates": templates}
    hashed.pop("repeats", None)  # of an earlier version
    config, before = run.config, _parsed(stored["config"])
    differences = [*_differences(hashed, run.hashed, "")]
    # A run with a single repeat is the same with either value of repeat_from.
    keys = ["audit_of"] if 1 in (before.repeats, config.repeats) else ["repeat_from", "audit_of"]
    for key in keys:
        differences += _differences(getattr(before, key), getattr(config, key), key)
    if differences:
        raise UsageError(
            f"run={run.name} was started with other settings: {'; '.join(differences)}; name "
            "another run"
        )
    # Every launch reads files again: answers written over a method's would become both methods'.
    for name, file in config.predictions.items():
        equal = [other for other, of in before.predictions.items() if of == file and other != name]
        if equal and before.predictions.get(name) != file:
            raise UsageError(f"predictions={file}: the file of the method {equal[0]}; copy it")
    names = [method.name for method in run.methods if method.name not in config.predictions]
    all_names = names
    if before.methods != config.methods:
        earlier = expanded(before, conf_folders(before.plugins))
        earlier_names = [m.name for m in earlier if m.name not in before.predictions]
        all_names = [*dict.fromkeys([*earlier_names, *names])]
    raters = [*before.raters, *config.raters]
    gained = {
        "methods": config.methods if all_names == names else ",".join(all_names),
        "predictions": {**before.predictions, **config.predictions},
        "raters": tuple({sha(rater.model_dump(mode="json")): rater for rater in raters}.values()),
        "repeats": max(before.repeats, config.repeats),
        "repeat_from": (before if before.repeats > config.repeats else config).repeat_from,
    }
    named = config.model_copy(update={"run": run.name})
    both = named.model_copy(update=gained)
    return run if both == named else resolve(both)


def _differences(before: Any, now: Any, key: str) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for part in {**before, **now}:
            yield from _differences(before.get(part), now.get(part), f"{key}.{part}".lstrip("."))
    elif before != now:
        yield f"{key} {before} -> {now}"


def refuse_fewer(folder: RunFolder, plan: Path) -> None:
    """Raise UsageError if `plan` lacks documents or questions of the run, except unusable ones:
    these may be deleted or fixed, which changes some ids. What a damaged plan of the run had is not
    known; this launch writes it anew."""
    for what in ("document", "question"):
        missing_from = partial(folder.missing_from, plan, f"{what}_id")
        missing = folder.left_out.unless_damaged(missing_from, set[str]())
        if missing:
            with connect(folder.warehouse, folder.path.name) as connection:
                missing -= {row["id"] for row in query(connection, _SQL[f"unusable_{what}s"])}
        if missing:
            raise UsageError(
                f"run={folder.path.name} has {counted(len(missing), what)} that this command "
                f"leaves out ({', '.join(sorted(missing)[:3])}); put them back, raise limit, or "
                "name another run"
            )


def stored_config(folder: RunFolder) -> RunConfig:
    """The config a run was last started with. Raises UsageError if there is no such run."""
    stored = folder.config()
    if stored is None:
        raise UsageError(f"{folder.path}: no such run; gistmill ls warehouse=DIR lists them")
    return _parsed({**stored["config"], "run": stored["run"]})


def _parsed(stored: Mapping[str, Any]) -> RunConfig:
    """The config that a run stored, without the keys of version 0.2 that there are no more. Raises
    UsageError if it has corrections."""
    values = {key: value for key, value in stored.items() if key != "tracker"}
    corpus = dict(stored["corpus"])
    if corpus.pop("corrections", None):
        raise UsageError(f"run={stored['run']}: corpus.corrections is gone; name another run")
    return parsed_config({**values, "corpus": corpus})


def with_rater(words: Sequence[str]) -> ResolvedRun:
    """Raises UsageError for other words than of `rate add`, or without a rater."""
    _split("rate add", words, ())
    if not any(word.startswith("rater") for word in words):
        raise UsageError("rate needs a rater: add rater=NAME (gistmill ls lists them)")
    return run_of(_extended(words))


def run_again(words: Sequence[str]) -> tuple[ResolvedRun, RetryPolicy]:
    values, run_words = _split("retry", words, ("problem",))
    problems = re.split(r"\s*,\s*", values.get("problem", ",".join(RETRYABLE)).strip())
    for problem in problems:
        if problem not in RETRYABLE:
            raise UsageError(
                f"problem={problem}: not asked again; write some of {', '.join(RETRYABLE)}"
            )
    return run_of(_extended(run_words)), RetryPolicy(frozenset(problems))


def with_predictions(words: Sequence[str]) -> ResolvedRun:
    """The stored run of `run=`, or with any other word of `run` a run of these words, with the
    answers in `predictions=` as the method `method=`. Raises UsageError."""
    own_values, run_words = _split("score", words, ("predictions", "method"))
    if missing := [f"{key}=" for key in ("predictions", "method") if not own_values.get(key)]:
        raise UsageError(f"{' and '.join(missing)} missing; write predictions=FILE method=NAME")
    file, name = own_values["predictions"], own_values["method"]
    if all(word.partition("=")[0].split(".")[0] in _ADDING for word in run_words):
        values = _extended(run_words)
        if values["audit_of"]:
            raise UsageError(f"run={values['run']}: an audit of raters has no other methods")
    else:
        values = parsed_config(composed_values(run_words)).model_dump(mode="json")
        if not any(word.startswith("methods=") for word in run_words):
            values["methods"] = ""
    path = as_path(file)  # absolute, as later launches read it again from any folder
    predictions = {**values["predictions"], name: file if is_remote(path) else str(path.absolute())}
    run = run_of({**values, "predictions": predictions})
    ours = methods_in([folder / "method" for folder in run.conf_folders])
    # The rows of both would be one method's.
    if name in ours or any(name == m.name for m in run.methods if m.has_repeats):
        raise UsageError(f"method={name}: a method of gistmill has this name; take another")
    return run


def _split(
    verb: str, words: Sequence[str], own_keys: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """The values of the verb's own keys, and the other words, which `run` takes, too. Raises
    UsageError for a word that the verb does not take; `score` takes all words of `run`."""
    values: dict[str, str] = {}
    run_words, taken = [], KEYS.get(verb)
    for word in words:
        key, equals, value = word.partition("=")
        if key in own_keys and equals:
            values[key] = value
        elif taken is None or key.split(".")[0] in taken:
            run_words.append(word)
        else:
            raise UsageError(f"{word!r}: {verb} takes {', '.join(taken)}")
    return values, run_words


def _extended(words: Sequence[str]) -> dict[str, Any]:
    """The stored config of the run that `words` name, with the cluster and rater among them."""
    composed = compose(words)
    warehouse = as_path(composed["warehouse"])
    folder = RunFolder(warehouse, run_name(warehouse, composed["run"]))
    stored = stored_config(folder).model_dump(mode="json")
    added = [composed["rater"]] if any(word.startswith("rater") for word in words) else []
    return {
        **stored,
        "warehouse": str(warehouse),
        "cluster": composed["cluster"],
        "raters": [*stored["raters"], *added],
    }


def audit_run(words: Sequence[str]) -> ResolvedRun:
    """The audit of the run that `words` name; its known answers are added to those of earlier
    audits. Raises UsageError."""
    values, run_words = _split("rate audit", words, ("n", "seed"))
    numbers = [f"{key}={value}" for key, value in {"n": "50", **values}.items()]
    options = read_options(numbers, ("n", "seed"))
    composed = compose(run_words)
    warehouse = as_path(composed["warehouse"])
    config = stored_config(RunFolder(warehouse, run_name(warehouse, composed["run"])))
    if config.audit_of:
        config = stored_config(RunFolder(warehouse, config.audit_of))
    folder = RunFolder(warehouse, f"{config.run}-audit")
    if folder.config() is not None and stored_config(folder).audit_of != config.run:
        raise UsageError(f"run={folder.path.name} is no audit; remove that run")
    raters = [engine for engine in config.engines("judge") if engine.is_model]
    if not raters:
        add = f"gistmill rate run={config.run} rater=NAME adds one"
        raise UsageError(f"run={config.run} has no rater that is a model; {add}")
    stored = config.model_dump(mode="json")
    audit = parsed_config({
        **stored,
        "run": folder.path.name,
        "audit_of": config.run,
        "warehouse": str(warehouse),
        "cluster": composed["cluster"],
        "raters": [rater.model_dump(mode="json") for rater in raters],
        "methods": "",
        "predictions": {},
        "repeats": 1,
    })  # fmt: skip
    answers = {(a.kind, a.question_id): a for a in _known_answers(config, warehouse, options)}
    if exists(folder.known_answers):
        answers = {**read_known_answers(str(folder.known_answers)), **answers}
    write(folder.known_answers, known_answers_text(answers.values()))
    return resolve(audit)


def _known_answers(config: RunConfig, warehouse: UPath, options: ReadOptions) -> list[Known]:
    with connect(warehouse, config.run) as connection:
        rows = query(connection, _SQL["to_audit"])
    questions = [FreeForm(**{**row, "references": tuple(row["references"])}) for row in rows]
    maker = Maker(questions, resolve(config).family.known_answers, options.seed)
    if sample := maker.sample(options.n):
        return [answer for question in sample for answer in maker.made(question)]
    raise UsageError(f"run={config.run} has no free-form question with a reference to audit with")
