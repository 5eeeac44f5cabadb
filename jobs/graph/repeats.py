"""Refuse repeats that would all be equal, and report engines whose replies do not vary."""

from collections.abc import Sequence

from jobs.config.run_config import RunConfig
from jobs.graph.step_graph import StepWithEngine
from pipeline.core.engine import EngineSettings
from pipeline.core.errors import UsageError

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
    if not any(_samples(engine) for _, engine in asked):
        raise UsageError(
            f"{what}: every repeat would be the same, as {_reasons(asked)}; set "
            "engine.temperature=0.7 or another above 0 of an engine that samples, or repeats=1"
        )
    if memories and not any(_samples(engine) for _, engine in memories):
        raise UsageError(
            f"{what}: repeat_from=memory would make the same memories in every repeat, as "
            f"{_reasons(memories)}; set repeat_from=questions, or an engine that samples"
        )


def equal_in_repeats(config: RunConfig, steps_with_engines: Sequence[StepWithEngine]) -> str | None:
    """A line on the engines whose replies are equal in every repeat; None if all of them sample."""
    memories, questions = (_asked_again(config, steps_with_engines, of) for of in (True, False))
    equal = [(section, engine) for section, engine in (*memories, *questions)
             if not _samples(engine)]  # fmt: skip
    if config.repeats == 1 or not equal:
        return None
    return f"repeats={config.repeats}: some replies are the same in all, as {_reasons(equal)}"


def _asked_again(
    config: RunConfig, steps_with_engines: Sequence[StepWithEngine], is_index: bool
) -> Asked:
    """The engines that make rows of memories, or else those that answer questions; never judges."""
    return [
        ("engine" if engine is config.engine else config.section(step.stage.role), engine)
        for step, engine in steps_with_engines
        if step.repeat == 1 and step.stage and step.prompts and engine
        if step.stage.is_index() == is_index and step.stage.role != "judge"
    ]


def _samples(engine: EngineSettings) -> bool:
    return not engine.is_deterministic and engine.temperature > 0


def _reasons(asked: Asked) -> str:
    reasons = [
        f"{section}={engine.name} is deterministic" if engine.is_deterministic
        else f"{section}.temperature is 0"
        for section, engine in asked
    ]  # fmt: skip
    return " and ".join(dict.fromkeys(reasons))
