"""The steps of a run as they were executed, made from what the warehouse keeps of them.

steps/<step_id>.json has a step's stage, settings, engine and templates by hash, the run its
templates; so neither a config nor a method file is read, which may have changed since.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from upath import UPath

from pipeline.ask import Reader
from pipeline.errors import DamagedError, UsageError
from pipeline.family import Family, load_family
from pipeline.prompts import PROMPTS
from pipeline.rerender import Count, RecordedEngine, context_of, recorded_reader
from pipeline.rows import RECORDS, Question, Record, is_per_question
from pipeline.stage import STAGES, Stage
from pipeline.store.kept_families import kept_families
from pipeline.store.listing import MOVE_STEP, parsed


class _Asked(BaseModel):
    """One of the prompts of a step; `template`, by hash, is null where it is only measured."""

    max_reply_tokens: int
    template: str | None = None
    form: str | None = None


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
        """The record class of its rows; null where its plugin is not loaded."""
        return RECORDS.get(self.table)

    @property
    def templates(self) -> dict[str, str]:
        """The hashes of the templates that it asks, by prompt."""
        return {name: own.template for name, own in self.prompts.items() if own.template}


class NotRenderedError(Exception):
    """Why a call cannot be rendered again, in one sentence."""


@dataclass(frozen=True)
class RecordedStep:
    """A step that asks a model, ready to be executed again."""

    id: str
    description: Description
    stage: Stage
    family: Family

    def reader(self, engine: RecordedEngine) -> Reader:
        """Raises NotRenderedError where the engine's identity is not one."""
        identity = self.description.engine or {}
        is_constrained = any(asked.form for asked in self.description.prompts.values())
        if not isinstance(identity.get("temperature"), int | float):
            raise NotRenderedError(f"steps/{self.id}.json names no engine")
        return recorded_reader(engine, identity, self.family, is_constrained)

    @property
    def is_other_version(self) -> bool:
        """Whether this gistmill has another version of the stage."""
        return self.stage.version != self.description.version

    def engine(self, name: str, count: Count | None) -> RecordedEngine:
        return RecordedEngine(name, context_of(self.description.engine or {}), count)


class RecordedSteps:
    """The steps of one run by id, each read once."""

    def __init__(self, run: UPath, conf_folders: Sequence[Path], family: str | None) -> None:
        """`family`: the one that the run's config names, for runs of earlier versions, which kept
        no templates; `conf_folders`: where it may be."""
        self._folder = run.parent.parent / "steps"
        self._families, self._damaged = kept_families(run)
        self._named = None if self._families else _named(conf_folders, family)
        self._descriptions: dict[str, Description] = {}
        self._steps: dict[str, RecordedStep] = {}

    def description(self, step_id: str) -> Description:
        """Raises DamagedError and FileNotFoundError."""
        if step_id not in self._descriptions:
            file = self._folder / f"{step_id}.json"
            self._descriptions[step_id] = parsed(file, Description.model_validate_json, MOVE_STEP)
        return self._descriptions[step_id]

    def step(self, step_id: str) -> RecordedStep:
        """Raises NotRenderedError where it cannot be executed again."""
        if step_id not in self._steps:
            own = self._readable(step_id)
            self._steps[step_id] = RecordedStep(step_id, own, _stage(own), self._family(own))
        return self._steps[step_id]

    def upstream(self, description: Description, planned: Sequence[str]) -> list[str]:
        """The ids of the steps whose rows it reads, among them of `planned` those that load its
        questions. Raises NotRenderedError."""
        found = list(description.upstream)
        writes = description.writes
        if writes is not None and is_per_question(writes):
            found += [i for i in planned if self._readable(i).table == Question.table]
        return list(dict.fromkeys(found))

    def _readable(self, step_id: str) -> Description:
        try:
            return self.description(step_id)
        except FileNotFoundError:
            raise NotRenderedError(f"steps/{step_id}.json is missing") from None
        except DamagedError as error:
            raise NotRenderedError(f"steps/{step_id}.json: {error.why}") from None

    def _family(self, description: Description) -> Family:
        """The kept family with the templates of the step. Raises NotRenderedError."""
        known = [*self._families, *([self._named] if self._named else [])]
        for family in known:
            if all(_template(family, name) == sha for name, sha in description.templates.items()):
                return _as_described(family, description)
        raise NotRenderedError(self._why_no_family(description))

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


def _named(conf_folders: Sequence[Path], family: str | None) -> Family | None:
    """The family of that name as it is now; null where there is none that can be used."""
    if family is None:
        return None
    roots = [conf / "prompts" for conf in conf_folders]
    folders = [root / family for root in roots] + [Path(family)]
    try:
        found = next(folder for folder in folders if (folder / "family.yaml").is_file())
        return load_family(found, roots)
    except (StopIteration, UsageError, OSError):
        return None


def _template(family: Family, name: str) -> str | None:
    """The hash of a prompt's template; null where the family or this gistmill has none."""
    try:
        return family.sha(PROMPTS[name])
    except (KeyError, UsageError):
        return None


def _as_described(family: Family, description: Description) -> Family:
    """With the reply budgets and forms that the step had; itself where these are its own, as its
    templates are compiled once then."""
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
    """The stage with its settings. Raises NotRenderedError where this gistmill has none such."""
    settings = dict(description.settings)
    kind = settings.pop("kind", "")
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
