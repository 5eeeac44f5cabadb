"""A command line with all that follows from it, made once by `resolve`; a run's config.yaml."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from jobs.config.run_config import (
    MOST_RUN_NAME,
    RunConfig,
    check_config,
    parsed_config,
    read_config,
)
from jobs.graph.phases import Phase, phases
from jobs.graph.step_graph import StepWithEngine, Variant, default_settings, run_steps, variants
from pipeline.core.errors import UsageError
from pipeline.core.prompts import PROMPTS
from pipeline.core.registry import conf_folders, hint
from pipeline.core.settings import CONF, sha
from pipeline.families.family import Family, find_family, load_family
from pipeline.store.runs.run_folder import RunFolder
from pipeline.work.check_family import wrong_settings
from pipeline.work.methods import Method, StageSpec, expand_methods, method_of, stage_specs
from pipeline.work.stage import QuestionKind, Role
from pipeline.work.units import Step
from stages.corpora.audits.known_answers import KINDS, known_method, read_known_answers

_PREDICTIONS = CONF / "predictions.yaml"  # a method's layout
_KNOWN_ANSWER = CONF / "known_answer.yaml"
_BIBTEX = re.compile(r"^@\w+\{([^,\s]+),.*?^\}", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class ResolvedRun:
    """A config and all that follows from it and from the files that it names."""

    config: RunConfig
    conf_folders: tuple[Path, ...]  # of the plugins, then our own
    family: Family  # completed from its bases, with the overrides of `reply_tokens`
    # The methods of `methods`, then of `predictions`. An audit has one per kind of known answers.
    methods: tuple[Method, ...]
    judging: tuple[StageSpec, ...]  # the stages that follow every method
    steps_with_engines: tuple[StepWithEngine, ...]  # in dependency order, those of the corpus first
    named_by: Mapping[str, str]  # the first method that names a step, by step id

    @property
    def steps(self) -> list[Step]:
        return [step for step, _ in self.steps_with_engines]

    @cached_property
    def phases(self) -> list[Phase]:
        return phases(self.steps_with_engines)

    @cached_property
    def hashed(self) -> dict[str, Any]:
        """The settings that a run must keep: all but methods, raters, repeats, documents."""
        config = self.config
        engine = config.engine.identity()
        roles: tuple[Role, ...] = ("memory", "extractor", "query_expander")
        by_role = {role: [e.identity() for e in config.engines(role)] for role in roles}
        return {
            "corpus": dict(config.corpus.hashed()),
            "memory": config.memory.model_dump(mode="json", exclude={"name"}),
            "engine": {**engine, "constrained": config.is_constrained(config.engine)},
            "seed": config.engine.seed,  # random draws use it whatever the temperature
            **({"shuffle_options": True} if config.shuffle_options else {}),
            "roles": {role: of_role for role, of_role in by_role.items() if of_role != [engine]},
            "family": self.family.hashed(),
            **config.embedder.hashed(),
        }

    @cached_property
    def settings_sha(self) -> str:
        """A hash, 8 hex digits, of all settings that decide what is made, and of what."""
        config = self.config
        chosen = [config.corpus.selection(), config.limit, config.sample]
        methods = [method.name for method in self.methods]
        raters = [rater.identity() for rater in config.engines("judge")]
        repeats = [config.repeats, config.repeat_from] if config.repeats > 1 else []
        return sha([self.hashed, chosen, methods, raters, *repeats], 8)

    @cached_property
    def name(self) -> str:
        """`run`, else the experiment's or corpus's name and the hash of the settings."""
        config = self.config
        if config.run:
            return config.run
        # Only characters legal in a run's name: corpus `My Books (2024)` gives my-books-2024-...
        words = re.findall(r"[a-z0-9_]+", (config.name or config.corpus.name).lower())
        start = "-".join(words)[: MOST_RUN_NAME - 20].rstrip("-")
        name = f"{start}-{self.settings_sha}".lstrip("-")
        return name if name[0].isalpha() else f"run-{name}"


def read_run(overrides: Sequence[str]) -> ResolvedRun:
    return resolve(read_config(overrides))


def run_of(values: Mapping[str, Any]) -> ResolvedRun:
    return resolve(parsed_config(values))


def resolve(config: RunConfig) -> ResolvedRun:
    """All that follows from a config. Raises UsageError for a config that cannot work, as far as
    that shows without the corpus."""
    try:
        confs = conf_folders(config.plugins)
        roots = [conf / "prompts" for conf in confs]
        key = "family" if config.family else "corpus.family"
        folder = find_family(config.family or config.corpus.family, roots, key)
        family = load_family(folder, roots, config.reply_tokens)
        defaults = default_settings(config, family)
        methods = expanded(config, confs, defaults)
        judging = stage_specs(f"{family.folder}/family.yaml: judging", family.judging)
        run_variants = variants(config, methods, confs, defaults)
        for variant in run_variants:
            check_config(variant.config)
        _check_family(config, family, run_variants, judging)
        steps_with_engines, named_by = run_steps(run_variants, family, judging)
    except (OSError, ValueError) as error:  # of a name that no file can have
        raise UsageError(f"a path in the settings cannot be read: {error}; set another") from None
    if config.repeats > 1:
        _refuse_equal_repeats(config, steps_with_engines)
    return ResolvedRun(
        config, confs, family, (*methods,), judging, (*steps_with_engines,), named_by
    )


def expanded(
    config: RunConfig, confs: Sequence[Path], defaults: Mapping[str, Any] = {}
) -> list[Method]:
    """The methods of a config, in the order of `ResolvedRun.methods`."""
    folders = [conf / "method" for conf in reversed(confs)]
    methods = expand_methods(config.methods, folders, defaults) if config.methods else []
    for name, file in config.predictions.items():
        methods.append(method_of(_PREDICTIONS, name, {"file": file}, defaults))
    if config.audit_of:
        file = str(RunFolder(config.warehouse, config.run or "").known_answers)
        for kind in dict.fromkeys(kind for kind, _ in read_known_answers(file)):
            values = {"file": file, "made_as": kind}
            methods.append(method_of(_KNOWN_ANSWER, known_method(kind), values, defaults))
    return methods


def _check_family(
    config: RunConfig, family: Family, variants: Sequence[Variant], judging: Sequence[StageSpec]
) -> None:
    """Raise UsageError for settings, budgets and names in templates that nothing uses."""
    for line in wrong_settings(family):
        raise UsageError(line)
    for name in config.reply_tokens:
        if name not in PROMPTS:
            raise UsageError(f"reply_tokens.{name}: no such prompt; {hint(name, sorted(PROMPTS))}")
    specs = [spec for variant in variants for spec in variant.stages]
    specs += [spec for variant in variants for method in variant.methods for spec in method.stages]
    stages = [spec.stage for spec in (*specs, *judging)]
    for prompt in dict.fromkeys(p for s in stages for p in (*s.prompts, *s.leaves_room_for)):
        for template in (prompt, *prompt.follows):
            family.check_template(template)


def _refuse_equal_repeats(config: RunConfig, steps_with_engines: Sequence[StepWithEngine]) -> None:
    """Raise UsageError if all repeats would be the same."""
    engines = [
        engine
        for step, engine in steps_with_engines
        if engine and step.stage and step.repeat == 1 and step.stage.role != "judge"
    ]
    if not any(engine.samples for engine in engines or [config.engine]):
        raise UsageError(
            f"repeats={config.repeats}: all would be the same; set engine.temperature=0.7 or "
            "another above 0 of an engine that samples, or repeats=1"
        )


def run_manifest(run: ResolvedRun) -> dict[str, Any]:
    """The content of config.yaml: the config, its hashed part, and facts for reports (the files
    they come from may change). A Ray job's runtime_env is left out: it may hold secrets."""
    config = {**run.config.model_dump(mode="json"), "run": run.name}
    if "runtime_env" in config["cluster"]:
        config["cluster"]["runtime_env"] = {}
    return {
        "run": run.name,
        "hashed": run.hashed,
        "settings_sha": run.settings_sha,
        "report": _report_facts(run),
        "config": config,
    }


def _report_facts(run: ResolvedRun) -> dict[str, Any]:
    config, steps = run.config, run.steps
    engine = config.engine if config.methods else None
    asking = [(step, engine) for step, engine in run.steps_with_engines if engine]
    papers = [(str(method.file), method.papers) for method in run.methods]
    papers.append((f"corpus.format={config.corpus.format}", (*config.corpus.papers,)))
    facts: dict[str, Any] = {
        "corpus": config.corpus.name,
        "engine": engine.title if engine else "none",
        "engine_note": engine.about_replies if engine else None,
        "reply_format": "constrained" if config.is_constrained(config.engine) else "free",
        "is_model": engine is None or engine.is_model,
        "methods": list(dict.fromkeys(step.method for step in steps if step.method)),
        "imported": _imported(config, steps),
        "papers": papers_of(papers, run.conf_folders),
        "licences": dict(config.corpus.licences_by_name()),
        "columns": _columns(steps),
        "stages": stage_names(steps),
        "judging": [spec.stage.name for spec in run.judging],
        "family": run.family.name,
        "wording": run.family.wording,
        "repeats": config.repeats,
        "repeat_from": config.repeat_from,
        # The engines whose calls are stored without what was sent.
        "without_prompts": [
            *dict.fromkeys(phase.engine.title for phase in run.phases
                           if phase.engine and not phase.engine.keep_prompts)
        ],
        "prices": {step.id: e.price.model_dump() for step, e in asking if e.price.is_known},
        # The stages that ask a model, and whether reply_format=constrained would constrain it.
        "models": {step.name: config.reply_format == "free" and e.takes_constraints
                   for step, e in asking if e.is_model},
    }  # fmt: skip
    if config.audit_of:
        # The kind of known answers that each method of an audit gives, and what they are worth.
        answers = read_known_answers(str(RunFolder(config.warehouse, run.name).known_answers))
        facts["known_answers"] = {
            known_method(answer.kind): {
                "kind": answer.kind,
                "is_right": answer.worth == "right",
                "is_typical": KINDS[answer.kind].is_typical,
            }
            for answer in answers.values()
        }
    return facts


def papers_of(
    keys_by_origin: Iterable[tuple[str, Sequence[str]]], folders: Sequence[Path]
) -> dict[str, str]:
    """The BibTeX entries by key, from `papers.bib` in `conf` folders. `keys_by_origin`: keys by
    the file or config key that names them. Raises UsageError for one without an entry."""
    files = [file for folder in folders if (file := folder / "papers.bib").is_file()]
    texts = [file.read_text(encoding="utf-8") for file in files]
    entries = {entry[1]: entry[0] for text in texts for entry in _BIBTEX.finditer(text)}
    named = [(origin, key) for origin, keys in keys_by_origin for key in keys]
    for origin, key in named:
        if key not in entries:
            raise UsageError(f"{origin}: papers: no entry {key!r}; there are {', '.join(entries)}")
    return {key: entries[key] for _, key in named}


def _imported(config: RunConfig, steps: Sequence[Step]) -> dict[str, str]:
    imported = {}
    for step in steps if not config.audit_of else ():
        if step.method and step.stage and (answers := step.stage.inputs_per_question()):
            file = config.predictions.get(step.method, "")
            imported[step.method] = f"{file.rpartition('/')[2]} {sha(dict(answers), 12)}"
    return imported


def stage_names(steps: Sequence[Step]) -> list[str]:
    """All stages in dependency order over all methods: loading, index, then question stages."""
    depths: dict[str, int] = {}
    order: dict[str, tuple[int, int]] = {}
    for step in steps:
        depths[step.id] = 1 + max((depths[up.id] for up in step.upstream), default=0)
        kind = 0 if step.stage is None else 1 if step.stage.is_index() else 2
        order[step.name] = max(order.get(step.name, (0, 0)), (kind, depths[step.id]))
    return sorted(order, key=order.__getitem__)


def _columns(steps: Sequence[Step]) -> dict[str, list[dict[str, Any]]]:
    columns: dict[str, dict[str, Any]] = {kind: {} for kind in get_args(QuestionKind)}
    for step in steps:
        for kind, of_stage in (step.stage.columns() if step.stage else {}).items():
            columns[kind] |= {column.measure: asdict(column) for column in of_stage}
    return {kind: list(of_kind.values()) for kind, of_kind in columns.items()}
