"""Build the steps of a run in dependency order: the two that load the corpus, those of the shared
memory, then for every method those of its `stages` and those that judge its answers. Rows of a
memory that no question needs are not made, unless there is no method.

`repeats=N` makes the steps of questions N times, `repeat_from=memory` those of memories, too: each
repeat has a memory of its own name and, with sampling, draws with a seed of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobs.config.run_config import SECTIONS, RunConfig
from jobs.graph.variants import Variant
from pipeline.core.engine import EngineSettings
from pipeline.core.errors import UsageError
from pipeline.core.rows import Document, IndexRow, Question, Record
from pipeline.families.family import Family
from pipeline.store.sql.memory_names import WHOLE_TEXT, of_repeat
from pipeline.work.methods import Method, StageSpec
from pipeline.work.stage import STAGES, Stage
from pipeline.work.units import Step

StepWithEngine = tuple[Step, EngineSettings | None]
"""A step and the engine that its stage asks; None if it asks none."""


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


def run_steps(
    variants: Sequence[Variant], family: Family, judging: Sequence[StageSpec]
) -> tuple[list[StepWithEngine], dict[str, str]]:
    """Every step of a run, without duplicates, in dependency order; and the first method that names
    it, by step id. `judging`: the stages that follow each method.

    Raises UsageError, naming the file, the stage and what to do, if a stage reads a table that no
    earlier one writes, or has contradictory settings.
    """
    found: dict[str, StepWithEngine] = {}
    named_by: dict[str, str] = {}
    for variant in variants:
        graph, config = _Graph(variant, family, found, named_by), variant.config
        for repeat in range(config.repeats if config.repeat_from == "memory" else 1):
            graph.add_memory(repeat)
        for method in variant.methods:
            for repeat in range(config.repeats if method.has_repeats else 1):
                graph.add(method, judging, repeat)
    return _without_unread(list(found.values()), bool(named_by)), named_by


def _without_unread(found: Sequence[StepWithEngine], has_methods: bool) -> list[StepWithEngine]:
    """All steps except those that make rows of a memory that no method reads. Without methods the
    memory is the result."""
    needed: set[str] = set()
    kept: list[StepWithEngine] = []
    for step, engine in reversed(found):
        if has_methods and step.stage and step.stage.is_index() and step.id not in needed:
            continue
        needed |= {upstream.id for upstream in step.upstream}
        kept.append((step, engine))
    return kept[::-1]


class _Graph:
    """Builds the steps of one variant of a run; `found`: step_id -> step and engine, of all
    variants, including steps of memories that no question needs; `named_by`: step_id -> the first
    method that names it."""

    def __init__(
        self,
        variant: Variant,
        family: Family,
        found: dict[str, StepWithEngine],
        named_by: dict[str, str],
    ) -> None:
        self.variant, self.config, self.family = variant, variant.config, family
        self.found, self.named_by = found, named_by
        self.documents = self._load(Document)
        self._load(Question)
        self.shared: dict[int, dict[str, Step]] = {}  # repeat -> the memory's steps, by key
        self.defaults = default_settings(self.config, family)

    def _load(self, record: type[Record]) -> Step:
        corpus = self.config.corpus
        step = Step(
            corpus=corpus.name,
            name=record.table,
            version=corpus.version,
            writes=record,
            settings=corpus.hashed(),
        )
        return self.found.setdefault(step.id, (step, None))[0]

    def add_memory(self, repeat: int) -> None:
        """Add the steps of the run's own memory; if its settings derive another memory from it,
        methods read that one."""
        place, known = f"memory={self.config.memory.name}", self.shared.setdefault(repeat, {})
        values = {**self.defaults, "repeat": repeat, **self.config.memory.overrides()}
        for spec in self.variant.memory:
            where = f"{place}: {spec.key}"
            if not spec.stage.is_index():
                raise UsageError(f"{where}: answers questions; name it in a method")
            stage = spec.made(place, values)
            self._refuse_no_engine(where, stage)
            self._add(where, spec, stage, ("", repeat), known)

    def add(self, method: Method, judging: Sequence[StageSpec], repeat: int) -> None:
        """Add the steps of a method and those that judge its answers."""
        judged = f"{method.file}, judged as {self.family.folder}/family.yaml says"
        values, of = {**self.defaults, "repeat": repeat}, (method.name, repeat)
        known = dict(self.shared.get(repeat, self.shared[0]))
        for place, specs in ((method.file, method.stages), (judged, judging)):
            for spec in specs:
                where, stage = f"{place}: {spec.key}", spec.made(f"{place} ({method.name})", values)
                if place != judged:
                    self._refuse_no_engine(where, stage)
                for step in self._add(where, spec, stage, of, known):
                    self.named_by.setdefault(step.id, method.name)

    def _add(
        self, where: str, spec: StageSpec, stage: Stage, of: tuple[str, int], known: dict[str, Step]
    ) -> list[Step]:
        """Add the steps of a stage: one for each engine of its role, which are several for a judge.
        `of`: method and repeat. `known`: the steps that it may read, by key, and those after it."""
        upstream = _upstream(where, spec, known)
        engines = self.config.engines(stage.role) if stage.prompts_used() else [None]
        steps = [self._step(where, spec, stage, upstream, engine, of) for engine in engines]
        for step in steps:
            known.pop(spec.key, None)  # later stages read the nearest
            known[spec.key] = step
        return steps

    def _refuse_no_engine(self, where: str, stage: Stage) -> None:
        if stage.prompts_used() and not self.config.engines(stage.role):
            raise UsageError(
                f"{where}: asks the role {stage.role}, which has no engine; set "
                f"{SECTIONS[stage.role]}=..."
            )

    def _step(
        self,
        where: str,
        spec: StageSpec,
        stage: Stage,
        upstream: Sequence[Step],
        engine: EngineSettings | None,
        of: tuple[str, int],
    ) -> Step:
        """A stage's step; the existing one if an equal step was built before. `upstream`: the steps
        it reads, without `documents`."""
        own = self._made(where, stage, upstream, engine, of)
        if stage.starts_memory:
            of_run = of_repeat(self.variant.shared, own.repeat)
            if own.memory in (None, of_run):
                name = of_repeat(spec.memory, own.repeat)
            else:
                name = f"{spec.memory} of {own.memory}"  # which says the repeat
            shared = replace(own, memory=of_run)
            own = shared if shared.id in self.found else replace(own, memory=name)
        self._refuse_second(where, own)
        return self.found.setdefault(own.id, (own, engine))[0]

    def _refuse_second(self, where: str, own: Step) -> None:
        """Raise UsageError if another step makes the same rows for the same memory."""
        if not issubclass(own.writes, IndexRow) or not own.writes.once_per_memory:
            return
        for other, _ in self.found.values():
            if (other.writes, other.memory) == (own.writes, own.memory) and other.id != own.id:
                starts = sorted(label for label, kind in STAGES.items() if kind.starts_memory)
                raise UsageError(
                    f"{where}: {own.table} of the memory {own.memory} are made already, with other "
                    f"settings; put a stage before it that starts another memory: "
                    f"{', '.join(starts)}"
                )

    def _made(
        self,
        where: str,
        stage: Stage,
        upstream: Sequence[Step],
        engine: EngineSettings | None,
        of: tuple[str, int],
    ) -> Step:
        is_index = stage.is_index()
        repeat = of[1] if not is_index or self.config.repeat_from == "memory" else 0
        memory = _memory(where, stage, upstream)
        stage.refuse_upstream(of[0] or where, [step.stage for step in upstream if step.stage])
        if memory is None and is_index and not stage.starts_memory:
            memory = of_repeat(WHOLE_TEXT, repeat)
        return Step(
            corpus=self.config.corpus.name,
            name=stage.name,
            version=stage.version,
            writes=stage.writes,
            settings=stage.hashed(),
            prompts=self._prompts(stage, engine),
            engine=engine.identity() if engine else None,
            method=None if is_index else of[0],
            repeat=repeat,
            memory=memory,
            upstream=(self.documents, *upstream),
            stage=stage,
        )

    def _prompts(self, stage: Stage, engine: EngineSettings | None) -> dict[str, Any]:
        """The hashed part of a step's prompts and of those that they follow: template, reply
        budget, forms of constrained and of shown replies, words of refusals if they are the
        family's own, and version, as a parser may change."""
        family, is_constrained = self.family, engine and self.config.is_constrained(engine)
        followed = [earlier for prompt in stage.prompts_used() for earlier in prompt.follows]
        prompts = dict.fromkeys((*stage.prompts_used(), *followed))
        found: dict[str, Any] = {
            prompt.name: {"max_reply_tokens": family.max_reply_tokens(prompt)}
            for prompt in (*stage.leaves_room_for, *prompts)
        }
        for prompt in prompts:
            found[prompt.name]["template"] = family.sha(prompt)
            if (is_constrained or prompt in followed) and (form := family.form(prompt)):
                found[prompt.name]["form"] = form
            if prompt.version is not None:
                found[prompt.name]["version"] = prompt.version
            if words := family.own_refusals.get(prompt.name):
                found[prompt.name]["refusals"] = words
        return found


def _upstream(where: str, spec: StageSpec, known: Mapping[str, Step]) -> list[Step]:
    """The steps whose rows the stage reads, in the order of its `reads`."""
    tables = [record.table for record in spec.stage.reads]
    for table in spec.reads_from:
        if table not in tables:
            raise UsageError(
                f"{where}: from: it does not read {table}; it reads "
                f"{', '.join(tables) or 'no table of another stage'}"
            )
    return [_input(where, record, spec.reads_from.get(record.table), known)
            for record in spec.stage.reads]  # fmt: skip


def _input(where: str, record: type[Record], named: str | None, known: Mapping[str, Step]) -> Step:
    """The nearest earlier step that writes the record, or the one that `from` names."""
    found = {key: step for key, step in known.items() if step.writes is record}
    if named in found:
        return found[named]
    if named is not None and found:
        raise UsageError(
            f"{where}: from: {record.table}: no earlier stage {named!r} writes it; "
            f"{' or '.join(found)} does"
        )
    if not found:
        writers = [stage.name for stage in STAGES.values() if stage.writes is record]
        raise UsageError(
            f"{where}: reads {record.table}, which no earlier stage writes; put "
            f"{' or '.join(dict.fromkeys(writers)) or 'a stage that does'} before it"
        )
    return list(found.values())[-1]


def _memory(where: str, stage: Stage, upstream: Sequence[Step]) -> str | None:
    """The memory that a stage's page indexes refer to: that of the rows it reads, except rows of
    `reads_other_memory`.

    Raises UsageError if it reads rows of two memories: their page indexes mean different pages.
    """
    own = [step for step in upstream if step.writes not in stage.reads_other_memory]
    found = {step.memory for step in own if step.writes.has_pages} - {None}
    if len(found) > 1:
        read = [f"{step.table} of {step.memory}" for step in upstream if step.memory]
        raise UsageError(
            f"{where}: would mix two memories, {' and '.join(read)}; read all from stages that "
            "use the same one, with `from` where several write a table"
        )
    others = [step.memory for step in upstream if step.memory is not None]
    return found.pop() if found else others[0] if others else None
