"""`gistmill rate audit`: the run that gives the raters of another one answers of known worth.

It is called NAME-audit and is a run like any other: executed, resumed, paid for and traced as such.
Its methods are the kinds of known answers, which its folder lists in known_answers.jsonl.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from upath import UPath

from jobs.config.options import KEYS
from jobs.config.run_config import RunConfig
from jobs.graph.read_run import parsed_config, run_of
from jobs.graph.resolved_run import ResolvedRun, resolve
from jobs.output.cells import counted
from jobs.run.compatibility import stored_config
from pipeline.core.compose import compose
from pipeline.core.errors import UsageError
from pipeline.files.place import as_path, exists, write
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connect import run_name
from pipeline.store.sql.connection import query
from stages.corpora.audits.audit_file import question_ids, read_audit_file
from stages.corpora.audits.known_answers import Known, known_answers_text, read_known_answers
from stages.corpora.audits.make_known_answers import Asked, Maker

_OWN = {"n": "50", "seed": "0", "audit": "", "by_model": "false"}  # words, and their defaults
_MOST = 1_000_000
_QUESTIONS = """select document_id, question_id, question, "references", question_type, task
from questions
where problem is null and len(options) = 0 and len("references") > 0
order by document_id, question_id"""


def audit_words(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The audit's own words with their defaults, and those of a run. Raises UsageError for words
    that are neither."""
    own, others = dict(_OWN), []
    for word in words:
        key, equals, value = word.partition("=")
        if key in own and equals:
            own[key] = value
        elif key in KEYS["rate audit"] or key.startswith(("engine.", "cluster.")):
            others.append(word)
        else:
            raise UsageError(f"{word!r}: rate audit takes {', '.join(KEYS['rate audit'])}")
    for key, least in (("n", 1), ("seed", 0)):
        if not own[key].isdecimal() or not least <= int(own[key]) <= _MOST:
            raise UsageError(f"{key}={own[key]}: write a whole number from {least} to {_MOST:,}")
    if own["by_model"] not in ("true", "false"):
        raise UsageError(f"by_model={own['by_model']}: write true or false")
    return own, others


def audit_run(words: Sequence[str], warn: Callable[[str], None]) -> ResolvedRun:
    """The audit of the run that `words` name, with its known answers, which are added to those that
    earlier audits of the run have made. `warn` gets a line on answers of a file that are left out.

    Raises UsageError for wrong words, a run without questions that can be used or without a rater
    that is a model, and a file of which no question is the run's.
    """
    own, others = audit_words(words)
    composed = compose(others)
    warehouse = as_path(composed["warehouse"])
    config = _audited(warehouse, run_name(warehouse, composed["run"]))
    folder = RunFolder(warehouse, f"{config.run}-audit")
    before = _earlier(folder, config)
    has_engine = any(word.startswith("engine") for word in others)
    values = {
        **config.model_dump(mode="json"),
        "run": folder.path.name,
        "audit_of": config.run,
        "warehouse": str(warehouse),
        "cluster": composed["cluster"],
        "engine": composed["engine"] if has_engine else (before or config).engine,
        "raters": _raters(config),
        **{"methods": "", "predictions": {}, "repeats": 1},
    }
    audit = parsed_config(values)
    if own["by_model"] == "true" and not audit.engine.is_model:
        raise UsageError(
            f"by_model=true: engine={audit.engine.name} is no model; add engine=NAME of one that "
            "can write, such as engine=vllm engine.model=..."
        )
    known = {(one.kind, one.question_id): one for one in _known(config, warehouse, own, warn)}
    if exists(folder.known_answers):
        known = {**read_known_answers(str(folder.known_answers)), **known}
    write(folder.known_answers, known_answers_text(known.values()))
    return resolve(audit)


def _audited(warehouse: UPath, name: str) -> RunConfig:
    """The config of the run; of an audit, that of the run which it audits."""
    config = stored_config(RunFolder(warehouse, name))
    return stored_config(RunFolder(warehouse, config.audit_of)) if config.audit_of else config


def _earlier(folder: RunFolder, config: RunConfig) -> RunConfig | None:
    """The config of an earlier audit of the run."""
    if folder.config() is None:
        return None
    found = stored_config(folder)
    if found.audit_of != config.run:
        raise UsageError(f"run={found.run} is no audit, and has the name of one; remove that run")
    return found


def _raters(config: RunConfig) -> list[Any]:
    """The engines of the run's raters that are models. Raises UsageError where there is none."""
    found = [engine for engine in config.engines("judge") if engine.is_model]
    if not found:
        raise UsageError(
            f"run={config.run} has no rater that is a model; add one first: gistmill rate "
            f"run={config.run} rater=NAME"
        )
    return found


def _known(
    config: RunConfig, warehouse: UPath, own: Mapping[str, str], warn: Callable[[str], None]
) -> list[Known]:
    """The known answers to a sample of the run's questions, and those of the file."""
    with connect(warehouse, config.run) as connection:
        rows = query(connection, _QUESTIONS)
    questions = [Asked(**{**row, "references": tuple(row["references"])}) for row in rows]
    words = run_of(config.model_dump(mode="json")).family.known_answers
    maker = Maker(questions, words, int(own["seed"]))
    sample = maker.sample(int(own["n"]))
    if not sample:
        raise UsageError(
            f"run={config.run} has no question to audit raters with: they must be free-form and "
            "have a reference that is an answer; name a run of a corpus with references"
        )
    made = [one for question in sample for one in maker.made(question, own["by_model"] == "true")]
    return [*made, *(_of_file(config, questions, own["audit"], warn) if own["audit"] else ())]


def _of_file(
    config: RunConfig, questions: Sequence[Asked], file: str, warn: Callable[[str], None]
) -> Iterator[Known]:
    """The answers in a file to questions of the run, by id, else by the text of one question."""
    given = read_audit_file(file)
    ids = question_ids(given, {question.question_id: question.question for question in questions})
    if not any(ids):
        raise UsageError(
            f"audit={file}: none of its {counted(len(given), 'question')} is one of "
            f"run={config.run}, by id or text; name the run of that corpus"
        )
    if left_out := ids.count(None):
        warn(
            f"audit={file}: {left_out} of {counted(len(given), 'row')} left out, to no question "
            f"of run={config.run}, or to one of several with the same text"
        )
    yield from (one.known(own) for one, own in zip(given, ids, strict=True) if own)
