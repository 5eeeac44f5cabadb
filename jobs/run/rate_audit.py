"""`gistmill rate audit`: the run that gives the raters of another one answers of known worth.

It is called NAME-audit and is a run like any other: executed, resumed, paid for and traced as such.
Its methods are the kinds of known answers, which its folder lists in known_answers.jsonl.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from upath import UPath

from jobs.config.options import KEYS
from jobs.config.run_config import RunConfig
from jobs.graph.read_run import parsed_config, run_of
from jobs.graph.resolved_run import ResolvedRun, resolve
from jobs.run.compatibility import stored_config
from pipeline.core.compose import compose
from pipeline.core.errors import UsageError
from pipeline.files.storage import as_path, exists, write
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connect import run_name
from pipeline.store.sql.connection import query
from stages.corpora.audits.known_answers import (
    FreeForm,
    Known,
    Maker,
    known_answers_text,
    read_known_answers,
)

_OWN = {"n": 50, "seed": 0}  # words, and their defaults
_MOST = 1_000_000
_QUESTIONS = """select document_id, question_id, question, "references", question_type, task
from questions
where problem is null and len(options) = 0 and len("references") > 0
order by document_id, question_id"""


def audit_run(words: Sequence[str]) -> ResolvedRun:
    """The audit of the run that `words` name, with its known answers, which are added to those that
    earlier audits of the run have made.

    Raises UsageError for wrong words, and for a run without questions that can be used or without a
    rater that is a model.
    """
    own, others = _split(words)
    composed = compose(others)
    warehouse = as_path(composed["warehouse"])
    config = _audited(warehouse, run_name(warehouse, composed["run"]))
    folder = RunFolder(warehouse, f"{config.run}-audit")
    if folder.config() is not None and stored_config(folder).audit_of != config.run:
        raise UsageError(
            f"run={folder.path.name} is no audit, and has the name of one; remove that run"
        )
    audit = parsed_config({
        **config.model_dump(mode="json"),
        "run": folder.path.name,
        "audit_of": config.run,
        "warehouse": str(warehouse),
        "cluster": composed["cluster"],
        "raters": _raters(config),
        **{"methods": "", "predictions": {}, "repeats": 1},
    })  # fmt: skip
    known = {(one.kind, one.question_id): one for one in _known(config, warehouse, own)}
    if exists(folder.known_answers):
        known = {**read_known_answers(str(folder.known_answers)), **known}
    write(folder.known_answers, known_answers_text(known.values()))
    return resolve(audit)


def _split(words: Sequence[str]) -> tuple[dict[str, int], list[str]]:
    """The audit's own words with their defaults, and those of a run. Raises UsageError for words
    that are neither."""
    own, others = dict(_OWN), []
    for word in words:
        key, equals, value = word.partition("=")
        if key in own and equals:
            least = 1 if key == "n" else 0
            if not value.isdecimal() or not least <= int(value) <= _MOST:
                raise UsageError(f"{word}: write a whole number from {least} to {_MOST:,}")
            own[key] = int(value)
        elif key in KEYS["rate audit"] or key.startswith("cluster."):
            others.append(word)
        else:
            raise UsageError(f"{word!r}: rate audit takes {', '.join(KEYS['rate audit'])}")
    return own, others


def _audited(warehouse: UPath, name: str) -> RunConfig:
    """The config of the run, or, of an audit, of the run that it audits."""
    config = stored_config(RunFolder(warehouse, name))
    return stored_config(RunFolder(warehouse, config.audit_of)) if config.audit_of else config


def _raters(config: RunConfig) -> list[Any]:
    """The engines of the run's raters that are models. Raises UsageError where there is none."""
    found = [engine for engine in config.engines("judge") if engine.is_model]
    if not found:
        raise UsageError(
            f"run={config.run} has no rater that is a model; add one first: gistmill rate "
            f"run={config.run} rater=NAME"
        )
    return found


def _known(config: RunConfig, warehouse: UPath, own: Mapping[str, int]) -> list[Known]:
    with connect(warehouse, config.run) as connection:
        rows = query(connection, _QUESTIONS)
    questions = [FreeForm(**{**row, "references": tuple(row["references"])}) for row in rows]
    words = run_of(config.model_dump(mode="json")).family.known_answers
    maker = Maker(questions, words, own["seed"])
    sample = maker.sample(own["n"])
    if not sample:
        raise UsageError(
            f"run={config.run} has no question to audit raters with: they must be free-form and "
            "have a reference that is an answer; name a run of a corpus with references"
        )
    return [known for question in sample for known in maker.made(question)]
