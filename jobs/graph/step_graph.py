"""Build the steps of a run in dependency order: those of the corpus, of the shared memory, then for
every method those of its `stages` and those that judge its answers.

Methods with settings of their own, as in `gist_only[memory=uniform]`, are grouped by these: each
set of settings is a variant, whose steps are built as those of a run with these settings.

`repeats=N` makes the steps of questions N times, `repeat_from=memory` those of memories, too: each
repeat has a memory of its own name and, with sampling, draws with a seed of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from jobs.config.run_config import SECTIONS, Memory, RunConfig
from pipeline.core.engine import EngineSettings
from pipeline.core.errors import UsageError
from pipeline.core.registry import hint
from pipeline.core.rows import Document, IndexRow, Question
from pipeline.families.family import Family
from pipeline.store.shards.layout import SHARED, WHOLE_TEXT, of_repeat
from pipeline.work.methods import Method, StageSpec, stage_specs, value_of
from pipeline.work.stage import STAGES, Stage
from pipeline.work.units import Step

StepWithEngine = tuple[Step, EngineSettings | None]
"""A step and the engine that its stage asks; None if it asks none."""
_ENGINES = ("engine", "memory_engine", "extractor", "query_expander")
_OF_ENGINE = ("model", "context_tokens", "temperature")
_OF_EMBEDDER = ("model", "chunk_words")
# Their settings make other pages or gists: the memory that methods share is another one.
_OF_MEMORY = ("memory", "engine")


def default_settings(config: RunConfig, family: Family) -> dict[str, Any]:
    """The values of settings that a YAML leaves out, by the family, the corpus and the run."""
    return {
        **family.settings,
        "paragraphs": config.corpus.paragraphs,
        "page_breaks": config.corpus.page_breaks,
        "seed": config.engine.seed,
        "options_seed": config.engine.seed if config.shuffle_options else None,
        "repeat": 0,
        "embedder": config.embedder,
    }


@dataclass(frozen=True)
class Variant:
    """The settings of some methods. `stages` make the memory that these methods share, which is
    named `shared`."""

    config: RunConfig
    stages: tuple[StageSpec, ...]
    shared: str
    methods: list[Method]


def variants(
    config: RunConfig, methods: Sequence[Method], confs: Sequence[Path], defaults: Mapping[str, Any]
) -> list[Variant]:
    """All variants of a run, first that of the run's own settings. Raises UsageError for a setting
    that no method may have."""
    all_variants = [_variant(config, (), confs, defaults)]
    for method in methods:
        of_method = _variant(config, method.given, confs, defaults)
        variant = next((other for other in all_variants if other.config == of_method.config), None)
        if variant is None:
            variant = of_method
            all_variants.append(variant)
        variant.methods.append(method)
    return all_variants


def _variant(
    config: RunConfig,
    given: Sequence[tuple[str, str]],
    confs: Sequence[Path],
    defaults: Mapping[str, Any],
) -> Variant:
    """The variant with the settings that are `given` in a method's brackets, as yet without
    methods."""
    fields = type(config.memory).model_fields
    memory_keys = [f"memory.{name}" for name in fields if name not in ("name", "stages")]
    engine_keys = [f"{engine}.{name}" for engine in _ENGINES for name in _OF_ENGINE]
    keys = ["memory", *memory_keys, *(f"embedder.{name}" for name in _OF_EMBEDDER), *engine_keys]
    changed: dict[str, Any] = {}
    try:
        for key, value in sorted(given, key=lambda pair: pair[0] != "memory"):
            if key not in keys:
                raise UsageError(f"methods: [{key}=...]: no setting that a method may have; "
                                 f"{hint(key, keys)}")  # fmt: skip
            if key == "memory":
                changed["memory"] = Memory.model_validate(_memory_file(value, confs))
                continue
            section, _, name = key.partition(".")
            before = changed.get(section, getattr(config, section))
            values = before.model_dump(mode="json")
            if name == "model":  # taken literally
                values["model"] = value
            else:
                values[name] = None if value == "null" else value_of(f"methods: {key}", value)
            if values.get("model") != getattr(before, "model", None):
                values.pop("price", None)  # that of another model is not known
            changed[section] = type(before).model_validate(values)
    except ValidationError as error:
        written = ",".join(f"{key}={value}" for key, value in given)
        raise UsageError(f"methods: [{written}]: {error.errors()[0]['msg']}") from None
    varied = config.model_copy(update=changed)
    memory, settings = varied.memory, {**defaults, **varied.memory.overrides()}
    of_memory = [f"{key}={value}" for key, value in given if key.split(".")[0] in _OF_MEMORY]
    shared = f"{SHARED} [{','.join(of_memory)}]" if of_memory else SHARED
    first, *later = stage_specs(f"memory={memory.name}", memory.stages, settings)
    return Variant(varied, (replace(first, memory=shared), *later), shared, [])


def _memory_file(name: str, confs: Sequence[Path]) -> Any:
    files = [conf / "memory" / f"{name}.yaml" for conf in confs]
    if existing := [file for file in files if file.is_file()]:
        return yaml.safe_load(existing[0].read_text(encoding="utf-8"))
    names = sorted(file.stem for conf in confs for file in (conf / "memory").glob("*.yaml"))
    raise UsageError(f"methods: [memory={name}]: no such memory; {hint(name, names)}")


def run_steps(
    variants: Sequence[Variant], family: Family, judging: Sequence[StageSpec]
) -> tuple[list[StepWithEngine], dict[str, str]]:
    """Every step, without duplicates, in dependency order; and the first method that names it,
    by id. Raises UsageError for a stage whose inputs or settings do not fit."""
    steps: dict[str, StepWithEngine] = {}
    named_by: dict[str, str] = {}
    for variant in variants:
        graph, config = _Graph(variant, family, judging, steps), variant.config
        for repeat in range(config.repeats if config.repeat_from == "memory" else 1):
            graph.add_memory(repeat)
        for method in variant.methods:
            for repeat in range(config.repeats if method.has_repeats else 1):
                for step in graph.add_method(method, repeat):
                    named_by.setdefault(step.id, method.name)
    # Without methods the memory is the result; else its rows are made if a method reads them.
    needed: set[str] = set()  # step ids
    needed_steps: list[StepWithEngine] = []
    for step, engine in reversed(steps.values()):
        if named_by and step.stage and step.stage.is_index() and step.id not in needed:
            continue
        needed |= {upstream.id for upstream in step.upstream}
        needed_steps.append((step, engine))
    return needed_steps[::-1], named_by


class _Graph:
    """Builds the steps of one variant. `steps`: those of all variants, needed or not."""

    def __init__(
        self,
        variant: Variant,
        family: Family,
        judging: Sequence[StageSpec],
        steps: dict[str, StepWithEngine],
    ) -> None:
        self.variant, self.config, self.family = variant, variant.config, family
        self.judging, self.steps = judging, steps
        self.memory: dict[int, dict[str, Step]] = {}  # repeat -> the shared memory's steps, by key
        self.defaults = default_settings(self.config, family)
        corpus = self.config.corpus
        self.documents, questions = (
            Step(
                corpus=corpus.name,
                name=record.table,
                version=corpus.version,
                writes=record,
                settings=corpus.hashed(),
            )
            for record in (Document, Question)
        )
        for step in (self.documents, questions):
            self.steps.setdefault(step.id, (step, None))

    def add_memory(self, repeat: int) -> None:
        origin = f"memory={self.config.memory.name}"
        earlier = self.memory.setdefault(repeat, {})
        values = {**self.defaults, "repeat": repeat, **self.config.memory.overrides()}
        for spec in self.variant.stages:
            if not spec.stage.is_index():
                raise UsageError(f"{origin}: {spec.key}: answers questions; name it in a method")
            self._add(origin, spec, values, ("", repeat), earlier)

    def add_method(self, method: Method, repeat: int) -> list[Step]:
        values = {**self.defaults, "repeat": repeat}
        of = (method.name, repeat)
        earlier = dict(self.memory.get(repeat, self.memory[0]))
        judged = f"{method.file}, judged as {self.family.folder}/family.yaml says"
        by_origin = [(method.file, spec) for spec in method.stages]
        by_origin += [(judged, spec) for spec in self.judging]
        return [step for origin, spec in by_origin
                for step in self._add(origin, spec, values, of, earlier)]  # fmt: skip

    def _add(
        self,
        origin: str,
        spec: StageSpec,
        values: Mapping[str, Any],
        of: tuple[str, int],
        earlier: dict[str, Step],
    ) -> list[Step]:
        """Add and return the steps of a stage, one for each engine of its role. `of` is the method
        and the repeat, `earlier` the steps that the stage may read, by key."""
        where, method = f"{origin}: {spec.key}", of[0]
        stage = spec.made(f"{origin} ({method})" if method else origin, values)
        engines = self.config.engines(stage.role) if stage.prompts_used() else [None]
        if not engines and not any(spec is judging for judging in self.judging):
            raise UsageError(
                f"{where}: asks the role {stage.role}, which has no engine; set "
                f"{SECTIONS[stage.role]}=..."
            )
        upstream = _upstream(where, spec, earlier)
        steps = [self._step(where, spec, stage, upstream, engine, of) for engine in engines]
        for step in steps:
            earlier.pop(spec.key, None)  # later stages read the nearest
            earlier[spec.key] = step
        return steps

    def _step(
        self,
        where: str,
        spec: StageSpec,
        stage: Stage,
        upstream: Sequence[Step],
        engine: EngineSettings | None,
        of: tuple[str, int],
    ) -> Step:
        memory, is_index = _memory(where, stage, upstream), stage.is_index()
        method, repeat = of
        stage.refuse_upstream(method or where, [step.stage for step in upstream if step.stage])
        if is_index and self.config.repeat_from != "memory":
            repeat = 0
        if memory is None and is_index and not stage.starts_memory:
            memory = of_repeat(WHOLE_TEXT, repeat)
        step = Step(
            corpus=self.config.corpus.name,
            name=stage.name,
            version=stage.version,
            writes=stage.writes,
            settings=stage.hashed(),
            prompts=self._prompts(stage, engine),
            engine=engine.identity() if engine else None,
            method=None if is_index else method,
            repeat=repeat,
            memory=memory,
            upstream=(self.documents, *upstream),
            stage=stage,
        )
        if stage.starts_memory:
            shared = replace(step, memory=of_repeat(self.variant.shared, repeat))
            name = f"{spec.memory} of {memory}"  # which says the repeat
            if memory in (None, shared.memory):
                name = of_repeat(spec.memory, repeat)
            step = shared if shared.id in self.steps else replace(step, memory=name)
        self._refuse_two_of_a_memory(where, step)
        return self.steps.setdefault(step.id, (step, engine))[0]

    def _refuse_two_of_a_memory(self, where: str, step: Step) -> None:
        if not (issubclass(step.writes, IndexRow) and step.writes.once_per_memory):
            return
        for other, _ in self.steps.values():
            same_rows = (other.writes, other.memory) == (step.writes, step.memory)
            if same_rows and other.id != step.id:
                starts = sorted(label for label, kind in STAGES.items() if kind.starts_memory)
                raise UsageError(
                    f"{where}: {step.table} of the memory {step.memory} are made already, with "
                    f"other settings; start another memory before it, by {', '.join(starts)}"
                )

    def _prompts(self, stage: Stage, engine: EngineSettings | None) -> dict[str, Any]:
        """The hashed part of a step's prompts and of those that they follow."""
        family, is_constrained = self.family, engine and self.config.is_constrained(engine)
        followed = [earlier for prompt in stage.prompts_used() for earlier in prompt.follows]
        prompts = dict.fromkeys((*stage.prompts_used(), *followed))
        hashed: dict[str, Any] = {
            prompt.name: {"max_reply_tokens": family.max_reply_tokens(prompt)}
            for prompt in (*stage.leaves_room_for, *prompts)
        }
        for prompt in prompts:
            hashed[prompt.name]["template"] = family.sha(prompt)
            if (is_constrained or prompt in followed) and (form := family.form(prompt)):
                hashed[prompt.name]["form"] = form
            if prompt.version is not None:
                hashed[prompt.name]["version"] = prompt.version
            if words := family.own_refusals.get(prompt.name):
                hashed[prompt.name]["refusals"] = words
        return hashed


def _upstream(where: str, spec: StageSpec, earlier: Mapping[str, Step]) -> list[Step]:
    """The nearest earlier steps that write what the stage reads, or those that `from` names."""
    tables = [record.table for record in spec.stage.reads]
    for table in sorted(spec.reads_from.keys() - tables):
        reads = ", ".join(tables) or "no table of another stage"
        raise UsageError(f"{where}: from: it does not read {table}; it reads {reads}")
    upstream = []
    for record in spec.stage.reads:
        writers = {key: step for key, step in earlier.items() if step.writes is record}
        if not writers:
            names = dict.fromkeys(kind.name for kind in STAGES.values() if kind.writes is record)
            raise UsageError(
                f"{where}: reads {record.table}, which no earlier stage writes; put "
                f"{' or '.join(names) or 'a stage that does'} before it"
            )
        key = spec.reads_from.get(record.table, [*writers][-1])
        if key not in writers:
            raise UsageError(
                f"{where}: from: {record.table}: no earlier stage {key!r} writes it; "
                f"{' or '.join(writers)} does"
            )
        upstream.append(writers[key])
    return upstream


def _memory(where: str, stage: Stage, upstream: Sequence[Step]) -> str | None:
    """The memory that page indexes refer to. Raises UsageError if the rows read are of two."""
    named = [step for step in upstream if step.memory]
    paged = [step for step in named if step.writes.has_pages]
    memories = {step.memory for step in paged if step.writes not in stage.reads_other_memory}
    if len(memories) > 1:
        rows = [f"{step.table} of {step.memory}" for step in named]
        raise UsageError(
            f"{where}: would mix two memories, {' and '.join(rows)}; read all from stages that "
            "use the same one, with `from` where several write a table"
        )
    return next(iter([*memories, *(step.memory for step in named)]), None)
