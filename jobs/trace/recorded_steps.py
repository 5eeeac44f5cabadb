"""The steps of a run as they were executed, rebuilt from what the warehouse stores of them.

steps/<step_id>.json has a step's stage, settings, engine and templates by hash, the run its
templates; so neither a config nor a method file is read, which may have changed since.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from upath import UPath

from pipeline.asking.ask import Reader
from pipeline.asking.rerender import RecordedEngine, recorded_reader
from pipeline.core.errors import DamagedError, UsageError
from pipeline.core.prompts import PROMPTS
from pipeline.core.rows import RECORDS, Question, Record, is_per_question
from pipeline.families.family import Family, load_family
from pipeline.store.runs.kept_families import kept_families
from pipeline.store.shards.damaged_files import MOVE_STEP, read_parsed
from pipeline.work.stage import STAGES, Stage


class _Asked(BaseModel):
    """One of the prompts of a step; `template`, by hash, is None if the prompt is only measured."""

    max_reply_tokens: int
    template: str | None = None
    form: str | None = None


class _Identity(BaseModel):
    """The fields used of an engine's identity, which is hashed as a whole."""

    engine: str
    temperature: float
    seed: int = 0
    context_tokens: int | None = None
    thinking_tokens: int | None = 0


class Description(BaseModel):
    """The content of steps/<step_id>.json that executing the step needs."""

    stage: str
    version: int
    settings: dict[str, Any]
    prompts: dict[str, _Asked]
    engine: dict[str, Any] | None
    repeat: int
    upstream: list[str]
    table: str

    @property
    def writes(self) -> type[Record] | None:
        """The record class of its rows; None if its plugin is not loaded."""
        return RECORDS.get(self.table)

    @property
    def templates(self) -> dict[str, str]:
        """The hashes of the templates that the step asks, by prompt."""
        return {name: own.template for name, own in self.prompts.items() if own.template}


class NotRenderedError(Exception):
    """A call that cannot be rendered again; the message is the reason, in one sentence."""


@dataclass(frozen=True)
class RecordedStep:
    """A step that asks a model, ready to be executed again."""

    id: str
    description: Description
    stage: Stage
    family: Family

    @property
    def identity(self) -> Mapping[str, Any]:
        """The settings of its engine that change replies."""
        return self.description.engine or {}

    @property
    def is_other_version(self) -> bool:
        """True if this gistmill has another version of the stage."""
        return self.stage.version != self.description.version

    def reader(self, engine: RecordedEngine) -> Reader:
        is_constrained = any(asked.form for asked in self.description.prompts.values())
        return recorded_reader(engine, self.identity, self.family, is_constrained)


class RecordedSteps:
    """The steps of one run by id, each read once."""

    def __init__(self, run: UPath, conf_folders: Sequence[Path], family: str | None) -> None:
        """Read the run's families. `family`: the one that the run's config names, used if the run
        stored none (an earlier version started it) and as far as it is unchanged. `conf_folders`:
        where to find it."""
        self._folder = run.parent.parent / "steps"
        self._families, self._damaged = kept_families(run)
        self._named = (conf_folders, family)
        self._descriptions: dict[str, Description] = {}
        self._steps: dict[str, RecordedStep] = {}

    def description(self, step_id: str) -> Description:
        """The stored description of a step. Raises NotRenderedError if it cannot be read."""
        if step_id not in self._descriptions:
            self._descriptions[step_id] = _description(self._folder / f"{step_id}.json")
        return self._descriptions[step_id]

    def step(self, step_id: str) -> RecordedStep:
        """A step by its id. Raises NotRenderedError if it cannot be executed again."""
        if step_id not in self._steps:
            own = self.description(step_id)
            if not _is_identity(own.engine):
                raise NotRenderedError(f"steps/{step_id}.json names no engine")
            self._steps[step_id] = RecordedStep(step_id, own, _stage(own), self._family(own))
        return self._steps[step_id]

    def upstream(self, description: Description, planned: Sequence[str]) -> list[str]:
        """The ids of the steps whose rows it reads, including those of `planned` that load its
        questions. Raises NotRenderedError."""
        found = list(description.upstream)
        writes = description.writes
        if writes is not None and is_per_question(writes):
            found += [step_id for step_id in planned if self._loads_questions(step_id)]
        return list(dict.fromkeys(found))

    def _loads_questions(self, step_id: str) -> bool:
        try:
            return self.description(step_id).table == Question.table
        except NotRenderedError:
            return False

    def _family(self, description: Description) -> Family:
        """The stored family with the templates of the step. Raises NotRenderedError."""
        templates = description.templates.items()
        for family in chain(self._families, self._as_now):
            if all(_template(family, name) == sha for name, sha in templates):
                return _as_described(family, description)
        raise NotRenderedError(self._why_no_family(description))

    @cached_property
    def _as_now(self) -> list[Family]:
        """The family of the run's config as it is now, if it can be used."""
        conf_folders, name = self._named
        roots = [conf / "prompts" for conf in conf_folders]
        folders = [*(root / name for root in roots), Path(name)] if name else []
        found = [folder for folder in folders if (folder / "family.yaml").is_file()]
        try:
            return [load_family(folder, roots) for folder in found[:1]]
        except (UsageError, OSError):
            return []

    def _why_no_family(self, description: Description) -> str:
        names = ", ".join(description.templates)
        if self._damaged:
            return f"its templates cannot be read: {self._damaged[0]}"
        if self._families:
            return f"no templates of {names} that the run kept are those it was made with"
        return (
            f"the run kept no templates, as an earlier version started it, and those of {names} "
            "are not here as they were"
        )


def _description(file: UPath) -> Description:
    try:
        return read_parsed(file, Description.model_validate_json, MOVE_STEP)
    except FileNotFoundError:
        raise NotRenderedError(f"steps/{file.name} is missing") from None
    except DamagedError as error:
        raise NotRenderedError(f"steps/{file.name}: {error.why}") from None


def _is_identity(engine: Any) -> bool:
    try:
        _Identity.model_validate(engine, strict=True)
    except ValidationError:
        return False
    return True


def _template(family: Family, name: str) -> str | None:
    """The hash of a prompt's template; None if the family or this gistmill has none."""
    try:
        return family.sha(PROMPTS[name])
    except (KeyError, UsageError):
        return None


def _as_described(family: Family, description: Description) -> Family:
    """The family with the reply budgets and forms that the step had; itself if these are its own,
    as its templates are compiled once then."""
    prompts = {name: own for name, own in description.prompts.items() if name in PROMPTS}
    budgets = {name: asked.max_reply_tokens for name, asked in prompts.items()}
    forms = {name: asked.form for name, asked in prompts.items() if asked.form}
    own = [family.max_reply_tokens(PROMPTS[name]) for name in budgets]
    if own == [*budgets.values()] and all(family.form(PROMPTS[n]) == f for n, f in forms.items()):
        return family
    return replace(
        family,
        reply_tokens={**family.reply_tokens, **budgets},
        forms={**family.forms, **forms},
    )


def _stage(description: Description) -> Stage:
    """The stage with its settings. Raises NotRenderedError if this gistmill has no such stage."""
    settings = dict(description.settings)
    kind = str(settings.pop("kind", ""))
    label = f"{description.stage} (kind {kind})" if kind else description.stage
    found = STAGES.get(description.stage, {}).get(kind)
    if found is None:
        raise NotRenderedError(
            f"the stage {label} is of a plugin that is not loaded; name it with plugins=DIR"
        )
    try:
        return found.model_validate_json(json.dumps(settings))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        why = f"the stage {label} has other settings here: {where}: {first['msg']}"
        raise NotRenderedError(why) from None
