"""Refuse settings that cannot work, before a run's steps are made of them, and repeats that would
all be equal."""

from collections.abc import Sequence
from datetime import datetime

from jobs.config.clusters import parse_deadline
from jobs.config.run_config import SECTIONS, RunConfig
from jobs.graph.step_graph import StepWithEngine
from pipeline.core.engine import EngineSettings
from pipeline.core.errors import UsageError
from pipeline.core.prompts import PROMPTS
from pipeline.core.registry import hint
from pipeline.core.settings import CONF
from pipeline.families.family import Family
from pipeline.files.storage import as_path
from pipeline.work.check_family import wrong_settings
from pipeline.work.methods import StageSpec, stage_specs
from pipeline.work.stage import ROLES


def check_config(config: RunConfig) -> None:
    """Raise UsageError for settings that contradict each other or name nothing usable."""
    if config.cluster.deadline is not None:
        parse_deadline(config.cluster.deadline, datetime.now())
    _check_warehouse(config.warehouse)
    if config.limit and config.sample:
        raise UsageError("limit and sample are both set; set one of them to null")
    _refuse_useless(config)
    engines = [(role, engine) for role in ROLES for engine in config.engines(role)]
    if config.reply_format == "constrained" and not any(e.takes_constraints for _, e in engines):
        raise UsageError(
            f"reply_format=constrained: engine={config.engine.name} cannot constrain replies; "
            "use vllm or openai, or reply_format=free"
        )
    for role, engine in engines if config.cluster.name == "inline" else ():
        if engine.min_workers > 1:
            key = f"{SECTIONS[role]}.min_workers={engine.min_workers}"
            raise UsageError(f"{key}: cluster=inline has one worker; add cluster=local")


def _check_warehouse(warehouse: str) -> None:
    if warehouse.startswith(("http://", "https://")) or not warehouse.strip():
        raise UsageError(
            f"warehouse={warehouse}: cannot be written; name a folder, or s3://, gs://"
        )
    as_path(warehouse)


def _refuse_useless(config: RunConfig) -> None:
    """Raise UsageError for settings of the memory that none of its stages has."""
    memory = config.memory
    fields = {name for spec in stage_specs(f"memory={memory.name}", memory.stages)
              for name in spec.stage.model_fields}  # fmt: skip
    for key in memory.overrides():
        if key not in fields:
            files = (CONF / "memory").glob("*.yaml")
            other = " or ".join(sorted(f.stem for f in files if f.stem != memory.name))
            raise UsageError(f"memory.{key} does nothing here; add memory={other} or remove it")


def check_stages(config: RunConfig, family: Family, specs: Sequence[StageSpec]) -> None:
    """Raise UsageError for a setting that no stage has, a budget of an unknown prompt, or a
    template that cannot be rendered: before the run, rather than in every unit."""
    for line in wrong_settings(family):
        raise UsageError(line)
    for name in config.reply_tokens:
        if name not in PROMPTS:
            near = hint(name, sorted(PROMPTS))
            raise UsageError(f"reply_tokens.{name}: no such prompt; {near}")
    stages = [spec.stage for spec in specs]
    for prompt in dict.fromkeys(p for s in stages for p in (*s.prompts, *s.leaves_room_for)):
        for sample in prompt.samples():
            family.render(sample)


Asked = list[tuple[str, EngineSettings]]
"""The config sections and engines that are asked again in every repeat."""


def refuse_equal_repeats(config: RunConfig, steps_with_engines: Sequence[StepWithEngine]) -> None:
    """Raise UsageError if none of the engines that are asked again in every repeat samples, or,
    with repeat_from=memory, none of those that make memories."""
    if config.repeats == 1:
        return
    what = f"repeats={config.repeats}"
    memories, questions = (_asked_again(config, steps_with_engines, of) for of in (True, False))
    asked = [*memories, *questions] or [("engine", config.engine)]
    if not any(engine.samples for _, engine in asked):
        raise UsageError(
            f"{what}: every repeat would be the same, as {_reasons(asked)}; set "
            "engine.temperature=0.7 or another above 0 of an engine that samples, or repeats=1"
        )
    if memories and not any(engine.samples for _, engine in memories):
        raise UsageError(
            f"{what}: repeat_from=memory would make the same memories in every repeat, as "
            f"{_reasons(memories)}; set repeat_from=questions, or an engine that samples"
        )


def _asked_again(
    config: RunConfig, steps_with_engines: Sequence[StepWithEngine], is_index: bool
) -> Asked:
    """The engines that make rows of memories, or else those that answer questions; never judges."""
    return [
        ("engine" if engine is config.engine else SECTIONS[step.stage.role], engine)
        for step, engine in steps_with_engines
        if step.repeat == 1 and step.stage and step.prompts and engine
        if step.stage.is_index() == is_index and step.stage.role != "judge"
    ]


def _reasons(asked: Asked) -> str:
    reasons = [
        f"{section}={engine.name} is deterministic" if engine.is_deterministic
        else f"{section}.temperature is 0"
        for section, engine in asked
    ]  # fmt: skip
    return " and ".join(dict.fromkeys(reasons))
