"""Refuse repeats that would all be the same, and say which engines do not vary in them."""

from collections.abc import Sequence

from jobs.run_config import RunConfig
from jobs.step_graph import Placed, run_steps
from pipeline.engine import EngineSettings
from pipeline.errors import UsageError

Asked = list[tuple[str, EngineSettings]]
"""Config section and engine of what is asked again in every repeat."""


def refuse_equal_repeats(config: RunConfig) -> None:
    """Raise UsageError where none of the engines that are asked again in every repeat samples, or,
    with repeat_from=memory, none of those that make memories."""
    if config.repeats == 1:
        return
    what = f"repeats={config.repeats}"
    placed = run_steps(config)
    memories, questions = (_asked_again(config, placed, of) for of in (True, False))
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


def equal_in_repeats(config: RunConfig, placed: Sequence[Placed]) -> str | None:
    """A line on the engines that say the same in every repeat; null where all of them sample."""
    asked = [*_asked_again(config, placed, True), *_asked_again(config, placed, False)]
    equal = [(section, engine) for section, engine in asked if not _samples(engine)]
    if config.repeats == 1 or not equal:
        return None
    return f"repeats={config.repeats}: some replies are the same in all, as {_reasons(equal)}"


def _asked_again(config: RunConfig, placed: Sequence[Placed], is_index: bool) -> Asked:
    """What makes rows of memories, or else answers questions; not those who judge answers."""
    return [
        ("engine" if engine is config.engine else config.section(step.stage.role), engine)
        for step, engine in placed
        if step.repeat == 1 and step.stage and step.prompts and engine
        if step.stage.is_index() == is_index and step.stage.role != "judge"
    ]


def _samples(engine: EngineSettings) -> bool:
    return not engine.is_deterministic and engine.temperature > 0


def _reasons(asked: Asked) -> str:
    return " and ".join(
        dict.fromkeys(
            f"{section}={engine.name} is deterministic"
            if engine.is_deterministic
            else f"{section}.temperature is 0"
            for section, engine in asked
        )
    )
