"""ResolvedRun: a command line with all that follows from it, made once by `resolve` and passed on.

Nothing below reads a config file, a prompt family or a method's YAML, or builds the steps again.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jobs.config.run_config import MOST_RUN_NAME, RunConfig
from jobs.graph.check_config import check_config, check_stages, refuse_equal_repeats
from jobs.graph.phases import Phase, phases
from jobs.graph.step_graph import StepWithEngine, default_settings, run_steps
from jobs.graph.variants import variants
from pipeline.core.errors import UsageError
from pipeline.core.plugins import conf_folders
from pipeline.core.settings import CONF, sha
from pipeline.families.family import Family, find_family, load_family
from pipeline.store.runs.run_folder import RunFolder
from pipeline.work.methods import Method, StageSpec, expand_methods, method_of, stage_specs
from pipeline.work.stage import Role
from pipeline.work.units import Step
from stages.corpora.audits.known_answers import known_method, read_known_answers

_GIVEN = CONF / "predictions.yaml"  # a method's layout
_KNOWN = CONF / "known_answer.yaml"


@dataclass(frozen=True)
class ResolvedRun:
    """A config and all that follows from it and from the files that it names.

    `conf_folders`: the `conf` folders of the plugins, then our own. `family`: completed from its
    bases, with the overrides of `reply_tokens`. `methods`: those that `methods` names, ranges and
    alternatives expanded, then those of `predictions`; of an audit one for each kind of known
    answers. `judging`: the stages that follow every method. `steps_with_engines`: in dependency
    order; the first two load the corpus, and memories have their names. `named_by`: the first
    method that names a step, by step id.
    """

    config: RunConfig
    conf_folders: tuple[Path, ...]
    family: Family
    methods: tuple[Method, ...]
    judging: tuple[StageSpec, ...]
    steps_with_engines: tuple[StepWithEngine, ...]
    named_by: Mapping[str, str]

    @property
    def steps(self) -> list[Step]:
        return [step for step, _ in self.steps_with_engines]

    @cached_property
    def phases(self) -> list[Phase]:
        return phases(self.steps_with_engines)

    def refuse_unusable(self) -> None:
        """Raise UsageError if a step cannot be executed on this machine."""
        for step in self.steps:
            if step.stage is not None and step.id in self.named_by:
                step.stage.refuse_unusable(self.named_by[step.id])

    @cached_property
    def hashed(self) -> dict[str, Any]:
        """The settings that change rows and that a named run must keep: all but methods, raters,
        repeats and the selection of documents."""
        config = self.config
        roles: tuple[Role, ...] = ("memory", "extractor", "query_expander")
        others = {role: [e.identity() for e in config.engines(role)] for role in roles}
        engine, is_constrained = config.engine.identity(), config.is_constrained(config.engine)
        return {
            "corpus": dict(config.corpus.hashed()),
            "memory": config.memory.model_dump(mode="json", exclude={"name"}),
            "engine": {**engine, "constrained": is_constrained},
            "seed": config.engine.seed,  # random draws use it whatever the temperature
            **({"shuffle_options": True} if config.shuffle_options else {}),
            "roles": {k: v for k, v in others.items() if v != [engine]},
            "family": self.family.hashed(),
            **config.embedder.hashed(),
        }

    @cached_property
    def settings_sha(self) -> str:
        """A hash, 8 hex digits, of all settings that decide what is made, and of what."""
        config = self.config
        chosen = [config.corpus.selection(), config.limit, config.sample]
        methods = [method.name for method in self.methods]
        raters = [rater.identity() for rater in config.engines("judge")]
        repeats = [config.repeats, config.repeat_from] if config.repeats > 1 else []
        return sha([self.hashed, chosen, methods, raters, *repeats], 8)

    @cached_property
    def name(self) -> str:
        """`run`, else the experiment's or corpus's name and the hash of the settings."""
        config = self.config
        if config.run:
            return config.run
        # Only characters legal in a run's name: corpus `My Books (2024)` gives my-books-2024-...
        words = re.findall(r"[a-z0-9_]+", (config.name or config.corpus.name).lower())
        made = "-".join(["-".join(words)[: MOST_RUN_NAME - 20].rstrip("-"), self.settings_sha])
        made = made.lstrip("-")
        return made if made[0].isalpha() else f"run-{made}"


def resolve(config: RunConfig) -> ResolvedRun:
    """The run of a config, with all checks that need not read the corpus. Imports its plugins.

    Raises UsageError for settings that cannot work, naming the key or file.
    """
    try:
        confs = conf_folders(config.plugins)
        roots = [conf / "prompts" for conf in confs]
        key = "family" if config.family else "corpus.family"
        folder = find_family(config.family or config.corpus.family, roots, key)
        family = load_family(folder, roots, config.reply_tokens)
        defaults = default_settings(config, family)
        methods = expanded(config, confs, defaults)
        judging = stage_specs(f"{family.folder}/family.yaml: judging", family.judging)
        found = variants(config, methods, confs, defaults)
        for variant in found:
            check_config(variant.config)
            check_stages(variant.config, family, [*variant.specs, *judging])
        steps_with_engines, named_by = run_steps(found, family, judging)
    except (OSError, ValueError) as error:  # of a name that no file can have
        raise UsageError(f"a path in the settings cannot be read: {error}; set another") from None
    refuse_equal_repeats(config, steps_with_engines)
    return ResolvedRun(
        config, confs, family, (*methods,), judging, (*steps_with_engines,), named_by
    )


def expanded(
    config: RunConfig, confs: Sequence[Path], defaults: Mapping[str, Any] = {}
) -> list[Method]:
    """The methods that `methods` names, then those of `predictions` and of an audit; see
    `ResolvedRun`."""
    folders = [conf / "method" for conf in reversed(confs)]
    own = expand_methods(config.methods, folders, defaults) if config.methods else []
    for name, file in config.predictions.items():
        own.append(method_of(_GIVEN, name, {"file": file}, defaults))
    if config.audit_of:
        file = str(RunFolder(config.warehouse, config.run or "").known_answers)
        for kind in dict.fromkeys(kind for kind, _ in read_known_answers(file)):
            values = {"file": file, "made_as": kind}
            own.append(method_of(_KNOWN, known_method(kind), values, defaults))
    return own
