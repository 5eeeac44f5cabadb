"""Export a method's answers as a log of inspect_ai, which its viewer and its readers open."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jobs.config.options import ReadOptions
from jobs.export.export_predictions import method_of
from jobs.export.inspect_log import inspect_log
from jobs.export.target import Target, warn_incomplete
from jobs.report.answer_rows import answers
from jobs.report.report import INPUTS
from pipeline.core.errors import UsageError
from pipeline.core.sql_files import filled, sql_beside, text
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)
_SUFFIXES = (".eval", ".json")
_FACTS = ("corpus", "engine", "family", "reply_format")


def export_inspect(options: ReadOptions, target: Target, warn: Callable[[str], None]) -> int:
    """Write the answers of `method=` to the questions that `where=` selects as one log; returns
    their number. `warn` gets a line if the run is not complete, whose log says `cancelled`.

    A sample is a question, its epochs are the repeats. Its scores are the values that the report
    has means of, its usage the calls of the method's own stages for the question. Raises UsageError
    without inspect_ai, or if `to=` names neither an .eval nor a .json file.
    """
    if target.path is None or target.path.suffix not in _SUFFIXES:
        raise UsageError("export inspect: a log is a file; add to=FILE.eval, or to=FILE.json")
    try:
        from inspect_ai.log import EvalLog, write_eval_log
    except ImportError:
        raise UsageError(
            "export inspect needs inspect_ai; pip install 'gistmill[inspect]'"
        ) from None
    with options.opened() as (folder, connection):
        method = method_of(connection, options.method, folder.path.name)
        rows = _answers(connection, options.where, method, folder.report_facts("columns"))
        inputs = query(connection, INPUTS)[0]
        head = _head(folder, method, bool(inputs["not_done"]))
        warn_incomplete(folder.path.name, inputs, warn)
    log = EvalLog.model_validate(inspect_log(head, rows))
    with TemporaryDirectory() as made:
        file = Path(made) / target.path.name
        write_eval_log(log, str(file))
        target.write(file.read_bytes())
    return len(rows)


def _answers(
    connection: Any, where: str | None, method: str, facts: Mapping[str, Any]
) -> Sequence[Mapping[str, Any]]:
    """The answers with their questions, `values` and `calls`. First come the values that measure
    the quality of answers: the viewer shows those of its first scorer. Raises UsageError."""
    source, name = answers(connection, where), text(method)
    rows = query(connection, filled(_SQL["replies"], source=source, method=name))
    if not rows:
        raise UsageError(f"where={where}: leaves no answer of {method}")
    columns = facts["columns"]
    first = {column["measure"] for kind in ("free", "choice") for column in columns[kind]}
    values = query(connection, filled(_SQL["values"], method=name))
    values.sort(key=lambda value: value["measure"] not in first)
    calls = query(connection, filled(_SQL["calls"], method=name))
    found: dict[str, defaultdict[Any, list[Any]]] = {}
    for kind, parts in (("values", values), ("calls", calls)):
        found[kind] = defaultdict(list)
        for part in parts:
            found[kind][part["question_id"], part["repeat"]].append(part)
    return [
        {**row, **{kind: found[kind][row["question_id"], row["repeat"]] for kind in found}}
        for row in rows
    ]


def _head(folder: RunFolder, method: str, is_incomplete: bool) -> Mapping[str, Any]:
    """The facts of the run that a log states."""
    facts, launches = folder.report_facts(*_FACTS), folder.readable_launches()
    return {
        "run": folder.path.name,
        "method": method,
        "started_at": launches[0]["started_at"] if launches else "1970-01-01T00:00:00+00:00",
        "is_incomplete": is_incomplete,
        **{name: facts[name] for name in _FACTS},
    }
