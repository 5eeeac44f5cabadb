"""The content of a run's config.yaml, which later commands read, and the papers of its methods and
corpus: BibTeX entries in `papers.bib` of a `conf` folder, by key."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from jobs.config.run_config import RunConfig
from jobs.graph.resolved_run import ResolvedRun
from pipeline.asking.reader import may_constrain
from pipeline.core.errors import UsageError
from pipeline.core.settings import sha
from pipeline.store.runs.run_folder import RunFolder
from pipeline.work.stage import QuestionKind
from pipeline.work.units import Step
from stages.corpora.audits.known_answers import KINDS, known_method, read_known_answers

_ENTRY = re.compile(r"^@\w+\{([^,\s]+),.*?^\}", re.MULTILINE | re.DOTALL)


def papers_of(
    named: Iterable[tuple[str, Sequence[str]]], folders: Sequence[Path]
) -> dict[str, str]:
    """The entries of the papers that are `named`, by key, in that order.

    `named`: the origin of keys (a file or config key), and the keys. `folders`: `conf` folders.
    Raises UsageError for a key without an entry.
    """
    files = [file for folder in folders if (file := folder / "papers.bib").is_file()]
    texts = [file.read_text(encoding="utf-8") for file in files]
    known = {entry[1]: entry[0] for text in texts for entry in _ENTRY.finditer(text)}
    found: dict[str, str] = {}
    for who, keys in named:
        for key in keys:
            if key not in known:
                raise UsageError(
                    f"{who}: papers: no entry {key!r} in papers.bib; there are {', '.join(known)}"
                )
            found[key] = known[key]
    return found


def run_manifest(run: ResolvedRun) -> dict[str, Any]:
    """The content of runs/<name>/config.yaml: the config, its hashed part, and facts that reports
    need (stored, as the files they come from may change). A Ray job's runtime_env is left out: it
    may hold secrets, and the next command brings its own."""
    made = {**run.config.model_dump(mode="json"), "run": run.name}
    if "runtime_env" in made["cluster"]:
        made["cluster"]["runtime_env"] = {}
    return {
        "run": run.name,
        "hashed": run.hashed,
        "settings_sha": run.settings_sha,
        "report": _report_facts(run),
        "config": made,
    }


def _report_facts(run: ResolvedRun) -> dict[str, Any]:
    config, family, steps = run.config, run.family, run.steps
    answers = bool(config.methods)
    engines = [phase.engine for phase in run.phases if phase.engine]
    asking = [(step, engine) for step, engine in run.steps_with_engines if engine]
    return {
        "corpus": config.corpus.name,
        "engine": config.engine.title if answers else "none",
        "engine_note": config.engine.about_replies if answers else None,
        "reply_format": "constrained" if config.is_constrained(config.engine) else "free",
        "is_model": config.engine.is_model or not config.methods,
        "methods": list(dict.fromkeys(step.method for step in steps if step.method)),
        "imported": _given(config, steps),
        **({"known_answers": _known_answers(run)} if config.audit_of else {}),
        "papers": papers_of(_papers(run), run.conf_folders),
        "licences": dict(config.corpus.licences_by_name()),
        "columns": _columns(steps),
        "stages": stage_names(steps),
        "judging": [spec.stage.name for spec in run.judging],
        "family": family.name,
        "wording": family.wording,
        "repeats": config.repeats,
        "repeat_from": config.repeat_from,
        # The engines whose calls are stored without what was sent.
        "without_prompts": [*dict.fromkeys(e.title for e in engines if not e.keep_prompts)],
        "prices": {step.id: e.price.model_dump() for step, e in asking if e.price.is_known},
        # The stages that ask a model, and whether reply_format=constrained would constrain it.
        "models": {step.name: may_constrain(e, config.reply_format)
                   for step, e in asking if e.is_model},
    }  # fmt: skip


def _known_answers(run: ResolvedRun) -> dict[str, dict[str, Any]]:
    """The kind of known answers that each method of an audit gives, and what they are worth."""
    folder = RunFolder(run.config.warehouse, run.name)
    known = read_known_answers(str(folder.known_answers)).values()
    return {
        known_method(one.kind): {
            "kind": one.kind,
            "is_right": one.worth == "right",
            "is_typical": KINDS[one.kind].is_typical,
        }
        for one in known
    }


def _papers(run: ResolvedRun) -> Iterator[tuple[str, Sequence[str]]]:
    """The papers' keys, each with the file or config key that names them."""
    for method in run.methods:
        yield str(method.file), method.papers
    yield f"corpus.format={run.config.corpus.format}", run.config.corpus.papers


def _given(config: RunConfig, steps: Sequence[Step]) -> dict[str, str]:
    """Each method's file of imported answers, and a hash of them."""
    found = {}
    for step in steps if not config.audit_of else ():
        if step.method and step.stage and (own := step.stage.inputs_per_question()):
            file = config.predictions.get(step.method, "")
            found[step.method] = f"{file.rpartition('/')[2]} {sha(dict(own), 12)}"
    return found


def stage_names(steps: Sequence[Step]) -> list[str]:
    """All stages in dependency order over all methods: loading, index, then question stages."""
    depths: dict[str, int] = {}
    places: dict[str, tuple[int, int]] = {}
    for step in steps:
        depths[step.id] = 1 + max((depths[up.id] for up in step.upstream), default=0)
        kind = 0 if step.stage is None else 1 if step.stage.is_index() else 2
        places[step.name] = max(places.get(step.name, (0, 0)), (kind, depths[step.id]))
    return sorted(places, key=places.__getitem__)


def _columns(steps: Sequence[Step]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in get_args(QuestionKind)}
    for step in steps:
        for kind, columns in (step.stage.columns() if step.stage else {}).items():
            found[kind] |= {column.measure: asdict(column) for column in columns}
    return {kind: list(columns.values()) for kind, columns in found.items()}
