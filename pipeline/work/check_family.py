"""Check a prompt family without a model: `gistmill prompts check`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.core.errors import UsageError
from pipeline.core.prompts import PROMPTS, Prompt, rendered_values
from pipeline.families.family import Family, load_family, read_family_file
from pipeline.work.methods import stage_specs
from pipeline.work.stage import STAGES, Stage


def check_family(folder: Path, roots: Sequence[Path]) -> list[str]:
    """One line per failure of the family in `folder`; empty if all checks pass.

    Checked: settings exist and stages accept them; every prompt's samples render and the rendered
    text shows each of their values; parsers read the expected values from the family's example
    replies and forms. Raises UsageError if the folder is no family.
    """
    family, own = load_family(folder, roots), read_family_file(folder)
    failures = list(wrong_settings(family))
    failures += [line for prompt in PROMPTS.values() for line in _check_prompt(family, prompt)]
    file = folder / "family.yaml"
    for name, examples in own.examples.items():
        for index, example in enumerate(examples):
            read = _read(family, PROMPTS[name], example.reply)
            if read != example.reads:
                key = f"{file}: examples.{name}[{index}]"
                failures.append(f"{key}: read {_shown(read)}, expected {_shown(example.reads)}")
    failures += [f"{file}: forms.{line}" for line in _misread(family)]
    return list(dict.fromkeys(failures))


def wrong_settings(family: Family) -> Iterator[str]:
    """One line per setting that no stage has or that a stage refuses, and for the first unknown
    stage in `judging`."""
    file = f"{family.folder}/family.yaml"
    stages = [*STAGES.values()]
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
    """A stage's errors about the family's settings; methods may set missing ones."""
    settings = {key: value for key, value in family.settings.items() if key in stage.model_fields}
    try:
        stage(**settings)
    except ValidationError as error:
        for wrong in error.errors():
            if wrong["type"] != "missing":
                key = "".join(f".{part}" for part in wrong["loc"])
                yield f"{key}: {wrong['msg'].removeprefix('Value error, ')}"


def _check_prompt(family: Family, prompt: type[Prompt[Any]]) -> Iterator[str]:
    for sample in prompt.samples():
        try:
            text = "\n".join(message["content"] for message in family.render(sample))
        except UsageError as error:
            yield str(error)
            continue
        for value in rendered_values(sample):
            if value not in text:
                name = f"{family.folder}: {prompt.name}"
                yield f"{name}: {value!r} is not in the rendered prompt"


def _misread(family: Family) -> Iterator[str]:
    for prompt in PROMPTS.values():
        form = family.form(prompt) or ""
        for text, meant in prompt.form_values().items() if form else ():
            reply = form.replace("{}", text)
            if (read := _read(family, prompt, reply)) != meant:
                yield f"{prompt.name}: {reply!r} is read as {read}, not {meant}"
                break


def _read(family: Family, prompt: type[Prompt[Any]], reply: str) -> Any:
    return family.read(prompt.samples()[0], reply, is_cut=False)


def _shown(read: object) -> object:
    return list(read) if isinstance(read, tuple) else read
