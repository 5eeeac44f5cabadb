"""The check of a prompt family: `gistmill prompts check`."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.errors import UsageError
from pipeline.family import Family, load_family
from pipeline.family_file import read_family_file
from pipeline.methods import stage_specs
from pipeline.prompts import PROMPTS, Prompt
from pipeline.stage import STAGES, Stage


def check_family(folder: Path, roots: Sequence[Path]) -> list[str]:
    """One line per failure of the family in `folder`; empty when all is well.

    Its settings are those of stages, every prompt module's samples render and every value of theirs
    is in what is rendered, the parsers read the family's examples as it says and its forms as what
    they are filled with, and a prompt that decides what fits the context is as long as the prompt
    it leaves room for. Raises UsageError where the folder is no family.
    """
    family, own = load_family(folder, roots), read_family_file(folder)
    failures = list(wrong_settings(family))
    failures += [line for prompt in PROMPTS.values() for line in _check_prompt(family, prompt)]
    failures += _check_lengths(family) if not failures else []
    file = folder / "family.yaml"
    for name, examples in own.examples.items():
        for index, example in enumerate(examples):
            read = PROMPTS[name].samples()[0].read(example.reply, False)
            if read != example.reads:
                place = f"{file}: examples.{name}[{index}]"
                failures.append(f"{place}: read {_shown(read)}, expected {_shown(example.reads)}")
    failures += [f"{file}: forms.{line}" for line in _misread(family)]
    return list(dict.fromkeys(failures))


def wrong_settings(family: Family) -> Iterator[str]:
    """One line per setting that no stage has or whose value a stage refuses, and per stage that
    `judging` names and there is none of."""
    file = f"{family.folder}/family.yaml"
    stages = [stage for kinds in STAGES.values() for stage in kinds.values()]
    known = {name for stage in stages for name in stage.model_fields}
    for key in family.settings:
        if key not in known:
            yield f"{file}: settings.{key}: no stage has such a setting; remove it"
    yield from dict.fromkeys(
        f"{file}: settings{line}" for stage in stages for line in _refused(family, stage)
    )
    try:
        stage_specs(f"{file}: judging", family.judging)
    except UsageError as error:
        yield str(error)


def _refused(family: Family, stage: type[Stage]) -> Iterator[str]:
    """What a stage says to the family's settings; what else it lacks comes from elsewhere."""
    own = {key: value for key, value in family.settings.items() if key in stage.model_fields}
    try:
        stage(**own)
    except ValidationError as error:
        for wrong in error.errors():
            if wrong["type"] != "missing":
                key = "".join(f".{part}" for part in wrong["loc"])
                yield f"{key}: {wrong['msg'].removeprefix('Value error, ')}"


def _check_prompt(family: Family, prompt: type[Prompt[Any]]) -> Iterator[str]:
    for sample in prompt.samples():
        place = f"{family.folder}: {prompt.name}"
        try:
            text = _text(family, sample)
        except UsageError as error:
            yield str(error)
        except (TypeError, ValueError) as error:  # of a template's expression
            yield f"{place}: {error}"
        else:
            for value in rendered_values(sample):
                if value not in text:
                    yield f"{place}: {value!r} is not in the rendered prompt"


def rendered_values(prompt: Prompt[Any]) -> Iterator[str]:
    """Every value that the rendered prompt must hold."""
    for value in prompt.shown():
        yield from _values(value)


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, tuple):
        for inner in value:
            yield from _values(inner)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            if field.name != "kind":  # says how a passage is shown
                yield from _values(getattr(value, field.name))
    elif value is not None:
        yield str(value)


def _check_lengths(family: Family) -> Iterator[str]:
    """What fits the context is decided by the prompt that leaves room for another one, with the
    same fields, so it must be the longer one."""
    for kinds in STAGES.values():
        for stage in kinds.values():
            for prompt in stage.prompts:
                for other in stage.leaves_room_for:
                    yield from _check_length(family, prompt, other)


def _check_length(
    family: Family, prompt: type[Prompt[Any]], other: type[Prompt[Any]]
) -> Iterator[str]:
    shared = [n for n in _names(prompt) if n in _names(other)]
    for one in prompt.samples():
        for two in other.samples():
            alike = all(getattr(one, name) == getattr(two, name) for name in shared)
            if alike and len(_text(family, one)) < len(_text(family, two)):
                yield f"{family.folder}: {prompt.name}: shorter than {other.name}; lengthen it"


def _names(prompt: type[Prompt[Any]]) -> list[str]:
    return [field.name for field in dataclasses.fields(prompt)]


def _text(family: Family, prompt: Prompt[Any]) -> str:
    return "\n".join(message["content"] for message in family.render(prompt))


def _misread(family: Family) -> Iterator[str]:
    """The first reply in each form, if any, that its parser does not read as what it means."""
    for prompt in PROMPTS.values():
        form = family.form(prompt)
        for text, meant in prompt.form_values().items() if form else ():
            reply = form.replace("{}", text) if form else ""
            read = prompt.samples()[0].read(reply, False)
            if read != meant:
                yield f"{prompt.name}: {reply!r} is read as {read}, not {meant}"
                break


def _shown(read: object) -> object:
    return list(read) if isinstance(read, tuple) else read
