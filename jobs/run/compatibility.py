"""Run compatibility: a named run may gain methods, raters, repeats, documents and questions;
nothing else of it may change. The content of its config.yaml, by which that is seen."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from jobs.config.papers import papers_of
from jobs.config.run_config import RunConfig
from jobs.graph.read_config import validated_config
from jobs.graph.step_graph import run_steps
from jobs.output.cells import counted
from pipeline.core.errors import UsageError
from pipeline.core.settings import sha
from pipeline.files.place import as_path
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connection import query
from pipeline.work.methods import NO_METHODS, stage_specs
from pipeline.work.steps import Step
from pipeline.work.units import DocumentKey


def run_manifest(config: RunConfig) -> dict[str, Any]:
    """The content of runs/<name>/config.yaml: the resolved config, its hashed part, and the facts
    that reports need (stored, as the files they come from may change). A Ray job's runtime_env is
    left out: it may hold secrets, and the next command brings its own."""
    made = config.model_dump(mode="json")
    if "runtime_env" in made["cluster"]:
        made["cluster"]["runtime_env"] = {}
    return {
        "run": config.run_name(),
        "hashed": config.hashed(),
        "report": _report_facts(config),
        "config": made,
    }


def _report_facts(config: RunConfig) -> dict[str, Any]:
    family, steps = config.family_resolved(), [step for step, _ in run_steps(config)]
    return {
        "corpus": config.corpus.name,
        "engine": config.engine.title if config.methods else "none",
        "reply_format": "constrained" if config.is_constrained(config.engine) else "free",
        "is_model": config.engine.is_model or not config.methods,
        "methods": list(dict.fromkeys(step.method for step in steps if step.method)),
        "imported": _given(config, steps),
        "papers": papers_of(_papers(config), config.conf_folders),
        "columns": _columns(steps),
        "stages": _stages(steps),
        "judging": [spec.stage.name for spec in stage_specs("judging", family.judging)],
        "family": family.name,
        "wording": family.wording,
        "repeats": config.repeats,
        "repeat_from": config.repeat_from,
    }


def _papers(config: RunConfig) -> Iterator[tuple[str, Sequence[str]]]:
    """The papers' keys, each with the file or config key that names them."""
    for method in config.expanded():
        yield str(method.file), method.papers
    yield f"corpus.format={config.corpus.format}", config.corpus.papers


def _given(config: RunConfig, steps: Sequence[Step]) -> dict[str, str]:
    """The file of a method's imported answers, and a hash of them, by method."""
    found = {}
    for step in steps:
        if step.method and step.stage and (own := step.stage.inputs_per_question()):
            file = config.predictions.get(step.method, "")
            found[step.method] = f"{file.rpartition('/')[2]} {sha(dict(own), 12)}"
    return found


def _stages(steps: Sequence[Step]) -> list[str]:
    """The names of all stages in dependency order over all methods: loading steps, then index
    stages, then question stages."""
    depths: dict[str, int] = {}
    places: dict[str, tuple[int, int]] = {}
    for step in steps:
        depths[step.id] = 1 + max((depths[up.id] for up in step.upstream), default=0)
        kind = 0 if step.stage is None else 1 if step.stage.is_index() else 2
        places[step.name] = max(places.get(step.name, (0, 0)), (kind, depths[step.id]))
    return sorted(places, key=places.__getitem__)


def _columns(steps: Sequence[Step]) -> dict[str, list[dict[str, Any]]]:
    """The report's columns by kind of question: any, free (free-form), choice (with options)."""
    found: dict[str, dict[str, dict[str, Any]]] = {"any": {}, "free": {}, "choice": {}}
    for step in steps:
        for kind, columns in (step.stage.columns() if step.stage else {}).items():
            found[kind] |= {column.measure: asdict(column) for column in columns}
    return {kind: list(columns.values()) for kind, columns in found.items()}


def merge_with_stored_run(config: RunConfig, folder: RunFolder) -> RunConfig:
    """The config under the run's name, with the methods, raters and repeats that the run has.

    Raises UsageError showing the differences if the run was started with other settings, and for
    the file of another method.
    """
    name = folder.path.name
    before = folder.config()
    if before is None:
        return config.model_copy(update={"run": name})
    now = config.hashed()
    # A method added later may bring the first embedder, and a plugin more templates.
    made = {"embedder": now.get("embedder"), **before["hashed"]}
    templates = {**now["family"]["templates"], **made["family"]["templates"]}
    made["family"] = {**made["family"], "templates": templates}
    made.pop("repeats", None)  # of an earlier version
    earlier = validated_config(before["config"])
    differences = [*_differences(made, now, ""), *_other_repeats(earlier, config)]
    if differences:
        raise UsageError(
            f"run={name} was started with other settings: {'; '.join(differences)}; name another "
            "run"
        )
    methods = ",".join(dict.fromkeys([*_names(earlier), *_names(config)]))
    both = [*earlier.raters, *config.raters]
    raters = tuple({sha(rater.model_dump(mode="json")): rater for rater in both}.values())
    _refuse_shared_file(earlier.predictions, config.predictions)
    predictions = {**earlier.predictions, **config.predictions}
    repeats = max(earlier.repeats, config.repeats)
    repeat_from = (earlier if earlier.repeats > config.repeats else config).repeat_from
    both_have = {
        "methods": methods or NO_METHODS,
        "predictions": predictions,
        "raters": raters,
        "repeats": repeats,
    }
    return config.model_copy(update={"run": name, "repeat_from": repeat_from, **both_have})


def _refuse_shared_file(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Raise UsageError for a method's new file that is another method's: every launch reads the
    file again, so new answers written over it would become those of both."""
    for name, file in now.items():
        of = next((other for other, own in before.items() if other != name
                   and as_path(own).resolve() == as_path(file).resolve()), None)  # fmt: skip
        if of is not None and before.get(name) != file:
            raise UsageError(f"predictions={file}: the file of the method {of}; copy it, and name "
                             "the copy")  # fmt: skip


def stored_config(folder: RunFolder) -> RunConfig:
    """The config a run was last started with. Raises UsageError if there is no such run."""
    before = folder.config()
    if before is None:
        raise UsageError(f"{folder.path}: no such run; gistmill ls warehouse=DIR lists them")
    return validated_config({**before["config"], "run": before["run"]})


def refuse_fewer(folder: RunFolder, keys: Sequence[DocumentKey]) -> None:
    """Raise UsageError if the run has documents or questions that this command leaves out, except
    documents that were never read: their files may be converted, or moved, as their rows advise."""
    questions = {question.question_id for key in keys for question in key.questions}
    for what, now in (("document", {key.document_id for key in keys}), ("question", questions)):
        missing = sorted(folder.planned(f"{what}_id") - now)
        if missing and what == "document":
            missing = sorted({*missing} - _not_read(folder))
        if missing:
            raise UsageError(
                f"run={folder.path.name} has {counted(len(missing), what)} that this command "
                f"leaves out ({', '.join(missing[:3])}); put them back, raise limit, or "
                "name another run"
            )


def _not_read(folder: RunFolder) -> set[str]:
    with connect(folder.warehouse, folder.path.name) as connection:
        rows = query(connection, "select document_id from documents where skipped")
    return {row["document_id"] for row in rows}


def _names(config: RunConfig) -> list[str]:
    return [method.name for method in config.expanded() if method.name not in config.predictions]


def _other_repeats(before: RunConfig, now: RunConfig) -> list[str]:
    """The difference in `repeat_from`; none if a run has a single repeat, which is the same with
    either."""
    if min(before.repeats, now.repeats) == 1 or before.repeat_from == now.repeat_from:
        return []
    return [f"repeat_from {before.repeat_from} -> {now.repeat_from}"]


def _differences(before: Any, now: Any, key: str) -> list[str]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        inner = [
            _differences(before.get(part), now.get(part), f"{key}.{part}".lstrip("."))
            for part in {**before, **now}
        ]
        return [line for lines in inner for line in lines]
    return [] if before == now else [f"{key} {before} -> {now}"]
