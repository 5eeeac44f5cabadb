"""Check a prompt family without a model: `gistmill prompts check`."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from pipeline.core.errors import UsageError
from pipeline.core.prompts import PROMPTS, rendered_values
from pipeline.families.family import Family, load_family, read_family_file
from pipeline.work.methods import stage_specs
from pipeline.work.stage import STAGES


def check_family(folder: Path, roots: Sequence[Path]) -> list[str]:
    """One line per failure of the family in `folder`. Stages must accept its settings; every
    prompt's samples must render, with each of their values in the text; parsers must read the
    expected values from example replies and forms. Raises UsageError if the folder is no family."""
    family, file = load_family(folder, roots), folder / "family.yaml"
    failures = list(wrong_settings(family))
    for sample in (sample for prompt in PROMPTS.values() for sample in prompt.samples()):
        try:
            text = "\n".join(message["content"] for message in family.render(sample))
        except UsageError as error:
            failures.append(str(error))
            continue
        name = f"{family.folder}: {sample.name}"
        lost = [value for value in rendered_values(sample) if value not in text]
        failures += (f"{name}: {value!r} is not in the rendered prompt" for value in lost)
    for name, examples in read_family_file(folder).examples.items():
        for index, example in enumerate(examples):
            sample = PROMPTS[name].samples()[0]
            if (value := family.read(sample, example.reply, is_cut=False)) != example.reads:
                key = f"{file}: examples.{name}[{index}]"
                failures.append(f"{key}: read {value}, expected {example.reads}")
    for prompt in PROMPTS.values():
        form = family.form(prompt) or ""
        for text, meant in prompt.form_values.items() if form else ():
            reply = form.replace("{}", text)
            if (value := family.read(prompt.samples()[0], reply, is_cut=False)) != meant:
                key = f"{file}: forms.{prompt.name}"
                failures.append(f"{key}: {reply!r} is read as {value}, not {meant}")
                break
    return list(dict.fromkeys(failures))


def wrong_settings(family: Family) -> Iterator[str]:
    """One line per setting that no stage has or that a stage refuses, and for the first unknown
    stage in `judging`."""
    file = f"{family.folder}/family.yaml"
    for key in family.settings:
        if not any(key in stage.model_fields for stage in STAGES.values()):
            yield f"{file}: settings.{key}: no stage has such a setting; remove it"
    refused: dict[str, None] = {}
    for stage in STAGES.values():
        values = {key: value for key, value in family.settings.items() if key in stage.model_fields}
        try:
            stage(**values)
        except ValidationError as error:
            for wrong in error.errors():
                if wrong["type"] != "missing":  # a method may set it
                    key = "".join(f".{part}" for part in wrong["loc"])
                    why = wrong["msg"].removeprefix("Value error, ")
                    refused[f"{file}: settings{key}: {why}"] = None
    yield from refused
    try:
        stage_specs(f"{file}: judging", family.judging)
    except UsageError as error:
        yield str(error)
