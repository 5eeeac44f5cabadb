"""Run compatibility: a named run may gain methods, raters, repeats, documents and questions;
nothing else of it may change."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from jobs.config.run_config import RunConfig
from jobs.graph.read_run import parsed_config
from jobs.graph.resolved_run import ResolvedRun, expanded, resolve
from jobs.output.cells import counted
from pipeline.core.errors import UsageError
from pipeline.core.registry import conf_folders
from pipeline.core.settings import sha
from pipeline.files.storage import as_path
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connection import query
from pipeline.work.methods import Method

# Settings in the configs of version 0.2 that there are no more, with their values in runs that did
# not use them.
_GONE: Mapping[str, Any] = {"tracker": {"name": "none"}, "corpus.corrections": None}


def merge_with_stored_run(run: ResolvedRun, folder: RunFolder) -> ResolvedRun:
    """The run with the methods, raters and repeats that it was started with, too.

    Raises UsageError showing the differences if the run was started with other settings, and for
    the file of another method.
    """
    before = folder.config()
    if before is None:
        return run
    # A method added later may bring the first embedder; a plugin, or another version, more
    # templates or fewer.
    made = {"embedder": run.hashed.get("embedder"), **before["hashed"]}
    ours, theirs = run.hashed["family"]["templates"], made["family"]["templates"]
    templates = {name: theirs.get(name, own) for name, own in ours.items()}
    made["family"] = {**made["family"], "templates": templates}
    made.pop("repeats", None)  # of an earlier version
    earlier = parsed_config(_without_gone(before["config"], run.name))
    differences = [*_differences(made, run.hashed, "")]
    froms = earlier.repeat_from, run.config.repeat_from
    # A run with a single repeat is the same with either.
    if min(earlier.repeats, run.config.repeats) > 1 and froms[0] != froms[1]:
        differences.append(f"repeat_from {froms[0]} -> {froms[1]}")
    if earlier.audit_of != run.config.audit_of:
        differences.append(f"audit_of {earlier.audit_of} -> {run.config.audit_of}")
    if differences:
        raise UsageError(
            f"run={run.name} was started with other settings: {'; '.join(differences)}; name "
            "another run"
        )
    _refuse_shared_file(earlier.predictions, run.config.predictions)
    config = run.config.model_copy(update={"run": run.name})
    both = config.model_copy(update=_of_both(earlier, run))
    return run if both == config else resolve(both)


def _of_both(earlier: RunConfig, run: ResolvedRun) -> dict[str, Any]:
    """The settings that a run may gain, with those of its earlier config."""
    config, own = run.config, _names(run.config, run.methods)
    names = own
    if earlier.methods != config.methods:
        before = _names(earlier, expanded(earlier, conf_folders(earlier.plugins)))
        names = [*dict.fromkeys([*before, *own])]
    raters = [*earlier.raters, *config.raters]
    return {
        "methods": config.methods if names == own else ",".join(names),
        "predictions": {**earlier.predictions, **config.predictions},
        "raters": tuple({sha(rater.model_dump(mode="json")): rater for rater in raters}.values()),
        "repeats": max(earlier.repeats, config.repeats),
        "repeat_from": (earlier if earlier.repeats > config.repeats else config).repeat_from,
    }


def _refuse_shared_file(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Raise UsageError if a method's new file is another method's: every launch reads files again,
    so new answers written over it would become both methods'."""
    for name, file in now.items():
        for other, own in before.items():
            is_shared = other != name and as_path(own).resolve() == as_path(file).resolve()
            if is_shared and before.get(name) != file:
                raise UsageError(
                    f"predictions={file}: the file of the method {other}; copy it, and name the "
                    "copy"
                )


def stored_config(folder: RunFolder) -> RunConfig:
    """The config a run was last started with. Raises UsageError if there is no such run."""
    before = folder.config()
    if before is None:
        raise UsageError(f"{folder.path}: no such run; gistmill ls warehouse=DIR lists them")
    config = _without_gone(before["config"], folder.path.name)
    return parsed_config({**config, "run": before["run"]})


def _without_gone(config: Mapping[str, Any], run: str) -> dict[str, Any]:
    """A stored config without settings that no longer exist. Raises UsageError if one was used."""
    found = deepcopy(dict(config))
    for key, unused in _GONE.items():
        *sections, name = key.split(".")
        section = found
        for part in sections:
            section = section.get(part, {})
        if (value := section.pop(name, unused)) != unused:
            shown = value["name"] if isinstance(value, Mapping) else value
            raise UsageError(f"run={run} has {key}={shown}, which is gone since version 0.2; it "
                             "can be read, but not continued: name another run")  # fmt: skip
    return found


_BAD = {
    "document": """select document_id as id from documents where problem is not null or skipped
        union all select document_id from questions anti join documents using (document_id)
        where problem is not null""",
    "question": """select question_id as id from questions
        where problem is not null or document_id in
            (select document_id from documents where problem is not null or skipped)""",
}


def refuse_fewer(folder: RunFolder, plan: Path) -> None:
    """Raise UsageError if the file of this command's `plan` leaves out documents or questions of
    the run, except unusable ones: these may be deleted or fixed, which changes some ids, and files
    that were never read may be converted or moved, as their rows advise."""
    for what in ("document", "question"):
        missing = folder.missing_from(plan, f"{what}_id")
        if missing:
            with connect(folder.warehouse, folder.path.name) as connection:
                missing -= {row["id"] for row in query(connection, _BAD[what])}
        if missing:
            raise UsageError(
                f"run={folder.path.name} has {counted(len(missing), what)} that this command "
                f"leaves out ({', '.join(sorted(missing)[:3])}); put them back, raise limit, or "
                "name another run"
            )


def _names(config: RunConfig, methods: Sequence[Method]) -> list[str]:
    return [method.name for method in methods if method.name not in config.predictions]


def _differences(before: Any, now: Any, key: str) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for part in {**before, **now}:
            yield from _differences(before.get(part), now.get(part), f"{key}.{part}".lstrip("."))
    elif before != now:
        yield f"{key} {before} -> {now}"
