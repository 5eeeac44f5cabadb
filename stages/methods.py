"""From `readagent_p(max_pages=1..6),bm25` to the look-up and answer stages of each method.

A method is a YAML file in conf/method/: its `arguments` with their defaults (null: must be given)
and the settings of its `look_up` and `answer` stage, where `$name` stands for an argument. Settings
a file leaves out are the family's.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from pipeline.errors import UsageError
from stages.answer import (
    AnswerClosedBook,
    AnswerConstant,
    AnswerFromContext,
    AnswerFromMemory,
    AnswerFromPages,
    AnswerFromText,
)
from stages.look_up import LookUp, NoLookUp, ReadAgentP, ReadAgentS, ReadAgentSAnswering
from stages.retrieve import BM25, Dense, OraclePages, RandomPages

LOOK_UPS: dict[str, type[LookUp]] = {
    "none": NoLookUp,
    "parallel": ReadAgentP,
    "sequential": ReadAgentS,
    "sequential_answering": ReadAgentSAnswering,
    "bm25": BM25,
    "dense": Dense,
    "random": RandomPages,
    "oracle": OraclePages,
}
ANSWERS: dict[str, type[AnswerFromContext]] = {
    "memory": AnswerFromMemory,
    "pages": AnswerFromPages,
    "text": AnswerFromText,
    "nothing": AnswerClosedBook,
    "constant": AnswerConstant,
}


@dataclass(frozen=True)
class Method:
    """A method with all its arguments: `name` is canonical, the settings are what its YAML says."""

    name: str
    look_up: Mapping[str, Any]
    answer: Mapping[str, Any]

    def stages(
        self, look_up_values: Mapping[str, Any], answer_values: Mapping[str, Any]
    ) -> tuple[LookUp, AnswerFromContext]:
        """Its two stages; the values are those of settings its YAML leaves out.

        Raises UsageError naming the argument that is of the wrong kind.
        """
        try:
            look_up = _stage(LOOK_UPS, "strategy", self._look_up(look_up_values), look_up_values)
            answer = _stage(ANSWERS, "kind", self.answer, answer_values)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise UsageError(f"methods: {self.name}: {where}: {first['msg']}") from None
        return look_up, answer

    def _look_up(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        answers = self.look_up["strategy"] == "sequential" and values["answer_each_look_up"]
        return {**self.look_up, **({"strategy": "sequential_answering"} if answers else {})}


def _stage(
    classes: Mapping[str, Any], key: str, settings: Mapping[str, Any], values: Mapping[str, Any]
) -> Any:
    made = classes[settings[key]]
    own = {name: value for name, value in values.items() if name in made.model_fields}
    return made(**{**own, **settings})


def available(folder: Path) -> dict[str, Mapping[str, Any]]:
    """The arguments and defaults of every method in `folder`."""
    return {file.stem: _read(file)["arguments"] for file in sorted(folder.glob("*.yaml"))}


def expand(text: str, folder: Path) -> list[Method]:
    """The methods `text` names, in its order, each once.

    `1..6` counts up inclusively, `a|b` are alternatives; several such arguments multiply in the
    order written. Raises UsageError for unknown methods and for unknown or missing arguments.
    """
    found: dict[str, Method] = {}
    for part in _split(text):
        for method in _expand_one(part, folder):
            found.setdefault(method.name, method)
    if not found:
        raise UsageError(f"methods={text}: names no method; gistmill ls shows those there are")
    return list(found.values())


def _split(text: str) -> list[str]:
    """The parts between commas that stand outside brackets."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _expand_one(part: str, folder: Path) -> Iterator[Method]:
    match = re.fullmatch(r"([A-Za-z]\w*)\s*(?:\((.*)\))?", part, re.DOTALL)
    if not match:
        raise UsageError(f"methods: {part!r} is no method; write it like bm25(top_k=3)")
    name, written = match[1], match[2] or ""
    file = folder / f"{name}.yaml"
    if not file.is_file():
        known = ", ".join(sorted(f.stem for f in folder.glob("*.yaml")))
        raise UsageError(f"methods: no method {name!r}; there are {known}")
    declared = _read(file)
    given = _arguments(name, written, declared["arguments"])
    for values in itertools.product(*given.values()):
        yield _method(name, declared, dict(zip(given, values, strict=True)))


def _arguments(name: str, written: str, declared: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Each argument written, with its alternatives."""
    given: dict[str, list[Any]] = {}
    for part in (p.strip() for p in written.split(",") if p.strip()):
        key, equals, value = (p.strip() for p in part.partition("="))
        takes = ", ".join(declared) or "none"
        if not equals or key not in declared:
            raise UsageError(f"methods: {name}: no argument {part!r}; it takes {takes}")
        if key in given:
            raise UsageError(f"methods: {name}: {key} is given twice; write {key}=a|b for both")
        given[key] = list(_alternatives(f"methods: {name}: {key}", value))
    for key, default in declared.items():
        if default is None and key not in given:
            raise UsageError(f"methods: {name}: {key} is missing; write {name}({key}=...)")
    return given


def _alternatives(place: str, written: str) -> Iterator[Any]:
    for part in written.split("|"):
        span = re.fullmatch(r"\s*(\d+)\.\.(\d+)\s*", part)
        if not span:
            yield _value(place, part)
        elif int(span[1]) > int(span[2]):
            raise UsageError(f"{place}={part.strip()} counts down; write {span[2]}..{span[1]}")
        else:
            yield from range(int(span[1]), int(span[2]) + 1)


def _value(place: str, written: str) -> str | int | float:
    try:
        value = yaml.safe_load(written)
    except (yaml.YAMLError, ValueError):  # ValueError: 2024-13-45 is no date
        value = None
    if not isinstance(value, str | int | float):
        raise UsageError(f"{place}={written.strip()} is no value; write a number or a word")
    return value


def _method(name: str, declared: Mapping[str, Any], given: Mapping[str, Any]) -> Method:
    values = {key: given.get(key, default) for key, default in declared["arguments"].items()}
    printed = ",".join(f"{key}={value}" for key, value in values.items())
    return Method(
        name=f"{name}({printed})" if printed else name,
        look_up=_filled(declared["look_up"], values),
        answer=_filled(declared["answer"], values),
    )


def _filled(settings: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: values[value[1:]] if isinstance(value, str) and value.startswith("$") else value
        for key, value in settings.items()
    }


def _read(file: Path) -> dict[str, Any]:
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    missing = {"arguments", "look_up", "answer"} - set(content or {})
    if missing:
        raise UsageError(f"{file}: {', '.join(sorted(missing))} missing; see the other methods")
    return dict(content)
